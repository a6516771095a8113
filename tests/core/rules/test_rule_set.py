"""A rule registers once: its file, one line in `rule_set.RULES`, its page. A made-up rule walks that path here."""

import importlib
import pkgutil
import sys
import types
from pathlib import Path

import pytest
from build import cluster
from core.rules.pages import PAGES
from manifest import DENY, PLAIN, RECENT, decide, ending_after, examined, headline, request, workload
from msgspec.structs import replace

from webhook.core import rules
from webhook.core.budget import Budget, Missing
from webhook.core.context import Context
from webhook.core.policy.policy import Mode
from webhook.core.review import evaluation, judging, review
from webhook.core.rules import rule_evaluation, rule_set
from webhook.core.rules.frame.rule import NotEvaluated, Rule
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.placement.frame.case import PlacementRule
from webhook.core.rules.rule_evaluation import _FAMILIES
from webhook.core.rules.rule_set import BY_ID, RULES, skipped_rules
from webhook.core.workloads.kinds import BUILT_IN_KINDS

FILE = """
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Need, Rule, Severity

def evaluate(subject):
    for placed in subject.placed:
        yield Finding(rule=MADE_UP.id, path=placed.path, summary="something", key=placed.key)
        if placed.constraint.max_skew == 13:
            raise ValueError("thirteen")

MADE_UP = Rule(
    id="made-up", title="", severity=Severity.LOW, mode=Mode.WARN, why="",
    evaluate=evaluate, needs=(Need.NODES,), highest_on_pods=Mode.WARN,
)
"""
OF_PLACES = """
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.placement.frame.case import PlacementRule

def evaluate(case):
    yield Finding(rule=MADE_UP.id, path=case.placed[0].path, summary=f"{case.wanted} pods", key="")

MADE_UP = PlacementRule(
    id="made-up", title="", severity=Severity.LOW, mode=Mode.WARN, why="",
    of_template=evaluate, concerns=lambda subject, _: subject.workload.kind == "Deployment", unless_warned=True,
)
"""
WEB = workload("Deployment", "app=web", "zone hard 1 app=web", replicas=6)


def registered(monkeypatch, file):
    """The rule of such a file, with one line in the tuple, from which everything else follows."""
    made_up, fresh = types.ModuleType("made_up"), types.ModuleType(rule_set.__name__)
    exec(file, vars(made_up))  # noqa: S102 our own text above
    source = Path(rule_set.__file__).read_text()
    listed = source.replace("    group_caps.GROUP_CAP,\n", "    group_caps.GROUP_CAP,\n    made_up.MADE_UP,\n")
    assert listed != source
    fresh.made_up = made_up  # as if the file imported it
    exec(listed, vars(fresh))  # noqa: S102 our own file, with a line more
    monkeypatch.setitem(sys.modules, rule_set.__name__, fresh)
    evaluating = types.ModuleType(rule_evaluation.__name__)
    exec(Path(rule_evaluation.__file__).read_text(), vars(evaluating))  # noqa: S102 our own file
    for user in (evaluation, judging, review):
        for old, new in ((rule_set, fresh), (rule_evaluation, evaluating)):
            for name in vars(user).keys() & vars(new).keys():
                if getattr(user, name) is getattr(old, name, None):
                    monkeypatch.setattr(user, name, getattr(new, name))
    return made_up.MADE_UP


@pytest.fixture
def made_up(monkeypatch):
    return registered(monkeypatch, FILE)


def said(found):
    return [(str(each.mode), each.finding.summary, each.waived) for each in found if each.finding.rule == "made-up"]


def test_a_rule_that_is_listed_is_asked(made_up):
    found = examined(WEB, replace(DENY, rules={"selector-null": Mode.OFF}))
    assert [each.finding.rule for each in found.findings][-1] == made_up.id
    assert said(found.findings) == [("warn", "something", "")]


def test_a_listed_rule_gets_the_mode_of_the_policy(made_up):
    denying = replace(DENY, rules={made_up.id: Mode.DENY})
    assert said(decide(WEB, policy=denying).findings) == [("deny", "something", "")]
    assert headline(decide(WEB, policy=denying)) == "Deployment shop/web: something"
    pod = workload("Pod", "app=web", "zone hard 1 app=web")
    assert said(decide(pod, policy=denying).findings) == [("warn", "something", "never denies pods or kube-system")]
    assert said(decide(WEB, WEB, policy=denying).findings) == [
        ("warn", "something", "the object had this finding before the update")
    ]
    assert said(decide(WEB, policy=replace(DENY, rules={made_up.id: Mode.OFF})).findings) == []


