"""The annotation evenspread.io/scale-in: unknown values, and kinds without a guard."""

import pytest
from manifest import DENY, findings_of, told, web
from msgspec.structs import replace

from webhook.core.json_edits import Edit
from webhook.core.policy.options import ScaleIn

RULE, KEY = "scale-in-annotation", "evenspread.io/scale-in"
EDITED = f"metadata.annotations[{KEY}]"
ZONE = "zone hard 1 app=web"
UNKNOWN = "is no known value"
NEWEST = replace(DENY, rules_version="1.1")


def annotated(value, kind="Deployment", **meta):
    return web(ZONE, kind=kind, meta={"annotations": {KEY: value}, **meta})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("guard", [], id="guard"),
        pytest.param("report", [], id="report"),
        pytest.param("off", [], id="off"),
        pytest.param("guarded", [f"warn {KEY}: guarded {UNKNOWN}; use guard"], id="two letters more"),
        pytest.param("Guard", [f"warn {KEY}: Guard {UNKNOWN}; use guard"], id="a capital"),
        pytest.param("true", [f"warn {KEY}: true {UNKNOWN}; use off, report or guard"], id="another word"),
        pytest.param("", [f'warn {KEY}: "" {UNKNOWN}; use off, report or guard'], id="empty"),
    ],
)
def test_the_value(value, expected):
    assert told(RULE, annotated(value), None, NEWEST) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("Deployment", [], id="a Deployment has ReplicaSets"),
        pytest.param("ReplicaSet", [], id="a ReplicaSet"),
        pytest.param("Rollout", [], id="a Rollout has ReplicaSets"),
        *(
            pytest.param(kind, [f"warn {KEY}: guard has no effect on a {kind}; remove it"], id=kind)
            for kind in ("StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "Pod")
        ),
    ],
)
def test_the_kind(kind, expected):
    assert told(RULE, annotated("guard", kind), None, NEWEST) == expected
    assert told(RULE, annotated("off", kind), None, NEWEST) == []
    assert told(RULE, web(ZONE, kind=kind), None, replace(NEWEST, scale_in=ScaleIn.GUARD)) == []


def test_a_workload_without_constraints():
    bare = web(meta={"annotations": {KEY: "guarded"}})
    assert told(RULE, bare, None, NEWEST) == [f"warn {KEY}: guarded {UNKNOWN}; use guard"]


def test_older_rules_only_audit_it():
    assert told(RULE, annotated("guarded"), None, DENY) == [f"audit {KEY}: guarded {UNKNOWN}; use guard"]


def test_the_copy_of_a_controller_is_silent():
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    assert told(RULE, annotated("guarded", "ReplicaSet", ownerReferences=[owner]), None, NEWEST) == []
    assert len(told(RULE, annotated("guarded", "ReplicaSet"), None, NEWEST)) == 1


@pytest.mark.parametrize(
    ("value", "kind", "fix", "edits"),
    [
        pytest.param("guarded", "Deployment", f"set {KEY}: guard", (Edit(EDITED, "guard"),), id="misspelt"),
        pytest.param("yes", "Deployment", f"set {KEY}: off, report or guard", (), id="unknown"),
        pytest.param("report", "Job", f"remove {EDITED}", (Edit(EDITED),), id="no guard for this kind"),
    ],
)
def test_the_fix(value, kind, fix, edits):
    (finding,) = findings_of(RULE, annotated(value, kind))
    assert (finding.path, finding.fix, finding.edits) == (EDITED, fix, edits)
