import pytest

from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.well_known import CEILING_LABEL, SCALE_IN_ANNOTATION
from webhook.core.policy.defaults import Defaults, DefaultsOverride, override_for
from webhook.core.policy.lookup import ceiling_for, exemption_for, mode_for, scale_in_for
from webhook.core.policy.matching import Exemption, Match, MatchedObject
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Mode, NamespaceMatch, NamespaceSettings, Policy

TEAM = selector_from_labels({"team": "red"})
NAMED = selector_from_labels({"kubernetes.io/metadata.name": "legacy"})
ENTRIES = (
    NamespaceSettings(match=NamespaceMatch(names=("payments", "shop")), ceiling=Mode.DENY),
    NamespaceSettings(match=NamespaceMatch(namespace_selector=TEAM), ceiling=Mode.AUDIT),
    NamespaceSettings(match=NamespaceMatch(names=("shop",)), ceiling=Mode.DENY),
    NamespaceSettings(match=NamespaceMatch(namespace_selector=NAMED), ceiling=Mode.OFF),
)


@pytest.mark.parametrize(
    ("mode", "ceiling", "capped"),
    [
        pytest.param(Mode.DENY, Mode.WARN, Mode.WARN, id="a ceiling lowers"),
        pytest.param(Mode.AUDIT, Mode.WARN, Mode.AUDIT, id="a ceiling never raises"),
        pytest.param(Mode.WARN, Mode.OFF, Mode.OFF, id="off switches off"),
    ],
)
def test_a_mode_under_a_ceiling(mode, ceiling, capped):
    assert mode.capped(ceiling) is capped


@pytest.mark.parametrize(
    ("ceiling", "namespace", "labels", "expected"),
    [
        pytest.param("warn", "web", {}, "warn", id="the global one where nothing matches"),
        pytest.param("warn", "payments", {}, "deny", id="a namespace by name, above the global one"),
        pytest.param("warn", "shop", {"team": "red"}, "deny", id="the first match wins"),
        pytest.param("warn", "web", {"team": "red"}, "audit", id="a namespace by selector"),
        pytest.param("warn", "legacy", {"team": "blue"}, "off", id="a later entry"),
        pytest.param("warn", "legacy", {CEILING_LABEL: "deny"}, "deny", id="the label raises an entry's"),
        pytest.param("warn", "payments", {CEILING_LABEL: "Deny!"}, "deny", id="a label that is no mode is ignored"),
        pytest.param("off", "payments", {CEILING_LABEL: "deny"}, "off", id="a global off is the kill switch"),
    ],
)
def test_the_ceiling_of_a_namespace(ceiling, namespace, labels, expected):
    policy = Policy(ceiling=Mode(ceiling), namespaces=ENTRIES)
    assert ceiling_for(policy, namespace, labels) is Mode(expected)


GUARDED = {SCALE_IN_ANNOTATION: "guard"}


@pytest.mark.parametrize(
    ("everywhere", "here", "annotations", "expected"),
    [
        pytest.param("off", None, None, "off", id="off by default"),
        pytest.param("report", None, {}, "report", id="the global value"),
        pytest.param("guard", "off", {}, "off", id="the namespace's entry replaces it"),
        pytest.param("off", None, GUARDED, "guard", id="a workload opts in"),
        pytest.param("guard", "guard", {SCALE_IN_ANNOTATION: "off"}, "off", id="a workload opts out"),
        pytest.param("off", "report", {SCALE_IN_ANNOTATION: "yes"}, "report", id="an unknown value is ignored"),
    ],
)
def test_the_treatment_of_a_scale_in(everywhere, here, annotations, expected):
    """The first entry of the namespace has only a ceiling, if ``here`` is None."""
    match = NamespaceMatch(names=("shop",))
    entry = NamespaceSettings(match=match, ceiling=Mode.AUDIT, scale_in=here and ScaleIn(here))
    policy = Policy(scale_in=ScaleIn(everywhere), namespaces=(entry,))
    assert scale_in_for(policy, "shop", {}, annotations) is ScaleIn(expected)
    assert scale_in_for(Policy(), "shop", {}, annotations) is ScaleIn(
        expected if (annotations or {}).get(SCALE_IN_ANNOTATION) == expected else "off"
    )


def test_an_entry_without_a_ceiling_leaves_the_global_one():
    guarded = NamespaceSettings(match=NamespaceMatch(names=("shop",)), scale_in=ScaleIn.GUARD)
    assert ceiling_for(Policy(ceiling=Mode.DENY, namespaces=(guarded,)), "shop", {}) is Mode.DENY


MODES = ("off", "audit", "warn", "deny")