def test_a_listed_rule_that_raises_hides_no_other_finding(made_up):
    wrong = workload("Deployment", "app=web", "zone hard 13 app=shop")
    found = examined(wrong)
    assert {each.finding.rule for each in found.findings} >= {made_up.id, "selector-not-self"}
    assert [str(each.fault) for each in found.not_evaluated if each.fault] == ["thirteen"]


def test_a_listed_rule_that_needs_the_cluster_runs_out_of_time(made_up):
    def missing(looks):
        context = Context(
            policy=DENY,
            version=RECENT,
            index=cluster("a: n1 | b: n2"),
            budget=Budget(clock=ending_after(looks), until=1.0),
        )
        return review.review(request(WEB), context).not_evaluated

    assert any(NotEvaluated(made_up.id, Missing.NO_TIME.reason) in missing(looks) for looks in range(2, 60))


def test_a_rule_about_places_is_asked_of_each_template(monkeypatch):
    registered(monkeypatch, OF_PLACES)
    assert said(examined(WEB, index=cluster("a: n1 | b: n2 | c: n3")).findings) == [("warn", "6 pods", "")]
    barred = cluster("a: n1 | b: n2 | ~c: ~n3")
    fixed = replace(DENY, capacity="fixed")
    assert "tainted-nodes-counted" in {each.finding.rule for each in examined(WEB, fixed, index=barred).findings}
    assert said(examined(WEB, fixed, index=barred).findings) == []
    assert "made-up" in {each.rule for each in examined(WEB).not_evaluated}
    assert said(examined({**WEB, "kind": "StatefulSet"}, index=barred).findings) == []


def files():
    for room in ("constraint", "cluster", "placement"):
        package = importlib.import_module(f"{rules.__name__}.{room}")
        for file in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(file.name)


