"""A write of a workload's scale is warned of as the same change of its replicas would be, and never denied."""

import json

import pytest
from build import cluster, running
from core.rules.placement.places import ZONE, with_node
from manifest import FIXED, decide, web
from msgspec.structs import replace

from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Mode

WORDS = "2 of 7 fit: cordoned zone c stays at 0; zone ScheduleAnyway fits 7"
TOLD = (f"evenspread/replicas-do-not-fit: {WORDS}",)
HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


def known(manifest):
    """A cluster of three zones, one of them cordoned, with this object and two of its pods."""
    index = with_node(cluster("a: a0 | b: b0 | c: c0"), "c0", cordoned=True)
    for name, node in (("web-0", "a0"), ("web-1", "b0")):
        index.apply("ADDED", running(name, node))
    if manifest is not None:
        of = TypeMeta(api_version=manifest["apiVersion"], kind=manifest["kind"])
        index.apply("ADDED", decode_object(json.dumps(manifest).encode(), of))
    return index


def scale(replicas):
    meta = {"name": "web", "namespace": "shop", "uid": "u"}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": replicas}}


def scaled(manifest, old=2, new=7, *, policy=FIXED, **fields):
    asked_for = {"sub_resource": "scale", "resource_group": "apps", "resource": "deployments", **fields}
    return decide(scale(new), scale(old), policy, index=known(manifest), **asked_for)


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("Deployment", "deployments"), ("ReplicaSet", "replicasets"), ("StatefulSet", "statefulsets")],
)
def test_more_replicas_than_fit_are_told(kind, resource):
    assert scaled(web(ZONE, kind=kind), resource=resource).warnings == TOLD


def test_more_replicas_than_fit_are_never_denied():
    denying = replace(FIXED, rules={"replicas-do-not-fit": Mode.DENY})
    decision = scaled(web(ZONE), policy=denying)
    assert (decision.allowed, decision.warnings) == (True, TOLD)


def test_nothing_is_said_of_the_rest_of_the_workload():
    manifest = web("zone hard 1 app=other", replicas=2)
    denying = replace(FIXED, rules={"selector-not-self": Mode.DENY})
    decision = scaled(manifest, policy=denying)
    assert (decision.allowed, decision.findings) == (True, ())


@pytest.mark.parametrize(
    ("manifest", "old", "new", "fields"),
    [
        pytest.param(web(ZONE), 1, 2, {}, id="as many as fit"),
        pytest.param(web(ZONE), 9, 7, {}, id="fewer than before"),
        pytest.param(web(ZONE), 2, 7, {"user": HPA}, id="an autoscaler reads no warnings"),
        pytest.param(web(ZONE), 2, 7, {"user": "system:kube-controller-manager"}, id="nor does its manager"),
        pytest.param(web(ZONE), 2, 7, {"sub_resource": "status"}, id="another subresource"),
        pytest.param(web(ZONE), 2, 7, {"resource": "rollouts", "resource_group": "argoproj.io"}, id="another kind"),
        pytest.param(web(ZONE), 2, 7, {"object": b"{"}, id="no JSON"),
        pytest.param(web(ZONE), 2, 7, {"old_object": None}, id="nothing to compare with"),
        pytest.param(None, 2, 7, {}, id="the cluster does not have it yet"),
        pytest.param(web(ZONE, volumes=[{"name": "v" * 9000}]), 2, 7, {}, id="immense"),
        pytest.param(
            web(ZONE, meta={"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "controller": True}]}),
            2,
            7,
            {},
            id="its controller reads no warnings",
        ),
        pytest.param(
            web(ZONE, meta={"annotations": {"evenspread.io/exempt": "replicas-do-not-fit"}}), 2, 7, {}, id="exempt"
        ),
    ],
)
def test_silent(manifest, old, new, fields):
    decision = scaled(manifest, old, new, **fields)
    assert (decision.allowed, decision.warnings) == (True, ())
