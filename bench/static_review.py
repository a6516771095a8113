"""Measure a static review in this process, with decoding and encoding.

    python -m bench.static_review

Each case is a 6 KiB AdmissionReview of a Deployment as posted by kube-apiserver, with managedFields. The output has the
median and the 90th percentile of single calls over ROUNDS rounds in microseconds, and the share of decoding. Then it
has the median over fewer rounds with NODES nodes: in three zones, the same with a scan for audit-only rules, with one
node in a thousand without a zone, and with no room for the pod. The last line is the ratio of a review with nodes and a
scan to a review without a cluster.
"""

import gc
import json
import statistics
import time
from timeit import repeat

from msgspec.structs import replace

from bench.figure import at_most
from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.core.api.types import Node, NodeSpec, NodeStatus, ObjectMeta, Taint
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.policy import Policy
from webhook.server.worker import COLLECT_AFTER

BYTES = 6 * 1024
CALLS = 200
ROUNDS = 60
FEW_ROUNDS = 10  # of reviews that take long
NODES = 5000
NO_ROOM = NodeStatus(allocatable={"cpu": "10m", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"})
ROOM = NodeStatus(allocatable={"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"})
ENGINE = Engine(policy=Policy(), version=KubernetesVersion(1, 37))


def constraint(key, action, app="web", **more):
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector, **more}


ZONE = constraint("topology.kubernetes.io/zone", "DoNotSchedule", matchLabelKeys=["pod-template-hash"])
HOST = constraint("kubernetes.io/hostname", "ScheduleAnyway")
WRONG = constraint("topology.kubernetes.io/zone", "DoNotSchedule", "other", matchLabelKeys=["pod-template-hash"])


def container(number):
    return {
        "name": f"c{number}",
        "image": f"registry.example/team/app-{number}:1.2.3",
        "ports": [{"containerPort": 8080 + number, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def deployment(*constraints):
    fields = {f"f:{name}": {} for name in ("replicas", "selector", "strategy", "template", "progressDeadlineSeconds")}
    labels = {"app": "web", "app.kubernetes.io/name": "web", "team": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "14e00b09-9eb3-469b-82a6-607c5686704f",
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": fields}}],
        },
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container(number) for number in range(3)],
                    "topologySpreadConstraints": list(constraints),
                    "serviceAccountName": "web",
                    "schedulerName": "default-scheduler",
                },
            },
        },
        "status": {},
    }


def review(new, old=None):
    """Return the posted bytes. A review with a single object has an annotation to fill it up to 6 KiB."""
    request = {
        "uid": "5c942f51-9f2c-48e7-ad97-689e4f10e082",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "name": "web",
        "namespace": "shop",
        "operation": "UPDATE" if old else "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
    }
    body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    if old is None:
        new["metadata"]["annotations"]["filled"] = "x" * (BYTES - len(body) - len(', "filled": ""'))
        body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    return body.encode()


CASES = {
    "no constraints": review(deployment()),
    "two right constraints": review(deployment(ZONE, HOST)),
    "one warning": review(deployment(WRONG, HOST)),
    "unchanged update, one wrong": review(deployment(WRONG, HOST), deployment(WRONG, HOST)),
}


def beside_nodes(without_zone, room=ROOM):
    """Return an engine with a cluster: three zones, five pools (one tainted), 20 labels a node."""
    index = ClusterIndex()
    for number in range(NODES):
        labels = {"kubernetes.io/hostname": f"node-{number}", "pool": f"pool-{number % 5}"}
        labels |= {f"example.com/label-{n}": f"value-{n}" for n in range(17)}
        if not without_zone or number % without_zone:
            labels["topology.kubernetes.io/zone"] = f"zone-{number % 3}"
        taints = (Taint(key="dedicated", value="batch", effect="NoSchedule"),) if number % 5 == 4 else None
        meta = ObjectMeta(name=f"node-{number}", labels=labels)
        index.apply("ADDED", Node(metadata=meta, spec=NodeSpec(taints=taints), status=room))
    return Engine(policy=ENGINE.policy, version=ENGINE.version, index=index)


def scanned(engine):
    """Return the engine with a controller to scan the cluster, as installed by the chart."""
    return replace(engine, scanned=True)


def call(body, engine=ENGINE):
    return answer("validate", decode_review(body), engine, now="2026-11-21").body


def microseconds(function, *args, rounds=ROUNDS):
    rounds = [seconds / CALLS * 1e6 for seconds in repeat(lambda: function(*args), number=CALLS, repeat=rounds)]
    return statistics.median(rounds), statistics.quantiles(rounds, n=10)[-1]


def times_as_long(body, engine, rounds=ROUNDS):
    """Return the median ratio of a review with a cluster to one without, by processor time, in turns."""

    def one(engine, calls):
        began = time.process_time()
        for _ in range(calls):
            call(body, engine)
        return (time.process_time() - began) / calls

    return statistics.median(one(engine, CALLS // 5) / one(ENGINE, CALLS) for _ in range(rounds))


def figures():
    ratio = times_as_long(CASES["two right constraints"], scanned(beside_nodes(0)), rounds=20)
    return [at_most("review beside 5,000 nodes, scanned, to one alone", ratio, 4.7, "times")]


def main():
    gc.set_threshold(COLLECT_AFTER)  # as in the program
    print(f"{'case':30} {'bytes':>6} {'median µs':>10} {'p90 µs':>8} {'of it the envelope':>19}", end="")
    print(f"{f'{NODES} nodes':>12} {'scanned':>8} {'some unlabelled':>16} {'full':>8}")
    cluster = beside_nodes(0)
    engines = cluster, scanned(cluster), beside_nodes(1000), beside_nodes(0, NO_ROOM)
    for name, body in CASES.items():
        median, high = microseconds(call, body)
        print(
            f"{name:30} {len(body):6} {median:10.1f} {high:8.1f} {microseconds(decode_review, body)[0]:19.1f}", end=""
        )
        beside = [microseconds(call, body, engine, rounds=FEW_ROUNDS)[0] for engine in engines]
        print("{:12.1f} {:8.1f} {:16.1f} {:8.1f}".format(*beside))
    gc.collect()
    gc.freeze()  # as in the program: the cluster is no garbage
    for name, body in CASES.items():
        print(f"{name}, scanned: {times_as_long(body, scanned(cluster)):.2f} times as long as alone")


if __name__ == "__main__":
    main()
