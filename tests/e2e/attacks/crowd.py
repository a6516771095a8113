"""A large cluster in seconds: one node and one pod, copied in etcd under other names.

The API server's watches tell of them as of any others. Made through the API, each would cost client and server a
millisecond.
"""

import base64
import contextlib
import http.client
import itertools
import json
import urllib.parse
from collections.abc import Iterator

from e2e.controlplane.up import ControlPlane
from e2e.objects import HOST, ZONE, path
from e2e.waiting import eventually

AT_ONCE = 100  # of 128 that etcd takes in a transaction
ZONES = "abc"
# Of the same lengths as what stands in the copies.
NODE, POD, APP, RACK, UID = "node-00000", "pod-000000", "app-0000", "rack-0000", "00000000"
NODES_A_RACK = 2


def first_node(plane: ControlPlane) -> None:
    """Ready, as kwok makes it."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    labels = {HOST: NODE, ZONE: ZONES[0], "pool": APP, "rack": RACK, "kubernetes.io/os": "linux"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}
    plane.api.request("POST", "/api/v1/nodes", node | {"status": {"allocatable": amounts, "capacity": amounts}})
    plane.await_nodes()


def first_pod(plane: ControlPlane, namespace: str) -> None:
    _made(plane, namespace)
    where = path("Pod", namespace, POD)
    eventually(lambda: plane.api.request("GET", where)["status"].get("phase") == "Running")


def _made(plane: ControlPlane, namespace: str) -> None:
    spec = {"nodeName": NODE, "containers": [{"name": "c", "image": "busybox"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "labels": {"app": APP}}, "spec": spec}
    plane.api.request("POST", path("Pod", namespace), made)


def placed(plane: ControlPlane, namespace: str, pods: int, nodes: int) -> None:
    """So many pods of one app in a namespace without pods, one after the other on each node."""
    _made(plane, namespace)
    with contextlib.closing(http.client.HTTPConnection(urllib.parse.urlsplit(plane.etcd).netloc, timeout=60)) as etcd:
        pod = _read(etcd, f"/registry/pods/{namespace}/{POD}")
        _write(etcd, (_pod(pod, namespace, number, nodes, 1) for number in range(1, pods)))


def copied(plane: ControlPlane, namespace: str, *, nodes: int, pods: int, apps: int) -> None:
    """So many nodes in three zones and pods of so many apps in all, one after the other on each node."""
    with contextlib.closing(http.client.HTTPConnection(urllib.parse.urlsplit(plane.etcd).netloc, timeout=60)) as etcd:
        node = _read(etcd, f"/registry/minions/{NODE}")
        pod = _read(etcd, f"/registry/pods/{namespace}/{POD}")
        _write(etcd, (_node(node, number) for number in range(1, nodes)))
        _write(etcd, (_pod(pod, namespace, number, nodes, apps) for number in range(1, pods)))


def _node(stored: bytes, number: int) -> tuple[str, bytes]:
    name = f"node-{number:05}"
    zone = ZONE.encode() + b"\x12\x01"  # a map's entry in protobuf: the key, then a text of one letter
    content = stored.replace(NODE.encode(), name.encode()).replace(APP.encode(), f"app-{number % 50:04}".encode())
    content = content.replace(RACK.encode(), f"rack-{number // NODES_A_RACK:04}".encode())
    assert zone + ZONES[0].encode() in content
    content = content.replace(zone + ZONES[0].encode(), zone + ZONES[number % 3].encode())
    return f"/registry/minions/{name}", _numbered(content, 1_000_000 + number)


def _pod(stored: bytes, namespace: str, number: int, nodes: int, apps: int) -> tuple[str, bytes]:
    name = f"pod-{number:06}"
    content = stored.replace(POD.encode(), name.encode()).replace(NODE.encode(), f"node-{number % nodes:05}".encode())
    content = content.replace(APP.encode(), f"app-{number % apps:04}".encode())
    return f"/registry/pods/{namespace}/{name}", _numbered(content, number)


def _numbered(content: bytes, number: int) -> bytes:
    """With another uid: metadata.uid is the only text of 36 bytes that comes right after field 5."""
    at = content.index(b"\x2a\x24") + 2
    return content[:at] + f"{number:08x}".encode() + content[at + len(UID) :]


def _read(etcd: http.client.HTTPConnection, key: str) -> bytes:
    (found,) = _ask(etcd, "range", {"key": _base64(key.encode())})["kvs"]
    return base64.b64decode(found["value"])


def _write(etcd: http.client.HTTPConnection, entries: Iterator[tuple[str, bytes]]) -> None:
    while some := [*itertools.islice(entries, AT_ONCE)]:
        puts = [{"requestPut": {"key": _base64(key.encode()), "value": _base64(value)}} for key, value in some]
        _ask(etcd, "txn", {"success": puts})


def _ask(etcd: http.client.HTTPConnection, method: str, body: dict) -> dict:
    etcd.request("POST", f"/v3/kv/{method}", json.dumps(body))
    answer = etcd.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return json.loads(content)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
