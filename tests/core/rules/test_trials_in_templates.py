"""A fix after which another rule would speak."""

import pytest
from manifest import PLAIN, constraint, examined, findings_of, workload
from msgspec.structs import replace

from webhook.core.api.version import RECORDED
from webhook.core.budget import Missing
from webhook.core.context import Context
from webhook.core.json_edits import Edit
from webhook.core.rules.frame.rule import Finding, NotEvaluated
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.frame.trials import tried_in_templates
from webhook.core.workloads.reading import read_workload

ROOT = "spec.template.spec.topologySpreadConstraints[0]"


def told(rule, manifest):
    """The fix of the one finding of a rule, and its edits: paths below the first constraint."""
    [found] = findings_of(rule, manifest)
    return found.fix, {each.path.removeprefix(ROOT): each.value for each in found.edits}


def selecting(*requirements, **labels):
    wanted = [dict(zip(("key", "operator", "values"), each, strict=False)) for each in requirements]
    return {**constraint("zone soft 1"), "labelSelector": {"matchLabels": labels, "matchExpressions": wanted}}


@pytest.mark.parametrize(
    ("rule", "pods", "given", "expected"),
    [
        pytest.param(
            "label-selector",
            "app=web",
            selecting(("app", "in", ["x"])),
            ("set labelSelector: {matchLabels: {app: web}}", {".labelSelector": {"matchLabels": {"app": "web"}}}),
            id="what follows writes the same field anew",
        ),
        pytest.param(
            "max-skew",
            "app=web",
            {**constraint("zone soft 0 app=web"), "matchLabelKeys": ["a b"], "nodeTaintsPolicy": "x"},
            ("maxSkew: 1", {".maxSkew": 1}),
            id="what is wrong besides is no sequel",
        ),
        pytest.param(
            "label-selector",
            "app=web v=1",
            selecting(("v", "in", ["2"]), ("app", "NotIn", ["web"])),
            ("operator: In", {".labelSelector.matchExpressions[0].operator": "In"}),
            id="what is said already is no sequel",
        ),
        pytest.param(
            "label-selector",
            "role=web",
            selecting(("x", "exists")),
            ("set operator: Exists", {}),
            id="what follows has no edits",
        ),
    ],
)
def test_what_follows_joins_the_fix(rule, pods, given, expected):
    assert told(rule, workload("Deployment", pods, given, selector="")) == expected


def finding(*edits, fix="remove the constraint"):
    return Finding(rule="a", path=ROOT, summary="", fix=fix, edits=edits, key="k")


def asked(*findings):
    """A rule that says one thing of the object of today, and these of any other."""
    later = iter(([finding()], findings, findings))
    return lambda _subject: next(later)


@pytest.fixture
def subject():
    seen = examined(workload("Deployment", "app=web", "zone soft 1 app=web"))
    return Subject(
        workload=seen.workload,
        placed=placed_constraints(seen.workload),
        context=Context(policy=PLAIN, version=RECORDED),
    )


OTHER = Finding(rule="b", path="", summary="", fix="maxSkew: 2", edits=(Edit(f"{ROOT}.maxSkew", 2),), key="b")


@pytest.mark.parametrize(
    ("edits", "later", "fix", "kept"),
    [
        pytest.param([Edit(f"{ROOT}.maxSkew", 2)], [], "maxSkew: 2", True, id="it helps"),
        pytest.param([Edit(f"{ROOT}.maxSkew", 2)], [finding()], "set maxSkew: 2", False, id="it does not help"),
        pytest.param([Edit(f"{ROOT}.maxSkew", 2)], [OTHER], "maxSkew: 2", False, id="another comes, and stays"),
        pytest.param([Edit(ROOT)], [OTHER], "remove the constraint", False, id="its place is another by then"),
        pytest.param([Edit("spec.replicas", 2)], [finding()], "replicas: 2", True, id="nothing that is looked at here"),
        pytest.param([Edit("spec.template.metadata.labels[a]", "b")], [], "add a", True, id="a label"),
    ],
)
def test_a_fix_that_is_not_proven_is_in_words(subject, edits, later, fix, kept):
    text = fix if kept else fix.removeprefix("set ")
    [after], _ = tried_in_templates([finding(*edits, fix=text)], subject, asked(*later))
    assert (after.fix.removeprefix("set "), bool(after.edits)) == (fix.removeprefix("set "), kept)


