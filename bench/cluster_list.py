"""Measure the cost to list and index a large cluster, next to a minimal program with the same bytes.

    python -m bench.cluster_list [--pods 150000] [--replicasets 50000] [--runs 3]

A stub in its own process serves pages of real-size objects over TLS. Each variant is a new process, and lists all
objects once. The output has its processor time, the memory added at the end, and the maximum.

    barest       http.client, and name, namespace, labels and node of each pod, counted by label set and node
    feed pods    the feed with pods only
    feed         the feed with pods and ReplicaSets, as in the webhook
"""

import argparse
import base64
import collections
import http.client
import http.server
import json
import multiprocessing
import pathlib
import resource
import socketserver
import ssl
import statistics
import sys
import tempfile
import time
import typing
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import msgspec

from certs.authority import issue_authority, issue_leaf

PER_NODE = 30
PER_SET = 10
VERSION = "77"


def managed(size):
    entry = {"f:env": {f'k:{{"name":"SETTING_{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(size)}}
    return [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": entry}]


def container():
    return {
        "name": "app",
        "image": "registry.example/team/app:1.2.3",
        "env": [{"name": f"SETTING_{number}", "value": "a value of usual length"} for number in range(14)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def labels():
    own = {"app": "app-@SET@", "pod-template-hash": "7d4b9c@SET@", "team": "team-@NS@"}
    return own | {"app.kubernetes.io/managed-by": "Helm"}


def meta(name, kind, size):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "app-@SET@", "uid": "b2c4-@SET@", "controller": True}
    return {
        "name": name,
        "namespace": "ns-@NS@",
        "uid": "0e8d9a52-6c1b-4f7e-9d3a-@N@",
        "resourceVersion": "@N@",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels(),
        "annotations": {"checksum/config": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"},
        "ownerReferences": [owner],
        "managedFields": managed(size),
    }


def pod():
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": None}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    select = {"matchLabels": {"app": "app-@SET@"}}
    zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {
        "metadata": meta("app-@SET@-7d4b9c-@N@", "ReplicaSet", 14),
        "spec": {
            "containers": [container()],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "topologySpreadConstraints": [zone | {"labelSelector": select}],
            "nodeName": "node-@NODE@",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "schedulerName": "default-scheduler",
            "priority": 0,
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1", "qosClass": "Burstable"},
    }


def replica_set():
    template = {"metadata": {"labels": labels()}, "spec": {"containers": [container()]}}
    return {
        "metadata": meta("app-@N@-7d4b9c", "Deployment", 14),
        "spec": {"replicas": 10, "selector": {"matchLabels": labels()}, "template": template},
        "status": {"replicas": 10, "readyReplicas": 10, "observedGeneration": 1},
    }


def node():
    own = {"kubernetes.io/hostname": "node-@N@", "topology.kubernetes.io/zone": "zone-@ZONE@"}
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": "node-@N@", "uid": "n-@N@", "labels": own},
        "status": {"allocatable": amounts, "images": [{"names": [f"i-{number}"]} for number in range(40)]},
    }


def namespace():
    return {"metadata": {"name": "shop", "uid": "ns-@N@", "labels": {"kubernetes.io/metadata.name": "shop"}}}


MAKERS = {"pods": pod, "replicasets": replica_set, "nodes": node, "namespaces": namespace}


class Stub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    counts: typing.ClassVar = {}
    templates: typing.ClassVar = {}

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        kind = url.path.rpartition("/")[2]
        if "watch" in query:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.tell(kind)
        first, limit = int(query.get("continue", 0)), int(query.get("limit", 500))
        last = min(first + limit, self.counts.get(kind, 0))
        items = b",".join(self.item(kind, number) for number in range(first, last))
        more = b',"continue":"%d"' % last if last < self.counts.get(kind, 0) else b""
        body = b'{"kind":"List","metadata":{"resourceVersion":"%s"%s},"items":[%s]}' % (VERSION.encode(), more, items)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def tell(self, _kind):
        """What a watch says: nothing."""
        time.sleep(600)

    def item(self, kind, number):
        own = number // PER_SET if kind == "pods" else number
        values = {"N": number, "SET": own, "NS": own % 500, "NODE": number // PER_NODE, "ZONE": number % 3}
        pieces = self.templates[kind]
        return b"".join([piece if at % 2 == 0 else b"%d" % values[piece] for at, piece in enumerate(pieces)])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def serve(folder, counts, ready, stub=Stub):
    import re  # noqa: PLC0415 in the stub's process

    for kind in counts:
        parts = re.split(r"@(\w+)@", json.dumps(MAKERS[kind]()))
        stub.templates[kind] = [part.encode() if at % 2 == 0 else part for at, part in enumerate(parts)]
    stub.counts = counts
    authority = issue_authority(datetime.now(UTC), common_name="bench")
    leaf = issue_leaf(authority, ("127.0.0.1",), datetime.now(UTC))
    (folder / "pair").write_bytes(leaf.certificate + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair")
    server = Server(("127.0.0.1", 0), stub)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_address[1]}"
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority.certificate).decode()}
    (folder / "ca.crt").write_bytes(authority.certificate)
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(json.dumps(content))
    sizes = {kind: len(stub.item(stub, kind, 0)) for kind in counts}
    ready.put((url, sizes))
    server.serve_forever()


def megabytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


class _Meta(msgspec.Struct, gc=False):
    name: str
    namespace: str
    labels: dict[str, str]


class _Spec(msgspec.Struct, gc=False):
    node: str = msgspec.field(name="nodeName")


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class _ListMeta(msgspec.Struct):
    more: str = msgspec.field(name="continue", default="")


class _Pods(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Pod]


def barest(folder, url):
    """Count pods with as little work as possible for a webhook."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    connection = http.client.HTTPSConnection(urlsplit(url).netloc, context=context)
    decoder = msgspec.json.Decoder(_Pods)
    counts = collections.defaultdict(collections.Counter)
    where = {}
    more = ""
    while True:
        connection.request("GET", f"/api/v1/pods?limit=100{more}")
        page = decoder.decode(connection.getresponse().read())
        for each in page.items:
            found = each.metadata
            key = found.namespace, frozenset(found.labels.items())
            counts[key][each.spec.node] += 1
            where[found.namespace, found.name] = key, each.spec.node
        if not page.metadata.more:
            return counts, where
        more = f"&continue={page.metadata.more}"


def feed(folder, *kinds):
    from webhook.cluster.connection import ApiServer  # noqa: PLC0415 part of what is measured
    from webhook.cluster.credentials import Account  # noqa: PLC0415 as above
    from webhook.cluster.feed import Feed  # noqa: PLC0415 as above
    from webhook.cluster.resources import BUILT_IN_RESOURCES  # noqa: PLC0415 as above

    server = ApiServer(Account(kubeconfig=str(folder / "kubeconfig")))
    running = Feed(server, [each for each in BUILT_IN_RESOURCES if each.name in kinds])
    running.start()
    while not running.synced:
        time.sleep(0.01)
    time.sleep(0.5)
    return running


def measured(variant, folder, url, results):
    import webhook.core.index.cluster_index  # noqa: F401, PLC0415 as above

    if variant != "barest":
        import kubernetes.client  # noqa: F401, PLC0415 as above
    before, began = megabytes(), time.process_time()
    clock = time.perf_counter()
    kinds = {"feed pods": ("pods",), "feed": ("nodes", "pods", "replicasets")}
    kept = barest(folder, url) if variant == "barest" else feed(folder, *kinds[variant])
    used, took = time.process_time() - began, time.perf_counter() - clock
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((used, took, megabytes() - before, megabytes(), most))
    del kept


def run(variant, folder, url, spawn):
    results = spawn.Queue()
    process = spawn.Process(target=measured, args=(variant, folder, url, results))
    process.start()
    result = results.get(timeout=600)
    process.kill()
    process.join()
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--replicasets", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    counts = {"pods": given.pods, "replicasets": given.replicasets, "nodes": given.pods // PER_NODE}
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder, ready = pathlib.Path(name), spawn.Queue()
        stub = spawn.Process(target=serve, args=(folder, counts, ready), daemon=True)
        stub.start()
        url, sizes = ready.get()
        told = ", ".join(f"{count} {kind} of {sizes[kind]} B" for kind, count in counts.items())
        print(told, file=sys.stderr)
        base = 0.0
        for variant in ("barest", "feed pods", "feed"):
            runs = [run(variant, folder, url, spawn) for _ in range(given.runs)]
            used, took, added, resident, most = (statistics.median(column) for column in zip(*runs, strict=True))
            base = base or used
            print(
                f"{variant:10}  {used:6.2f} s processor ({used / base:.2f} x)  {took:6.2f} s clock  "
                f"{added:4.0f} MiB added, {resident:4.0f} MiB resident, {most:4.0f} MiB at most"
            )
        stub.terminate()


if __name__ == "__main__":
    main()
