"""Fields that the API does not have."""

import json

import pytest
from manifest import PLAIN, findings_of

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import Edit, applied
from webhook.core.policy.policy import Mode
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.examination import examine
from webhook.core.review.review import review
from webhook.core.rules.constraint.unknown_fields import right_paths

RULE = "unknown-field"
RIGHT = {
    "maxSkew": 2,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def pod(*constraints, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": _spec(constraints, spec)}


def _spec(constraints, more):
    return ({"topologySpreadConstraints": [*constraints]} if constraints else {}) | more


def rollout(*constraints, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _spec(constraints, spec)}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": selector, "template": template},
    }


def renamed(name, other):
    """The right constraint with another name for one of its fields."""
    return {(other if key == name else key): value for key, value in RIGHT.items()}


def found(manifest, *, rule=RULE):
    return findings_of(rule, manifest, PLAIN)


def keys(manifest):
    """Every finding of a manifest, by rule and key."""
    judged = examine(manifest, Context(policy=PLAIN, version=RECORDED, now="2026-01-01")).findings
    return {(each.finding.rule, each.finding.key) for each in judged}


@pytest.mark.parametrize(
    ("manifest", "path", "remedy", "fix"),
    [
        pytest.param(
            pod(RIGHT | {"minDomain": 3, "whenUnsatisfiable": "DoNotSchedule"}),
            "spec.topologySpreadConstraints[0].minDomain",
            "rename it to minDomains",
            "minDomains: 3",
            id="a letter too few",
        ),
        pytest.param(
            pod(renamed("maxSkew", "maxskew")),
            "spec.topologySpreadConstraints[0].maxskew",
            "rename it to maxSkew",
            "maxSkew: 2",
            id="another case",
        ),
        pytest.param(
            pod(RIGHT | {"maxScew": 1}),
            "spec.topologySpreadConstraints[0].maxScew",
            "remove it, because maxSkew is set too",
            "remove maxScew",
            id="beside the right one",
        ),
        pytest.param(
            pod(RIGHT | {"labelSelector": {"matchLabel": {"app": "web"}}}),
            "spec.topologySpreadConstraints[0].labelSelector.matchLabel",
            "rename it to matchLabels",
            "matchLabels: {app: web}",
            id="in the selector",
        ),
        pytest.param(
            pod(renamed("maxSkew", "my.maxskew")),
            "spec.topologySpreadConstraints[0].my.maxskew",
            "rename it to maxSkew",
            "rename maxskew to maxSkew",
            id="a name with a dot, which is no place in a path",
        ),
        pytest.param(
            pod(RIGHT | {"weight": 1}),
            "spec.topologySpreadConstraints[0].weight",
            "",
            "remove weight",
            id="nothing like it",
        ),
        pytest.param(
            pod(topologySpreadConstraint=[RIGHT]),
            "spec.topologySpreadConstraint",
            "rename it to topologySpreadConstraints",
            "rename topologySpreadConstraint to topologySpreadConstraints",
            id="all constraints",
        ),
        pytest.param(
            rollout(renamed("topologyKey", "topologykey")),
            "spec.template.spec.topologySpreadConstraints[0].topologykey",
            "rename it to topologyKey",
            "topologyKey: topology.kubernetes.io/zone",
            id="in a custom resource",
        ),
        pytest.param(
            rollout(TopologySpreadConstraints=[RIGHT]),
            "spec.template.spec.TopologySpreadConstraints",
            "rename it to topologySpreadConstraints",
            "rename TopologySpreadConstraints to topologySpreadConstraints",
            id="all constraints of a custom resource",
        ),
    ],
)
def test_what_was_meant(manifest, path, remedy, fix):
    [finding] = found(manifest)
    lost = "pods have no such field"
    if manifest["kind"] == "Pod":
        lost = "kube-apiserver drops it, and kubectl refuses the object"
    assert finding.summary == f'unknown field "{path}": {lost}'
    assert (finding.path, finding.remedy, finding.fix) == (path, remedy, fix)
    assert found(json.dumps(manifest).encode()) == [finding]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(RIGHT), id="every field exists"),
        pytest.param(pod(RIGHT, hostNetwrk=True), id="unknown, and nothing of ours"),
        pytest.param(pod(RIGHT, x="y" * 1000), id="unknown and long"),
        pytest.param(pod(**{"topologySpread" * 9: []}), id="a long name"),
        pytest.param(rollout(RIGHT), id="a custom resource"),
        pytest.param(rollout(RIGHT, terminationGracePeriodSeconds="x", maxskew=1), id="what a controller makes of it"),
        pytest.param(
            rollout() | {"spec": {"template": {"maxScew": 1, "spec": {"topologySpreadConstraints": [RIGHT]}}}},
            id="a custom resource whose template has more fields than a pod's",
        ),
    ],
)
def test_silence(manifest):
    assert found(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "edits"),
    [
        pytest.param(
            pod(renamed("maxSkew", "maxskew")),
            (
                Edit("spec.topologySpreadConstraints[0].maxskew"),
                Edit("spec.topologySpreadConstraints[0].maxSkew", 2),
            ),
            id="renamed",
        ),
        pytest.param(
            pod(RIGHT | {"maxScew": 2}), (Edit("spec.topologySpreadConstraints[0].maxScew"),), id="said twice"
        ),
        pytest.param(pod(RIGHT | {"maxScew": 1}), (), id="not where the two differ"),
        pytest.param(
            rollout(TopologySpreadConstraints=[RIGHT | {"maxSkew": 0}]),
            (),
            id="not where the constraints that come to light break other rules",
        ),
        pytest.param(pod(RIGHT | {"minDomain": 3}), (), id="not where the API refuses what was meant"),
        pytest.param(pod(renamed("maxSkew", "maxskew") | {"maxskew": "x"}), (), id="not where its type is wrong"),
        pytest.param(pod(RIGHT | {"weight": 1}), (), id="not where nobody knows what was meant"),
    ],
)
def test_edits_make_it_go_and_bring_nothing(manifest, edits):
    [finding] = found(manifest)
    assert finding.edits == edits
    if edits:
        before, after = keys(manifest), keys(applied(manifest, edits))
        assert after < before
        assert RULE not in {rule for rule, _ in after}


