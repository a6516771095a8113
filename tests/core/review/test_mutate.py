import json

import msgspec
import pytest
from build import index, owner, policy

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.owners import Awaited
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.mutation import mutate

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4", "uid": "u", "controller": True}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "web-7d4-",
        "labels": {"app": "web", "pod-template-hash": "7d4"},
        "ownerReferences": [OWNER],
    },
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
CLUSTER = index(owner("ReplicaSet/web-7d4", "app=web pod-template-hash=7d4", replicas=3))


def request(raw=POD, **fields):
    told = {"operation": "CREATE", "group": "", "version": "v1", "kind": "Pod", "namespace": "shop"} | fields
    body = raw if raw is None or isinstance(raw, bytes) else json.dumps(raw).encode()
    return AdmissionRequest(uid="1", object=body, **told)


def decide(asked, configured=None, cluster=CLUSTER, **more):
    return mutate(asked, Context(policy=configured or policy(), index=cluster, version=RECORDED), **more)


def test_a_pod_is_patched():
    made = decide(request())
    assert made.allowed
    assert [operation["path"] for operation in made.patch] == [
        "/spec/topologySpreadConstraints",
        "/metadata/annotations",
    ]
    assert made.audit == {"injected": f"revision {made.injection.record.revision}"}
    assert made.awaits is None


def test_raw_json_is_read_too():
    asked = msgspec.structs.replace(request(), object=msgspec.Raw(json.dumps(POD).encode()))
    assert decide(asked).patch == decide(request()).patch


def test_observing_patches_nothing():
    made = decide(request(), policy(mode="observe"))
    assert made.patch == ()
    assert made.audit == {"would-inject": f"revision {made.injection.record.revision}"}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        pytest.param(request(None, operation="DELETE"), "nothing to patch", id="a deletion"),
        pytest.param(request(operation="UPDATE"), "nothing to patch", id="an update: the field is immutable"),
        pytest.param(request(sub_resource="eviction"), "nothing to patch", id="a subresource"),
        pytest.param(request(kind="DaemonSet", group="apps"), "not a pod", id="no template but of a group's workload"),
        pytest.param(request(kind="Pod", group="example.com"), "not a pod", id="a custom Pod"),
        pytest.param(request(b"{"), "unreadable", id="no JSON"),
        pytest.param(request({**POD, "spec": {"topologySpreadConstraints": "x"}}), "unreadable", id="a wrong type"),
        pytest.param(request(b'{"a":' * 9000), "unreadable", id="nested too deep"),
        pytest.param(request({**POD, "spec": {"nodeName": "n1"}}), "has-node-name", id="a reason of defaulting"),
    ],
)
def test_requests_that_pass_unpatched(asked, reason):
    made = decide(asked)
    assert (made.allowed, made.patch, made.reason, made.warnings) == (True, (), reason, ())


def test_an_owner_worth_waiting_for():
    made = decide(request(), cluster=index())
    assert made.awaits == Awaited(api_version="apps/v1", kind="ReplicaSet", namespace="shop", name="web-7d4")
    assert (made.allowed, made.patch) == (True, ())
    waited = decide(request(), cluster=index(), waited=True)
    assert (waited.awaits, waited.reason) == (None, "owner-unknown")


def test_no_cluster_at_all():
    assert decide(request(), cluster=None).reason == "cluster-unknown"
