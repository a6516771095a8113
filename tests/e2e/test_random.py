"""Random constraints, right and wrong: of a Rollout we say what kube-apiserver says of the same Deployment."""

import json
import random

import pytest
from e2e.objects import constraint, path, workload
from e2e.registration import registered
from e2e.test_denials import told

CASES = 150
FIELDS = (
    *("maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "minDomains", "nodeAffinityPolicy"),
    *("nodeTaintsPolicy", "matchLabelKeys", "foo", "MaxSkew"),
)
# No fraction that is whole: the API server stores 1.0 in a custom resource as 1, and refuses it in a Deployment.
VALUES = (
    *(None, 0, 1, -1, 1.5, 2147483648, "1", "", "a b", "ScheduleAnyway", "Honor", True),
    *([], {}, ["a"], ["app"], ["v", "v"], [None], {"a": None}),
    *({"matchLabels": {"app": None}}, {"matchLabels": {"app": 1}}, {"matchExpressions": [None]}),
    {"matchExpressions": [{"key": "a", "operator": "In", "values": [None]}]},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]},
    {"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]},
)
LISTS = (None, {}, "x", [None], [1], [[]], 3)


def constraints(choose):
    if choose.random() < 0.05:
        return choose.choice(LISTS)
    made = [constraint() for _ in range(choose.choice([1, 1, 2]))]
    for _ in range(choose.choice([1, 1, 2, 3])):
        choose.choice(made)[choose.choice(FIELDS)] = choose.choice(VALUES)
    # Fields in the order in which the API server writes a custom resource: the first of several wrong types is told.
    return json.loads(json.dumps(made, sort_keys=True))


def said(answer, kind):
    """Nothing of an object that passes, the faults of one that is invalid, the sentence where it cannot be decoded."""
    if answer.status == 201:
        return []
    if kind == "Rollout" or answer.status == 403:  # of a Deployment, only that its pods would be refused
        faults = [(path, text.replace(f"the {kind} ", "the object ")) for path, text in told(answer.message)]
        return faults[0][1] if faults[0][1].startswith("json: ") else faults
    if answer.status == 422:
        return [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]]
    return answer.message.partition("handled as a Deployment: ")[2]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_rollout_hears_what_a_deployment_would(plane, namespace, strict, seed):
    choose = random.Random(seed)  # noqa: S311  cases, not secrets
    differences = []
    with registered(plane, namespace, strict.server):
        for _ in range(CASES):
            field = constraints(choose)
            heard = []
            for kind in ("Deployment", "Rollout"):
                made = workload(kind, "web")
                made["spec"]["template"]["spec"]["topologySpreadConstraints"] = field
                heard.append(said(plane.api.send("POST", f"{path(kind, namespace)}?dryRun=All", made), kind))
            if heard[0] != heard[1]:
                differences.append((field, *heard))

    assert differences == []