def test_every_rule_of_every_file_is_listed_once():
    values = [each for file in files() for each in vars(file).values()]
    several = [rule for each in values if isinstance(each, tuple) for rule in each]
    written = [each for each in (*values, *several) if isinstance(each, Rule)]
    assert {rule.id for rule in written} == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len({id(rule) for rule in written}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_page_and_one_way_to_be_asked(rule):
    assert (PAGES / f"{rule.id}.md").exists()
    of_the_object = rule.evaluate is not None or isinstance(rule, PlacementRule)
    assert of_the_object is (rule.evaluate_written is None)
    assert rule.id in {each.id for family in _FAMILIES for each in family.rules} or not of_the_object


def test_rules_of_one_function_are_reevaluated_together():
    for family in _FAMILIES:
        assert len({(rule.reevaluated, rule.of_api) for rule in family.rules}) == 1, family.rules


@pytest.mark.parametrize("kind", sorted(kind for _, kind in BUILT_IN_KINDS))
@pytest.mark.parametrize("index", [None, cluster("a: n1=2 | b: n2")], ids=["alone", "beside a cluster"])
def test_rules_that_are_not_asked_of_objects_without_constraints_have_no_word_for_them(kind, index):
    found = examined(workload(kind, "app=web")).workload
    for offline in (True, False):
        here = Context(policy=DENY, version=RECENT, index=index, offline=offline)
        subject = Subject(workload=found, placed=placed_constraints(found), context=here)
        silent = [each for each in _FAMILIES if not each.of_any]
        assert len(silent) > len(_FAMILIES) / 2
        assert [answer for each in silent for answer in each.evaluate(subject)] == []


OFF_BY_DEFAULT = {"spread-required"}
ONLY_AUDITED = {
    "min-domains-unreachable",
    "zone-loss-strands-pods",
    "all-in-one-domain",
    "system-defaults-lost",
    "spread-without-effect",
    "constraints-differ-in-group",
    "minimum-below-domains",
    "scale-in-skew",
}


@pytest.mark.parametrize(
    ("rules", "alone", "scanned"),
    [
        pytest.param({}, OFF_BY_DEFAULT, OFF_BY_DEFAULT | ONLY_AUDITED, id="the defaults"),
        pytest.param(
            {"zone-loss-strands-pods": Mode.WARN},
            OFF_BY_DEFAULT,
            OFF_BY_DEFAULT | ONLY_AUDITED - {"zone-loss-strands-pods"},
            id="one is to warn",
        ),
        pytest.param(
            {"topology-key-unknown": Mode.AUDIT},
            OFF_BY_DEFAULT,
            OFF_BY_DEFAULT | ONLY_AUDITED | {"topology-key-unknown"},
            id="one is not to warn",
        ),
        pytest.param(
            {"topology-key-unknown": Mode.OFF, "spread-required": Mode.AUDIT},
            {"topology-key-unknown"},
            ONLY_AUDITED | {"topology-key-unknown", "spread-required"},
            id="one is off and another on",
        ),
        pytest.param(
            {"tainted-nodes-counted": Mode.OFF, "replicas-do-not-fit": Mode.AUDIT},
            OFF_BY_DEFAULT,
            OFF_BY_DEFAULT | ONLY_AUDITED,
            id="what they find keeps others silent",
        ),
    ],
)
def test_rules_of_which_nobody_would_hear(rules, alone, scanned):
    policy = replace(DENY, rules=rules)
    assert skipped_rules(policy, scanned=False) == alone
    assert skipped_rules(policy, scanned=True) == scanned


STRANDED = workload("Deployment", "app=web", "zone hard 1 app=web", selector="app=web", replicas=6)


@pytest.mark.parametrize(
    ("scanned", "rules", "told"),
    [
        pytest.param(False, {}, {"zone-loss-strands-pods": "audit"}, id="nobody else would tell"),
        pytest.param(True, {}, {}, id="the scan tells"),
        pytest.param(
            True, {"zone-loss-strands-pods": Mode.WARN}, {"zone-loss-strands-pods": "warn"}, id="users are told"
        ),
        pytest.param(False, {"zone-loss-strands-pods": Mode.OFF}, {}, id="nobody wants to know"),
    ],
)
def test_what_is_only_audited_is_left_to_the_scan(scanned, rules, told):
    policy = replace(PLAIN, rules=rules)
    index = cluster("a: n1 n2 | b: n3 n4 | c: n5 n6")
    here = Context(policy=policy, version=RECENT, index=index, skipped_rules=skipped_rules(policy, scanned=scanned))
    decision = review.review(request(STRANDED), here)
    found = {each.finding.rule: each.mode for each in decision.findings}
    assert {rule: mode for rule, mode in found.items() if rule == "zone-loss-strands-pods"} == told
    # The scan asks all rules, whatever admission leaves to it.
    assert "zone-loss-strands-pods" in {each.finding.rule for each in examined(STRANDED, PLAIN, index=index).findings}


CROWDED = workload("Deployment", "app=web", "zone hard 1 app=web", selector="app=web", replicas=7)
EXCLUDED = workload(
    "Deployment", "app=web", "zone hard 1 app=web", "hostname hard 1 app=web", selector="app=web", replicas=9
)
STRAY = workload("Deployment", "app=web", "rack hard 1 app=web", "zone soft 1 {}", selector="app=web", replicas=3)


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("mode", [Mode.OFF, Mode.AUDIT])
@pytest.mark.parametrize("rule", [each for each in RULES if each.evaluate_written is None], ids=lambda rule: rule.id)
@pytest.mark.sampled
def test_a_rule_that_is_not_asked_changes_nothing_that_users_are_told(rule, mode, scanned):
    """Whichever it is: some keep others silent by what they find."""
    policy = replace(DENY, rules={**dict.fromkeys(BY_ID, Mode.DENY), rule.id: mode})
    for manifest in (CROWDED, EXCLUDED, STRAY, STRANDED):
        for nodes in ("a: n1 | b: n2 | c: ~n3", "a: n1 n2 | b: n3 n4 | c: n5 n6", "a: n1=2 n2 | b: n3"):
            here = Context(policy=policy, version=RECENT, index=cluster(nodes))
            left = replace(here, skipped_rules=skipped_rules(policy, scanned=scanned))
            every, some = (review.review(request(manifest), each) for each in (here, left))
            assert (some.allowed, some.message, some.warnings) == (every.allowed, every.message, every.warnings), nodes
