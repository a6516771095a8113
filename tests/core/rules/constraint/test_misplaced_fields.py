"""Fields of constraints in a wrong place or under a wrong name: kubectl refuses them, and the fix puts them right."""

import copy

import pytest
from manifest import PLAIN

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.review.examination import examine

SELECTOR = {"matchLabels": {"app": "web"}}
ZONE = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": SELECTOR,
}
HOST = ZONE | {"topologyKey": "kubernetes.io/hostname"}
OTHERS = {
    "minDomains": 2,
    "matchLabelKeys": ["pod-template-hash"],
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Honor",
}
SPEC = {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]}
KINDS = {
    "Deployment": ("apps/v1", "spec.template."),
    "StatefulSet": ("apps/v1", "spec.template."),
    "DaemonSet": ("apps/v1", "spec.template."),
    "Job": ("batch/v1", "spec.template."),
    "CronJob": ("batch/v1", "spec.jobTemplate.spec.template."),
    "Rollout": ("argoproj.io/v1alpha1", "spec.template."),
}


def workload(kind="Deployment", *constraints, written=True):
    """An object of the kind, and the path of its template; ``written`` is whether it has the key of the constraints."""
    api_version, path = KINDS[kind]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": copy.deepcopy(SPEC)}
    if written:
        template["spec"]["topologySpreadConstraints"] = [copy.deepcopy(each) for each in constraints] or None
    spec = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": spec}}
    elif kind != "Job":
        spec |= {"selector": SELECTOR}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}, path


def at(value, path):
    for step in filter(None, path.replace("[", ".").replace("]", "").split(".")):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def found(manifest):
    judged = examine(manifest, Context(policy=PLAIN, version=RECORDED, now="2026-01-01"))
    return [each.finding for each in judged.findings], judged.warnings


def check(manifest, path, *names):
    """The one finding about these fields of a mapping; and that kubectl refuses them in these words."""
    findings, strict = found(manifest)
    [finding] = [each for each in findings if each.rule in {"unknown-field", "unread-constraints"}]
    assert finding.rule == "unknown-field"
    assert finding.severity in {None, "high"}
    words = [f'unknown field "{path}.{name}"' for name in sorted(names)]
    assert finding.summary.startswith(f"{', '.join(words)}: ")
    if manifest["kind"] != "Rollout":
        assert set(strict) >= set(words)
    return finding


PLACES = {"pod spec": "spec", "template": "", "container": "spec.containers[0]", "last container": "spec.containers[1]"}