def test_fixes_join_only_where_that_is_asked_for(subject):
    joining = Finding(
        rule="b", path="", summary="", fix="minDomains: 2", edits=(Edit(f"{ROOT}.minDomains", 2),), key="b"
    )
    later = iter(([finding()], [joining], []))
    fixed = finding(Edit(f"{ROOT}.maxSkew", 2), fix="maxSkew: 2")
    assert len(tried_in_templates([fixed], subject, lambda _subject: next(later)).findings[0].edits) == 2
    assert tried_in_templates([fixed], subject, asked(joining), joins=False).findings[0].edits == ()


def test_findings_without_edits_are_left_alone(subject):
    assert tried_in_templates([finding()], subject, asked()) == ((finding(),), ())


def test_edits_that_do_not_go_together_are_not_joined(subject):
    through = Finding(rule="b", path="", summary="", fix="x", edits=(Edit(f"{ROOT}.maxSkew.x", 2),), key="b")
    [after], _ = tried_in_templates([finding(Edit(f"{ROOT}.maxSkew", 2), fix="maxSkew: 2")], subject, asked(through))
    assert (after.fix, after.edits) == ("set maxSkew: 2", ())


MAX_SKEW = Finding(
    rule="max-skew",
    path=f"{ROOT}.maxSkew",
    summary="s",
    fix="maxSkew: 1",
    edits=(Edit(f"{ROOT}.maxSkew", 1),),
)
BOOM = RuntimeError("broken on purpose")


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(Edit(f"{ROOT}.maxSkew.x", 1), id="it cannot be made"),
        pytest.param(Edit(f"{ROOT}.maxSkew", "x"), id="what it makes cannot be read"),
    ],
)
def test_a_fix_that_cannot_be_tried_is_for_people_and_no_fault(subject, edit):
    ([left], faults) = tried_in_templates([replace(MAX_SKEW, edits=(edit,))], subject, asked())
    assert (left.fix, left.edits, faults) == ("set maxSkew: 1", (), ())


def test_what_is_raised_while_a_fix_is_tried_is_a_fault_of_its_rule(subject):
    times = []

    def raising_later(_):
        yield from ()
        times.append(1)
        if len(times) > 1:
            raise BOOM

    ([left], faults) = tried_in_templates([MAX_SKEW], subject, raising_later)
    assert (left.fix, left.edits) == ("set maxSkew: 1", ())
    assert faults == (NotEvaluated("max-skew", Missing.RULE_FAILED.reason, BOOM),)


def test_a_rule_that_raises_once_the_fix_is_made_is_the_one_at_fault(subject):
    failed = NotEvaluated("b", Missing.RULE_FAILED.reason, BOOM)
    ([left], faults) = tried_in_templates([MAX_SKEW], subject, asked(failed))
    assert (left.edits, faults) == ((), (failed,))


@pytest.mark.parametrize(
    ("constraints", "keys", "tried"),
    [
        pytest.param(1, 0, 16, id="one"),
        pytest.param(2, 1, 16, id="as many as people write"),
        pytest.param(5, 2, 4, id="more"),
        pytest.param(31, 31, 0, id="far more"),
    ],
)
def test_while_a_request_waits_fewer_fixes_of_large_objects_are_tried(constraints, keys, tried):
    manifest = workload("Deployment", "app=web", *["zone hard 1"] * constraints)
    for each in manifest["spec"]["template"]["spec"]["topologySpreadConstraints"]:
        each["matchLabelKeys"] = [f"key-{number}" for number in range(keys)]
        each.pop("labelSelector", None)
    read = read_workload(manifest)
    here = Context(policy=PLAIN, version=RECORDED)
    times = []
    found = [finding(Edit(f"{ROOT}.maxSkew", 2), fix="maxSkew: 2")] * 20
    tried_in_templates(
        found, Subject(workload=read, placed=placed_constraints(read), context=here), lambda _: times.append(1) or ()
    )
    assert len(times) == (tried and tried + 1)  # the first time as it is
