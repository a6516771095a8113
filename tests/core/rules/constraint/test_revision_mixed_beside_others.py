"""`revision-mixed` where another rule speaks of the same constraint, and where it cannot be evaluated."""

import pytest
from build import index, node
from manifest import PLAIN

from webhook.core.api.types import ObjectMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, ScaleTarget
from webhook.core.review.examination import examine

RULE = "revision-mixed"
ZONE = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}
HARD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
NOT_COUNTED = [(RULE, "rollouts of kinds other than Deployment")]
SCALED = [(RULE, "replicas (an autoscaler sets them)")]


def term(kind):
    terms = [{"topologyKey": ZONE, "labelSelector": WEB}]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def workload(*constraints, kind="Deployment", replicas=12, labels=WEB["matchLabels"], pod=None, **spec):
    template = {"metadata": {"labels": labels}, "spec": {"topologySpreadConstraints": [*constraints], **(pod or {})}}
    version = {"Rollout": "argoproj.io/v1alpha1", "CloneSet": "apps.kruise.io/v1alpha1"}.get(kind, "apps/v1")
    body = {"selector": WEB, "template": template, "replicas": replicas, **spec}
    if replicas is None:
        del body["replicas"]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": body}


def told(value, scalers=()):
    found = examine(value, Context(policy=PLAIN, version=RECORDED, now="2026-01-01", scalers=scalers))
    rules = {each.finding.rule for each in found.findings} - {"system-defaults-lost"}
    return rules, [(each.rule, each.missing) for each in found.not_evaluated if each.rule == RULE]


@pytest.mark.parametrize(
    ("constraint", "pod", "rules"),
    [
        pytest.param({}, {}, {RULE}, id="nothing else speaks of it"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "x"}}}, {}, {"selector-not-self"}, id="counts others"),
        pytest.param({"labelSelector": None}, {}, {"selector-null"}, id="counts nothing"),
        pytest.param({"labelSelector": {}}, {}, {"selector-empty"}, id="counts nothing, or all"),
        pytest.param({}, term("podAntiAffinity"), {"spread-without-effect"}, id="one pod for each zone"),
        pytest.param({}, {"nodeSelector": {ZONE: "a"}}, {"spread-without-effect"}, id="all pods in one zone"),
        pytest.param({}, term("podAffinity"), {"spread-conflicts-affinity"}, id="affinity keeps them together"),
        pytest.param(
            {"minDomains": 2}, {"nodeSelector": {ZONE: "a"}}, {"spread-conflicts-affinity"}, id="too few zones are left"
        ),
    ],
)
def test_it_is_silent_where_another_rule_speaks_of_the_constraint(constraint, pod, rules):
    assert told(workload(HARD | constraint, pod=pod)) == (rules, [])


def test_it_speaks_of_a_constraint_beside_one_of_which_another_rule_speaks():
    other = HARD | {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    assert told(workload(HARD, other))[0] == {RULE, "selector-not-self"}


def test_of_pods_without_labels_it_says_nothing():
    assert told(workload(HARD, labels={})) == (set(), [])


def scaler(most=10, name="web"):
    target = ScaleTarget(api_version="apps/v1", kind="Deployment", name=name)
    return (
        Autoscaler(
            metadata=ObjectMeta(name="any", namespace="default"),
            spec=AutoscalerSpec(scale_target_ref=target, max_replicas=most),
        ),
    )


@pytest.mark.parametrize(
    ("value", "scalers", "expected"),
    [
        pytest.param(workload(HARD, replicas=None), scaler(), (set(), SCALED), id="an autoscaler sets the replicas"),
        pytest.param(workload(HARD, replicas=None), scaler(1), (set(), []), id="never more than maxSkew"),
        pytest.param(workload(HARD, replicas=None), scaler(name="x"), (set(), []), id="an autoscaler of another"),
        pytest.param(workload(HARD, replicas=None), (), (set(), []), id="one replica"),
        pytest.param(
            workload(HARD, replicas=None, strategy={"type": "Recreate"}), scaler(), (set(), []), id="none beside others"
        ),
        pytest.param(workload(HARD), scaler(), ({RULE}, []), id="replicas are written"),
        pytest.param(workload(HARD, kind="Rollout"), (), (set(), NOT_COUNTED), id="a Rollout"),
        pytest.param(
            workload(HARD, kind="Rollout", strategy={"canary": {"steps": []}}), (), (set(), NOT_COUNTED), id="a canary"
        ),
        pytest.param(workload(HARD, kind="CloneSet"), (), (set(), NOT_COUNTED), id="a CloneSet"),
        pytest.param(
            workload(HARD | {"matchLabelKeys": ["rollouts-pod-template-hash"]}, kind="Rollout"),
            (),
            (set(), []),
            id="each revision of a Rollout for itself",
        ),
        pytest.param(workload(HARD, kind="Rollout", replicas=1), (), (set(), []), id="one replica of a Rollout"),
        pytest.param(workload(HARD, kind="StatefulSet"), (), (set(), []), id="a kind that replaces pods in place"),
    ],
)
def test_where_it_cannot_be_evaluated_it_says_so(value, scalers, expected):
    assert told(value, scalers) == expected


@pytest.mark.parametrize(
    ("replicas", "by_hand"),
    [
        pytest.param(4, "the fix would cause revision-mixed", id="rollouts of 4 were counted over zones, and warn"),
        pytest.param(1, "", id="rollouts of one pod end evenly"),
    ],
)
def test_a_warning_that_nothing_hid_speaks_against_a_fix(replicas, by_hand):
    around = index(*(node(f"n-{zone}", zone, **{BETA_ZONE: zone}) for zone in "bc"))
    manifest = workload({**HARD, "topologyKey": BETA_ZONE}, replicas=replicas)
    examined = examine(manifest, Context(policy=PLAIN, index=around, version=RECORDED, now="2026-11-24"))
    (found,) = (each.finding for each in examined.findings if each.finding.rule == "topology-key-deprecated")
    assert (bool(found.edits), found.by_hand) == (not by_hand, by_hand)