def test_only_so_many_are_tried():
    manifest = pod(*(renamed("maxSkew", "maxskew") | {"topologyKey": f"k{number}"} for number in range(18)))
    assert [bool(each.edits) for each in found(manifest)] == [True] * 16 + [False] * 2


def test_the_order_is_that_of_rules():
    judged = examine(
        pod(renamed("maxSkew", "maxskew") | {"labelSelector": None}),
        Context(policy=PLAIN, version=RECORDED, now="2026-01-01"),
    ).findings
    assert [each.finding.rule for each in judged][:3] == ["max-skew", RULE, "selector-null"]
    assert (judged[1].mode, judged[1].severity) == (Mode.WARN, "high")


def test_the_webhook_leaves_it_to_kube_apiserver():
    request = AdmissionRequest(
        uid="1",
        operation="CREATE",
        group="",
        version="v1",
        kind="Pod",
        object=json.dumps(pod(RIGHT | {"weight": 1})).encode(),
    )
    decision = review(request, Context(policy=PLAIN, version=RECORDED, now="2026-01-01"))
    assert RULE not in {each.finding.rule for each in decision.findings}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(
            pod(renamed("maxSkew", "maxskew")), {"spec.topologySpreadConstraints[0].maxSkew"}, id="another name"
        ),
        pytest.param(pod(RIGHT | {"maxScew": 1}), set(), id="the right one is there"),
        pytest.param(pod(renamed("maxSkew", "maxskew") | {"maxskew": "x"}), set(), id="no fix of it helps"),
    ],
)
def test_where_a_misspelt_field_belongs(manifest, expected):
    judged = examine(manifest, Context(policy=PLAIN, version=RECORDED, now="2026-01-01")).findings
    assert right_paths(each.finding for each in judged) == expected