@pytest.mark.parametrize("written", [True, False], ids=["the key is there", "the key is not there"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_beside_its_list_is_moved_into_it(kind, place, written):
    manifest, path = workload(kind, written=written)
    where = f"{path}{PLACES[place]}".removesuffix(".")
    at(manifest, where).update(ZONE)
    finding = check(manifest, where, *ZONE)
    assert finding.fix == (
        f"move maxSkew, topologyKey, whenUnsatisfiable and labelSelector into {path}spec.topologySpreadConstraints"
    )
    right, _ = workload(kind, ZONE)
    assert applied(manifest, finding.edits) == right


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [*ZONE, *OTHERS])
def test_each_field_in_each_place(name, place):
    manifest, path = workload("Deployment", {key: value for key, value in ZONE.items() if key != name})
    where = f"{path}{PLACES[place]}".removesuffix(".")
    value = (ZONE | OTHERS)[name]
    at(manifest, where)[name] = value
    finding = check(manifest, where, name)
    if name == "minDomains":  # not beside ScheduleAnyway
        assert (finding.edits, finding.by_hand) == ((), "the fix would cause min-domains")
        return
    constraint = {key: each for key, each in ZONE.items() if key != name} | {name: value}
    assert applied(manifest, finding.edits) == workload("Deployment", constraint)[0]


def test_an_item_of_its_own_among_the_containers():
    manifest, path = workload("Deployment", written=False)
    at(manifest, f"{path}spec.containers").append(ZONE)
    finding = check(manifest, f"{path}spec.containers[2]", *ZONE)
    assert applied(manifest, finding.edits) == workload("Deployment", ZONE)[0]


def test_above_the_template():
    manifest, _ = workload("Deployment", written=False)
    manifest["spec"].update(ZONE)
    finding = check(manifest, "spec", *ZONE)
    assert applied(manifest, finding.edits) == workload("Deployment", ZONE)[0]


def test_the_rest_of_the_last_item():
    """Items of the list begin right, and the lines after the first one are not indented."""
    manifest, path = workload("Deployment", HOST, {"maxSkew": 1})
    at(manifest, f"{path}spec").update({key: value for key, value in ZONE.items() if key != "maxSkew"})
    finding = check(manifest, f"{path}spec", "topologyKey", "whenUnsatisfiable", "labelSelector")
    assert applied(manifest, finding.edits) == workload("Deployment", HOST, ZONE)[0]


@pytest.mark.parametrize(
    ("constraints", "fields"),
    [
        pytest.param([ZONE, HOST], {"nodeTaintsPolicy": "Honor"}, id="two lack it"),
        pytest.param([ZONE, HOST], {"maxSkew": 2}, id="no constraint lacks it"),
        pytest.param([], {"maxSkew": 2}, id="no whole constraint"),
        pytest.param([ZONE], ZONE | {"maxSkew": "2"}, id="a value that does not fit"),
        pytest.param([ZONE], ZONE | {"topologyKey": "not a key"}, id="a key that does not fit"),
    ],
)
def test_where_it_is_not_known_where_they_belong_people_move_them(constraints, fields):
    manifest, path = workload("Deployment", *constraints)
    at(manifest, f"{path}spec").update(fields)
    finding = check(manifest, f"{path}spec", *fields)
    assert (finding.edits, finding.by_hand) == ((), "the right constraint for the fields is unknown")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="everything in its place"),
        pytest.param({"nodeName": "n1"}, id="another field of a pod"),
        pytest.param({"maxUnavailable": 1, "labels": {}}, id="unknown fields that are none of a constraint"),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": SELECTOR,
                                "matchLabelKeys": ["v"],
                            }
                        ],
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR}
                        ],
                    }
                }
            },
            id="fields of the same names in affinity, right and wrong",
        ),
    ],
)
def test_silence(change):
    manifest, path = workload("Deployment", ZONE, HOST)
    at(manifest, f"{path}spec").update(change)
    assert [each.rule for each in found(manifest)[0]] == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param({"whenUnsatisfied": "DoNotSchedule"}, {"whenUnsatisfiable": "DoNotSchedule"}, id="another ending"),
        pytest.param({"action": "ScheduleAnyway"}, {"whenUnsatisfiable": "ScheduleAnyway"}, id="by its value alone"),
        pytest.param({"max_skew": 2}, {"maxSkew": 2}, id="underscores"),
        pytest.param({"skew": 2}, {"maxSkew": 2}, id="a part of the name"),
        pytest.param({"topology": "zone-key"}, {"topologyKey": "zone-key"}, id="the first part"),
        pytest.param({"selector": SELECTOR}, {"labelSelector": SELECTOR}, id="a selector"),
        pytest.param({"podSelector": SELECTOR}, {}, id="of a name that is not near, nothing is known"),
        pytest.param({"matchLabels": {"app": "web"}}, {"labelSelector": SELECTOR}, id="one level too high"),
        pytest.param({"matchLabel": {"app": "web"}}, {"labelSelector": SELECTOR}, id="and misspelt"),
        pytest.param({"labels": {"app": "web"}}, {"labelSelector": SELECTOR}, id="and a part of the name"),
        pytest.param(
            {"labelSelector": SELECTOR | {"matchLabelKeys": ["pod-template-hash"]}},
            {"labelSelector": SELECTOR, "matchLabelKeys": ["pod-template-hash"]},
            id="one level too deep",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}},
            id="requirements one level too high",
        ),
        pytest.param({"affinityPolicy": "Ignore"}, {"nodeAffinityPolicy": "Ignore"}, id="a policy"),
        pytest.param({"policy": "Ignore"}, {}, id="either policy may be meant"),
        pytest.param({"skew": "2"}, {}, id="a value that does not fit"),
        pytest.param({"weight": 1}, {}, id="nothing like it"),
    ],
)
def test_a_field_of_a_constraint_under_another_name(wrong, right):
    rest = {key: value for key, value in ZONE.items() if key not in {*right, *wrong}}
    manifest, path = workload("Deployment", rest | wrong, HOST | {"topologyKey": "rack"})
    findings, strict = found(manifest)
    [finding] = [each for each in findings if each.rule == "unknown-field"]
    assert finding.path.startswith(f"{path}spec.topologySpreadConstraints[0].")
    assert any(finding.summary.startswith(each) for each in strict)
    if right:
        assert (
            applied(manifest, finding.edits) == workload("Deployment", rest | right, HOST | {"topologyKey": "rack"})[0]
        )
    else:
        assert finding.edits == ()
        assert finding.by_hand
