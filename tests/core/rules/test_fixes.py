"""A fix that is offered, applied to the manifest, removes its finding and brings no other."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from build import API_VERSIONS, cluster
from core.rules.fixes_of_files import touched
from core.rules.pages import EXAMPLES, NEED_CLUSTER, OPEN, example
from hypothesis import given
from hypothesis import strategies as st
from manifest import TODAY

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import applied, value_at
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine
from webhook.core.rules.rule_set import API_RULES, BY_ID, OFFLINE

ROOT = Path(__file__).resolve().parents[3]
VERBS = ("add ", "remove ", "set ", "move ", "rename ", "run evenspread check --fix")
# Text that reads as a field to be pasted.
_FIELD = re.compile(r"(- )?[\w./\"-]+: .+|\[.*|\{.*", re.DOTALL)
# It is off unless somebody wants a constraint in each workload; another rule may ask to take the only one out.
OPT_IN = Counter({"spread-required": 1})
# A key that no node has, or a constraint that is refused, keeps others from being looked at: notes may come to light.
# So may they where not all pods had a place before.
UNCOVERING = (API_RULES | OFFLINE) | {
    "topology-key-unknown",
    "replicas-do-not-fit",
    "replicas-can-get-stuck",
    "rollout-can-get-stuck",
}
# Where an object cannot be decoded, nothing else has been looked at.
BLIND = "wrong-type"


def looked(manifest, index=None):
    return [
        each.finding
        for each in examine(
            manifest,
            Context(policy=OPEN, index=index, version=RECORDED, now=TODAY),
            as_written=lambda path: written(value_at(manifest, path)),
        ).findings
    ]


def written(value):
    return value if isinstance(value, str) else json.dumps(value)


def check_fixes(manifest, index=None, uncovered=frozenset()):
    """Every fix of every finding; how many there were to apply.

    Shape: what rules in ``uncovered`` say of a constraint that another rule is done with is not looked at.
    """
    before = looked(manifest, index)
    counts = Counter(each.rule for each in before)
    for finding in before:
        if not finding.edits:
            assert not _FIELD.fullmatch(finding.fix), finding
            continue
        after = applied(manifest, finding.edits)
        if finding.rule not in NEED_CLUSTER:  # rules about places may soften or change several constraints
            assert [*touched(manifest, after, finding)] == [], finding
        found = looked(after, index)
        if finding.rule == BLIND:
            assert (finding.rule, finding.path) not in [(each.rule, each.path) for each in found], finding
        else:
            assert same(finding, found) < same(finding, before), finding
            notes = (
                [each for each in found if BY_ID[each.rule].mode is Mode.AUDIT] if finding.rule in UNCOVERING else []
            )
            told = Counter(each.rule for each in found if each not in notes and each.rule not in uncovered)
            assert not told - counts - OPT_IN, (finding, found)
        check_text(manifest, finding)
    return sum(bool(each.edits) for each in before)


def same(finding, findings):
    """How many nobody could tell from it."""
    return sum((each.rule, each.key) == (finding.rule, finding.key) for each in findings)


def check_text(manifest, finding):
    """The text says the same as the edits: what it replaces, or a verb first."""
    if finding.fix.startswith(VERBS):
        return
    [edit] = finding.edits
    pasted = yaml.safe_load(finding.fix)
    assert edit.path == finding.path
    assert value_at(manifest, edit.path) is not None or edit.path.endswith("labelSelector"), finding
    if edit.path.endswith("]") and not re.search(r"\[\D", edit.path):
        assert pasted == edit.value
    else:
        [(key, value)] = pasted.items()
        assert value == edit.value
        assert edit.path.endswith((f".{key}", f"[{key}]"))


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


@pytest.mark.parametrize("rule", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_example_of_each_rule(rule):
    shown = example(rule)
    index = cluster(shown.nodes, labelled=shown.labels) if shown.nodes else None
    for text in (shown.bad, shown.good):
        check_fixes(yaml.safe_load(text), index)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_of_the_readme(path):
    for manifest in documents(path):
        check_fixes(manifest)


LABELS = st.dictionaries(
    st.sampled_from(["app", "tier", "app.kubernetes.io/name", "a b", "v"]),
    st.sampled_from(["web", "1.0", "true", "", "x y", "-"]),
    max_size=3,
)
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "in", "exists", "Equals", "Not-In", "Gt", ""])
REQUIREMENTS = st.fixed_dictionaries(
    {"key": st.sampled_from(["app", "tier", "a b", "v"]), "operator": OPERATORS},
    optional={"values": st.lists(st.sampled_from(["web", "x", "a b"]), max_size=2)},
)
SELECTORS = st.none() | st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(REQUIREMENTS, max_size=2)}
)
TOPOLOGY = [
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "", "rack"),
    *("topology.kubernetes.io/hostname", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zones"),
]
ACTIONS = ["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway", "schedule-anyway", "doNotSchedule", "Never", ""]
POLICIES = st.sampled_from(["Honor", "Ignore", "honour", "", "Maybe"])
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "maxSkew": st.sampled_from([1, 1, 2, 0, -1]),
        "topologyKey": st.sampled_from(TOPOLOGY),
        "whenUnsatisfiable": st.sampled_from(ACTIONS),
        "labelSelector": SELECTORS,
        "minDomains": st.sampled_from([0, 1, 3]),
        "nodeAffinityPolicy": POLICIES,
        "nodeTaintsPolicy": POLICIES,
        "matchLabelKeys": st.lists(
            st.sampled_from(["app", "pod-template-hash", "tier", "a b", "", "nope"]), max_size=3
        ),
    },
)
WRONG = st.sampled_from(
    ["1", " 2", "0", "x", "", 1, 1.5, True, [], {}, ["web"], {"app": 1}, {"matchLabels": {"v": 1.5}}]
)
MISFITS = st.dictionaries(
    st.sampled_from(["maxSkew", "topologyKey", "labelSelector", "minDomains", "matchLabelKeys", "whenUnsatisfiable"]),
    WRONG,
    min_size=1,
    max_size=2,
)
KINDS = ["Deployment", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "Rollout", "CloneSet"]


@st.composite
def objects(draw, constraints=CONSTRAINTS):
    """An object with constraints that have anything wrong with them."""
    kind = draw(st.sampled_from(KINDS))
    labels = draw(LABELS)
    pod = {
        "metadata": {"labels": labels},
        "spec": {"topologySpreadConstraints": draw(st.lists(constraints, min_size=1, max_size=3))},
    }
    if draw(st.booleans()) and not labels:
        del pod["metadata"]
    found = {"apiVersion": API_VERSIONS[kind], "kind": kind}
    if kind == "Pod":
        return {**found, **pod}
    if kind == "CronJob":
        return {**found, "spec": {"jobTemplate": {"spec": {"template": pod}}}}
    body = {"template": pod, "replicas": draw(st.sampled_from([1, 3, 12]))}
    if draw(st.booleans()):
        body["selector"] = {"matchLabels": labels}
    return {**found, "metadata": {"name": "web", "namespace": "shop"}, "spec": body}


@pytest.mark.slow
@given(objects())
def test_every_fix_of_any_object_helps(manifest):
    check_fixes(manifest)


@pytest.mark.slow
@given(objects(st.builds(lambda right, wrong: {**right, **wrong}, CONSTRAINTS, MISFITS)))
def test_every_fix_of_an_object_with_wrong_types_helps(manifest):
    check_fixes(manifest)


@pytest.mark.slow
@given(objects(), st.sampled_from(["a: n1 n2 | b: n3", "a: n1 | b: ~n2 n3 | c: n4", "a: n1"]))
def test_beside_a_cluster_too(manifest, nodes):
    """What kube-apiserver refuses has no place to be asked for: rules about places speak once it is right."""
    check_fixes(manifest, cluster(nodes), {*NEED_CLUSTER, "spread-without-effect"})
