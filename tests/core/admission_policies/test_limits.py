"""Which compiled policies the API server refuses for their size, and the field of the policy file that is too large."""

import json

import pytest

from webhook.config import parse_policy
from webhook.core.admission_policies.limits import why_refused
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api.version import RECORDED

SOFT = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}


def refused(fields, suffix=""):
    """The reason for the first refused object."""
    head = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy"}
    policy = parse_policy(json.dumps(head | fields), file="p", today="2026-11-28").policy
    rules = admission_policies(policy, RECORDED, "2026-11-28", suffix=suffix)
    objects = mutating_policies(policy, RECORDED, suffix=suffix) if "defaults" in fields else rules
    return next(filter(None, map(why_refused, objects)), "")


def with_defaults(**fields):
    return {"defaults": {"mode": "inject", "defaultConstraints": [SOFT], **fields}}


def overrides(count):
    return with_defaults(
        overrides=[
            {"name": f"{n}", "podSelector": {"matchLabels": {"team": f"{n:060}"}}, "defaultConstraints": [SOFT]}
            for n in range(count)
        ]
    )


def different(count):
    made = [
        {"name": f"{n}", "defaultConstraints": [SOFT | {"topologyKey": f"{n:04}/zone"}, SOFT]} for n in range(count)
    ]
    return with_defaults(overrides=made)


def named(count):
    return {"namespaces": [{"match": {"names": [f"{n:060}" for n in range(count)]}, "ceiling": "warn"}]}


def exempted(count):
    exemptions = [{"rule": "selector-empty", "match": {"name": f"{n:04}"}, "reason": "x"} for n in range(count)]
    return {"exemptions": exemptions}


def accounts(count):
    return {"controllers": [f"system:serviceaccount:a:{n:04}" for n in range(count)]}


def keys(count):
    return {"domains": {f"{n:060}": ["a"] for n in range(count)}}


def schedulers(count):
    return {"schedulerNames": [f"{n:060}" for n in range(count)]} | with_defaults()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "most", "field", "expression", "chars"),
    [
        pytest.param(overrides, 793, "defaults.overrides", "chosen of evenspread-defaults", "100,064", id="overrides"),
        pytest.param(named, 1_561, "namespaces", "namespaceAt of evenspread-deny", "100,011", id="namespaces"),
        pytest.param(
            exempted, 2_174, "exemptions", "exempt_selector_empty of evenspread-warn", "100,046", id="exemptions"
        ),
        pytest.param(
            accounts, 3_106, "controllers", "not-made-by-a-controller of evenspread-deny", "100,011", id="controllers"
        ),
        pytest.param(keys, 1_465, "domains", "meant of evenspread-warn", "100,055", id="domains"),
        pytest.param(
            *(schedulers, 1_561, "schedulerNames", "has-a-configured-scheduler of evenspread-defaults", "100,036"),
            id="schedulers",
        ),
    ],
)
def test_the_longest_accepted_expression_and_one_entry_more(made, most, field, expression, chars):
    why = f"the expression {expression} has {chars} characters, and kube-apiserver accepts 100,000"
    assert [refused(made(count)) for count in (most, most + 1)] == ["", f"{field} is too large: {why}"]


def test_kubectl_apply_writes_the_object_into_an_annotation():
    """Files of the API server get no annotation."""
    why = "evenspread-defaults has 263,012 bytes, and kubectl apply writes at most 262,078 into an annotation"
    assert [refused(different(count)) for count in (235, 236)] == ["", f"defaults.overrides is too large: {why}"]
    assert refused(different(236), STATIC_SUFFIX) == ""
