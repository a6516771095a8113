"""A fake API server that is real about what a reflector depends on, and that misbehaves when it is told to.

Objects have resourceVersions from one counter; lists are paged and consistent, by tokens that expire; watches send
what happened since, bookmarks when nothing does, and 410 for a version that is forgotten. A version from the future
is answered by silence, as kube-apiserver does.
"""

import base64
import contextlib
import copy
import http.server
import itertools
import json
import pathlib
import socket
import socketserver
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from cluster.writes import REPORTS, Writes, target

from certs.authority import issue_authority, issue_leaf

KINDS = {
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "services": ("v1", "Service"),
    "pods": ("v1", "Pod"),
    "replicationcontrollers": ("v1", "ReplicationController"),
    "replicasets": ("apps/v1", "ReplicaSet"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "deployments": ("apps/v1", "Deployment"),
    "daemonsets": ("apps/v1", "DaemonSet"),
    "jobs": ("batch/v1", "Job"),
    "cronjobs": ("batch/v1", "CronJob"),
    "horizontalpodautoscalers": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "storageclasses": ("storage.k8s.io/v1", "StorageClass"),
    "csinodes": ("storage.k8s.io/v1", "CSINode"),
    "csidrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "csistoragecapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "volumeattachments": ("storage.k8s.io/v1", "VolumeAttachment"),
    "limitranges": ("v1", "LimitRange"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "runtimeclasses": ("node.k8s.io/v1", "RuntimeClass"),
    "rollouts": ("argoproj.io/v1alpha1", "Rollout"),
    "prometheuses": ("monitoring.coreos.com/v1", "Prometheus"),
    "reports": ("openreports.io/v1alpha1", "Report"),
    "policyreports": ("wgpolicyk8s.io/v1alpha2", "PolicyReport"),
    "events": ("events.k8s.io/v1", "Event"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "spreadgroups": ("evenspread.io/v1alpha1", "SpreadGroup"),
    "configmaps": ("v1", "ConfigMap"),
    "validatingwebhookconfigurations": ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
}

# What a command says of the policy where nobody has installed evenspread.
NOT_INSTALLED = (
    "cluster x: note: no ConfigMap of the evenspread chart: using the built-in policy; --config FILE selects another\n"
)
CUSTOM = ("rollouts", "prometheuses")
DISCOVERED = REPORTS | {f"/apis/{KINDS[name][0]}": (name, KINDS[name][1]) for name in (*CUSTOM, "spreadgroups")}


class Request(NamedTuple):
    what: str  # list, page, watch or other
    resource: str
    query: dict
    headers: dict


Fault = Callable[["Handler", Request], bool]  # whether it has answered; otherwise the request goes on


class _Rule(NamedTuple):
    what: str
    resource: str
    fault: Fault
    times: list  # how often it is still to strike, in one cell


class FakeApi:
    def __init__(self, *, tls=True, bookmark_seconds=0.1, patient=True):
        self.lock = threading.Condition()
        self.objects = {name: {} for name in KINDS}
        self.log = []  # (version, resource, type, object)
        self.version = 100
        self.forgotten = 100  # a watch from below this is 410
        self.tokens = {}  # of pages: token -> (version, items left)
        self.accepted = {"first"}  # bearer tokens
        self.forbidden = set()
        self.absent = {"rollouts", "prometheuses", "reports", "policyreports"}
        self.writes = []  # those that were not refused
        self.pod_writes = []  # the documents applied to pods
        self.bookmark_seconds = bookmark_seconds
        self.patient = patient  # otherwise a watch ends when it has told everything
        self.requests = []
        self.connections = 0
        self.faults = []
        self.ended = threading.Event()
        self.open_sockets = set()
        self._numbers = itertools.count(1)
        self._authority = issue_authority(datetime.now(UTC), common_name="test")
        self._server = _Server(("127.0.0.1", 0), self, self._context() if tls else None)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        with self.lock:
            self.lock.notify_all()
        self._server.shutdown()
        self.drop_connections()
        self._server.server_close()
        self._thread.join()

    # -- the cluster

    def put(self, resource, name, namespace="", **fields):
        """Create or replace an object; returns it."""
        with self.lock:
            api_version, kind = KINDS[resource]
            key = (namespace, name)
            before = self.objects[resource].get(key)
            self.version += 1
            fields = copy.deepcopy(fields)
            meta = {"name": name, "uid": before["metadata"]["uid"] if before else f"uid-{next(self._numbers)}"}
            if namespace:
                meta["namespace"] = namespace
            meta |= fields.pop("metadata", {}) | {"resourceVersion": str(self.version)}
            made = {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}
            self.objects[resource][key] = made
            self._tell(resource, "MODIFIED" if before else "ADDED", made)
            return made

    def delete(self, resource, name, namespace=""):
        with self.lock:
            gone = self.objects[resource].pop((namespace, name), None)
            if gone is None:
                return
            self.version += 1
            gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
            self._tell(resource, "DELETED", gone)

    def _tell(self, resource, event, made):
        self.log.append((self.version, resource, event, made))
        self.lock.notify_all()

    def forget(self):
        """Compact: every version that anyone has seen so far is too old, tokens included."""
        with self.lock:
            self.version += 1
            self.forgotten = self.version
            self.log.clear()
            self.tokens.clear()
            self.lock.notify_all()

    def restore(self, version=100):
        """From a backup: the counter goes back, and so every version that was seen is from the future."""
        with self.lock:
            self.version = self.forgotten = version
            for objects in self.objects.values():
                for made in objects.values():
                    made["metadata"]["resourceVersion"] = str(version)
            self.log.clear()
            self.tokens.clear()

    # -- faults

    def strike(self, what, fault, *, resource="", times=1):
        """Answer the next requests by a fault: ``what`` is list (a first page), page, watch, write or any."""
        self.faults.append(_Rule(what, resource, fault, [times]))

    def fault_for(self, request):
        return self._fault(request.what, request)

    def fault_for_write(self, write):
        return self._fault("write", write)

    def _fault(self, what, request):
        with self.lock:
            for rule in self.faults:
                fits = rule.what in {"any", what} and rule.resource in {"", request.resource}
                if fits and rule.times[0] > 0:
                    rule.times[0] -= 1
                    return rule.fault
        return None

    def pending_faults(self):
        return sum(rule.times[0] for rule in self.faults)

    def drop_connections(self):
        """As when the machine dies, but noticed at once."""
        for connection in list(self.open_sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def count(self, what, resource=""):
        return sum(each.what == what and resource in {"", each.resource} for each in list(self.requests))

    # -- credentials

    def kubeconfig(self, folder, *, token="first", token_file=None, **context):  # noqa: S107 no secret
        user = {"tokenFile": str(token_file)} if token_file else {"token": token}
        cluster = {"server": self.url}
        if self.url.startswith("https"):
            cluster["certificate-authority-data"] = base64.b64encode(self._authority.certificate).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"} | context}],
            "current-context": "x",
        }
        file = pathlib.Path(folder) / "kubeconfig"
        file.write_text(json.dumps(content))
        return str(file)

    @property
    def authority(self):
        return self._authority.certificate

    def _context(self):
        leaf = issue_leaf(self._authority, ("127.0.0.1",), datetime.now(UTC))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(leaf.certificate + leaf.key)
            pair.flush()
            context.load_cert_chain(pair.name)
        return context


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address, api, context):
        super().__init__(address, Handler)
        self.api = api
        self.context = context

    def finish_request(self, request, client_address):  # in the connection's own thread
        api = self.api
        with contextlib.suppress(OSError):
            if self.context is not None:
                request = self.context.wrap_socket(request, server_side=True)
            api.connections += 1
            api.open_sockets.add(request)
            try:
                super().finish_request(request, client_address)
            finally:
                api.open_sockets.discard(request)
                request.close()


class Handler(Writes, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_GET(self):
        api = self.server.api
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        resource = url.path.rpartition("/")[2]
        what = "watch" if "watch" in query else "page" if "continue" in query else "list"
        if resource not in KINDS:
            what = "other"
        request = Request(what, resource, query, dict(self.headers))
        api.requests.append(request)
        with contextlib.suppress(ConnectionError):
            fault = api.fault_for(request)
            if fault is None or not fault(self, request):
                self.answer(request, url.path)

    def answer(self, request, path):
        api = self.server.api
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ").removeprefix("bearer ")
        if bearer not in api.accepted:
            self.status(401, "Unauthorized")
        elif path == "/version":
            self.json(200, {"gitVersion": "v1.34.2"})
        elif path == "/apis":
            versions = ["apps/v1", "batch/v1", *(KINDS[name][0] for name in CUSTOM if name not in api.absent)]
            self.json(200, {"groups": [group(version) for version in versions]})
        elif path in DISCOVERED and DISCOVERED[path][0] not in api.absent:
            name, kind = DISCOVERED[path]
            kinds = [{"name": f"{name}/scale", "kind": kind}, {"name": name, "kind": kind}]
            self.json(200, {"kind": "APIResourceList", "resources": kinds})
        elif (one := target(path)) is not None and one.resource in KINDS:
            if one.name:
                self.get_one(one)
            else:
                self.get_some(one, request.query)
        elif request.what == "other" or request.resource in api.absent or not self._is_served(request, path):
            self.status(404, "the server could not find the requested resource")
        elif request.resource in api.forbidden:
            self.status(403, f'{request.resource} is forbidden: User "u" cannot list resource "{request.resource}"')
        elif request.what == "watch":
            self.watch(request)
        else:
            self.list(request)

    @staticmethod
    def _is_served(request, path):
        api_version = KINDS[request.resource][0]
        return path == f"/{'apis' if '/' in api_version else 'api'}/{api_version}/{request.resource}"

    def json(self, status, content, headers=None):
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def status(self, code, message, headers=None):
        content = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self.json(code, {**content, "message": message, "code": code}, headers)

    def list(self, request):
        api = self.server.api
        with api.lock:
            token = request.query.get("continue")
            if token is None:
                listed = [made for _, made in sorted(api.objects[request.resource].items()) if selected(request, made)]
                version, begin = api.version, 0
            elif token in api.tokens:
                version, listed, begin = api.tokens[token]
            else:
                self.status(410, "The provided continue parameter is too old to display a consistent list result.")
                return
            end = begin + (int(request.query.get("limit", 0)) or len(listed))
            meta = {"resourceVersion": str(version)}
            if end < len(listed):
                meta["continue"] = f"token-{next(api._numbers)}"
                api.tokens[meta["continue"]] = (version, listed, end)
            page = [
                {key: value for key, value in made.items() if key not in {"apiVersion", "kind"}}
                for made in listed[begin:end]
            ]
        self.json(200, {"kind": "List", "metadata": meta, "items": page})

    def watch(self, request):
        api = self.server.api
        version = int(request.query["resourceVersion"])
        self.begin_stream()
        if version < api.forgotten:
            self.error(410, f"too old resource version: {version} ({api.forgotten})")
            self.end_stream()
            return
        ends = time.monotonic() + float(request.query["timeoutSeconds"])
        if version > api.version:
            self.be_silent()
            return
        while not api.ended.is_set():
            with api.lock:
                happened = [each for each in api.log if each[0] > version]
                if not happened and api.patient:
                    api.lock.wait(min(api.bookmark_seconds, max(0.0, ends - time.monotonic())))
                    happened = [each for each in api.log if each[0] > version]
                version, forgotten = max(version, api.version), version < api.forgotten
            if forgotten:
                break
            for _, resource, event, made in happened:
                if resource == request.resource:
                    self.event(event if selected(request, made) else "DELETED", made)
            if not happened:
                api_version, kind = KINDS[request.resource]
                bare = {"apiVersion": api_version, "kind": kind, "metadata": {"resourceVersion": str(version)}}
                self.event("BOOKMARK", bare)
                if not api.patient or time.monotonic() >= ends:
                    break
        self.end_stream()

    # -- pieces of a watch, for faults too

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, event, made):
        self.chunk(json.dumps({"type": event, "object": made}).encode() + b"\n")

    def error(self, code, message):
        self.event("ERROR", {"kind": "Status", "metadata": {}, "status": "Failure", "message": message, "code": code})

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def be_silent(self):
        """Say nothing more until the client gives up."""
        self.connection.settimeout(0.05)
        while not self.server.api.ended.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.close_connection = True

    def cut(self):
        """End the connection in the middle."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def group(version):
    """The entry of /apis for a group that has this version, and before it one that is not served."""
    name = version.partition("/")[0]
    return {"name": name, "versions": [{"groupVersion": f"{name}/v9"}, {"groupVersion": version}]}


def selected(request, made):
    """What the field selector of pods says, and a label selector of one label."""
    if "labelSelector" in request.query:
        key, _, value = request.query["labelSelector"].partition("=")
        return made["metadata"].get("labels", {}).get(key) == value
    if "fieldSelector" not in request.query:
        return True
    return made.get("status", {}).get("phase") not in {"Succeeded", "Failed"}


# -- faults


def refuse(code, message="", **headers):
    def fault(handler, _):
        handler.status(
            code, message or f"error {code}", {key.replace("_", "-"): value for key, value in headers.items()}
        )
        return True

    return fault


def raw(text):
    """A body of one's own, such as no encoder writes."""

    def fault(handler, _):
        body = text.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return fault


def cut(handler, _):
    handler.cut()
    return True


def silence(handler, _):
    handler.be_silent()
    return True


def silent_watch(handler, _):
    handler.begin_stream()
    handler.be_silent()
    return True


def gone_as_event(handler, _):
    handler.begin_stream()
    handler.error(410, "too old resource version: 1 (2)")
    handler.end_stream()
    return True


def ends_at_once(handler, _):
    handler.begin_stream()
    handler.end_stream()
    return True


def torn(text):
    """A watch of which the last line is cut."""

    def fault(handler, _):
        handler.begin_stream()
        handler.chunk(text)
        handler.cut()
        return True

    return fault


def says(*lines):
    """A watch that says these lines, whatever they are, and ends."""

    def fault(handler, _):
        handler.begin_stream()
        for line in lines:
            handler.chunk(line + b"\n")
        handler.end_stream()
        return True

    return fault


def html(handler, _):
    body = b"<html>502 Bad Gateway</html>"
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()
    return True


def short_body(handler, _):
    handler.send_response(200)
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"items": [')
    handler.wfile.flush()
    handler.cut()
    return True


def replay(handler, request):
    """A watch that begins with what was said before: all that is logged, in order."""
    asked, logged = int(request.query["resourceVersion"]), handler.server.api.forgotten
    request.query["resourceVersion"] = str(min(asked, logged))  # below what is logged, the answer stays 410
    return False