@pytest.mark.parametrize("allowed", ["", "raise", "any", "none"])
@pytest.mark.parametrize("entry", ["", "audit", "deny"])
@pytest.mark.parametrize("label", MODES)
@pytest.mark.parametrize("ceiling", MODES)
def test_what_the_label_may_do(ceiling, label, entry, allowed):
    """Every label under every ceiling: the file's, or one of the namespace's own entry."""
    match = NamespaceMatch(names=("shop",))
    entries = (NamespaceSettings(match=match, ceiling=Mode(entry)),) if entry else ()
    policy = Policy(ceiling=Mode(ceiling), namespaces=entries, namespace_label=allowed)
    before = entry or ceiling
    expected = {
        "raise": max(before, label, key=MODES.index),
        "any": label,
        "none": before,
        "": label if "deny" not in {ceiling, before} else max(before, label, key=MODES.index),
    }[allowed]
    assert ceiling_for(policy, "shop", {CEILING_LABEL: label}) is Mode("off" if ceiling == "off" else expected)
    assert ceiling_for(policy, "shop", {}) is Mode("off" if ceiling == "off" else before)


@pytest.mark.parametrize(
    ("default", "since", "expected"),
    [
        pytest.param("warn", "1.9", "warn", id="as old as the rules version"),
        pytest.param("warn", "1.10", "audit", id="newer than the rules version: 10 comes after 9"),
        pytest.param("off", "2.0", "off", id="newer, but off anyway"),
    ],
)
def test_the_mode_of_a_rule_that_nobody_configured(default, since, expected):
    assert mode_for(Policy(rules_version="1.9"), "selector-null", Mode(default), since) is Mode(expected)


def test_a_configured_mode_holds_for_a_newer_rule_too():
    policy = Policy(rules_version="1.0", rules={"selector-null": Mode.DENY})
    assert mode_for(policy, "selector-null", Mode.WARN, "1.4") is Mode.DENY
    assert mode_for(policy, "selector-empty", Mode.WARN, "1.4") is Mode.AUDIT


WEB = MatchedObject(
    namespace="legacy", namespace_labels={"team": "red"}, kind="Deployment", name="web", labels={"app": "web"}
)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        pytest.param(Match(), True, id="nothing given matches everything"),
        pytest.param(Match(namespace="legacy", kind="Deployment", name="web"), True, id="every field matches"),
        pytest.param(Match(namespace="shop"), False, id="another namespace"),
        pytest.param(Match(namespace="legacy", kind="StatefulSet"), False, id="another kind"),
        pytest.param(Match(namespace="legacy", name="api"), False, id="another name"),
        pytest.param(Match(namespace_selector=TEAM), True, id="the namespace's labels"),
        pytest.param(Match(namespace_selector=NAMED), True, id="the label that every namespace has"),
        pytest.param(Match(selector=TEAM), False, id="the object's labels"),
    ],
)
def test_what_an_exemption_matches(match, matches):
    exemption = Exemption(rule="revision-mixed", match=match, reason="chart pinned")
    found = exemption_for(Policy(exemptions=(exemption,)), "revision-mixed", WEB, "2026-11-21")
    assert found is (exemption if matches else None)


@pytest.mark.parametrize(
    ("rule", "today", "exempt"),
    [
        pytest.param("revision-mixed", "2027-03-31", True, id="through its last day"),
        pytest.param("revision-mixed", "2027-04-01", False, id="not the day after"),
        pytest.param("selector-null", "2027-03-31", False, id="not for another rule"),
    ],
)
def test_when_an_exemption_holds(rule, today, exempt):
    exemption = Exemption(rule="revision-mixed", match=Match(), reason="chart pinned", expires="2027-03-31")
    assert (exemption_for(Policy(exemptions=(exemption,)), rule, WEB, today) is exemption) is exempt


@pytest.mark.parametrize(
    ("namespace_labels", "pod_labels", "replicas", "name"),
    [
        pytest.param({"team": "red"}, {"app": "db"}, 3, "both", id="both selectors match"),
        pytest.param({"team": "red"}, {"app": "web"}, 3, "red", id="the first match wins"),
        pytest.param({"team": "red"}, {}, 1, None, id="fewer replicas than asked for"),
        pytest.param({"team": "red"}, {}, None, None, id="unknown replicas meet no minimum"),
        pytest.param({}, {"app": "db"}, 1, "db", id="no minimum asked for"),
        pytest.param({}, {}, 9, None, id="nothing matches"),
    ],
)
def test_the_override_of_a_pod(namespace_labels, pod_labels, replicas, name):
    database = selector_from_labels({"app": "db"})
    overrides = (
        DefaultsOverride(name="both", namespace_selector=TEAM, pod_selector=database, min_replicas=2),
        DefaultsOverride(name="red", namespace_selector=TEAM, min_replicas=2),
        DefaultsOverride(name="db", pod_selector=database),
    )
    found = override_for(Defaults(overrides=overrides), namespace_labels, pod_labels, replicas)
    assert (found.name if found else None) == name
