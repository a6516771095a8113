"""Decisions about requests."""

import json

import pytest

from webhook.core.policy import Mode, Policy
from webhook.core.review import Decision, Request, examine, review
from webhook.core.version import KubernetesVersion

DENY = Policy(ceiling=Mode.DENY)


def rollout(*constraints, **meta):
    spec = {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}}}
    spec["template"]["spec"] = {"topologySpreadConstraints": list(constraints)}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", **meta}, "spec": spec}


def zone(**fields):
    return {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def decide(new, old=None, policy=DENY, **fields):
    group, _, version = new["apiVersion"].rpartition("/")
    request = Request(
        uid="u",
        operation="UPDATE" if old else "CREATE",
        group=group,
        version=version,
        kind=new["kind"],
        namespace="shop",
        name=new["metadata"]["name"],
        object=json.dumps(new).encode(),
        old_object=json.dumps(old).encode() if old else None,
    )
    for name, value in fields.items():
        request = type(request)(**{**{f: getattr(request, f) for f in request.__struct_fields__}, name: value})
    return review(request, policy, None, version=KubernetesVersion(1, 37), today="2026-11-21", remaining=lambda: 2.0)


def test_a_template_that_does_not_decode_is_denied_with_its_path():
    decision = decide(rollout(zone(maxSkew="1")))
    assert not decision.allowed
    assert decision.message.startswith("Rollout shop/web: ")
    assert "wrong-type" in decision.message


def test_a_null_selector_is_told():
    assert decide(rollout(zone())).warnings == (
        (
            "evenspread/selector-null: zone[0] has no labelSelector: it counts no pod and spreads nothing;"
            " add labelSelector"
        ),
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"operation": "DELETE", "object": None}, id="a deletion has no new object"),
        pytest.param({"operation": "CONNECT"}, id="a connection"),
        pytest.param({"sub_resource": "scale"}, id="scale has no template"),
        pytest.param({"object": b"{"}, id="what is no JSON"),
        pytest.param({"kind": "Thing"}, id="a kind without a template"),
    ],
)
def test_nothing_is_said_where_there_is_nothing_to_review(fields):
    decision = decide(rollout(zone(maxSkew="1")), **fields)
    assert decision.allowed
    assert decision.warnings == ()


def test_what_the_old_object_had_is_not_denied():
    broken = rollout(zone(maxSkew="1"))
    assert decide(broken, broken).allowed


def test_an_examination_says_what_a_review_would_and_more():
    found = examine(rollout(zone()), Policy(), None, version=KubernetesVersion(1, 37), today="2026-11-21")
    assert [(each.finding.rule, each.mode) for each in found.findings] == [("selector-null", Mode.WARN)]


def test_a_decision_is_a_value():
    assert decide(rollout()) == Decision()
