import textwrap

import pytest

from webhook.config import ConfigError, parse_policy
from webhook.core.api.selectors import EVERYTHING, selector_from_labels
from webhook.core.api.types import SpreadConstraint
from webhook.core.policy.defaults import DefaultConstraint, Defaults, DefaultsOverride
from webhook.core.policy.matching import Exemption, Match
from webhook.core.policy.policy import Annotations, Messages, Mode, NamespaceMatch, NamespaceSettings, Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind

HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
MODES = "must be one of off, audit, warn, deny"


def faults(body):
    """The faults of a file whose first two lines are right, without the file's name."""
    with pytest.raises(ConfigError) as raised:
        parse_policy(HEAD + textwrap.dedent(body), file="p", today="2026-11-21")
    return [line.removeprefix("p:") for line in raised.value.render().split("\n")]


def warnings(body):
    loaded = parse_policy(HEAD + textwrap.dedent(body), file="p", today="2026-11-21")
    return [line.removeprefix("warning: p:") for line in loaded.rendered_warnings()]


def policy(body):
    return parse_policy(HEAD + textwrap.dedent(body), today="2026-11-21").policy


def test_a_file_that_says_nothing_gives_the_defaults():
    assert policy("") == Policy()


def test_every_field_arrives_in_the_policy():
    read = policy("""\
        ceiling: deny
        rulesVersion: "1.0"
        capacity: fixed
        domains: {topology.kubernetes.io/zone: [a, b, c]}
        rules: {selector-not-self: deny, selector-too-wide: "off"}
        denyFrom: medium
        stuckThreshold: 0.05
        namespaces:
        - {match: {names: [payments], namespaceSelector: {matchLabels: {tier: x}}}, ceiling: audit,
           scaleIn: guard}
        scaleIn: report
        defaults:
          mode: inject
          defaultConstraints:
          - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, hardWhenDomains: 3}
          overrides:
          - {name: payments, namespaceSelector: {}, podSelector: {matchLabels: {a: b}}, minReplicas: 2,
             defaultConstraints: []}
          matchLabelKeys: off
          fillNullSelector: true
          owners: [{apiVersion: example.com/v1, kind: Thing}]
          fallback: off
          acceptNodeGrowth: true
        workloads:
        - {apiVersion: example.com/v1, kind: Thing, templatePath: "spec.roles[*].template", replicasPath: replicas}
        - {apiVersion: example.com/v1, kind: Db, constraintsPath: spec.spread, podLabels: {db: "{name}"}}
        schedulerNames: [default-scheduler, batch]
        exemptions:
        - {rule: revision-mixed, match: {namespace: legacy, kind: Deployment}, reason: chart, expires: 2027-03-31}
        annotations: {exempt: denials}
        messages: {detail: full, docsURL: "https://example.com", footer: "Ask #platform"}
        maxStaleness: 1m30s
        """)
    zone = SpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
    payments = DefaultsOverride(
        name="payments",
        namespace_selector=EVERYTHING,
        pod_selector=selector_from_labels({"a": "b"}),
        min_replicas=2,
    )
    assert read == Policy(
        ceiling=Mode.DENY,
        capacity="fixed",
        domains={"topology.kubernetes.io/zone": ("a", "b", "c")},
        rules={"selector-not-self": Mode.DENY, "selector-too-wide": Mode.OFF},
        deny_from="medium",
        stuck_threshold=0.05,
        namespaces=(
            NamespaceSettings(
                match=NamespaceMatch(names=("payments",), namespace_selector=selector_from_labels({"tier": "x"})),
                ceiling=Mode.AUDIT,
                scale_in="guard",
            ),
        ),
        scale_in="report",
        defaults=Defaults(
            mode="inject",
            default_constraints=(DefaultConstraint(constraint=zone, hard_when_domains=3),),
            overrides=(payments,),
            match_label_keys="off",
            fill_null_selector=True,
            owners=(("example.com/v1", "Thing"),),
            fallback="off",
            accept_node_growth=True,
        ),
        workloads=(
            EmbeddedKind(
                api_version="example.com/v1",
                kind="Thing",
                template_path="spec.roles[*].template",
                replicas_path="replicas",
            ),
            EmbeddedKind(
                api_version="example.com/v1",
                kind="Db",
                constraints_path="spec.spread",
                pod_labels=(("db", "{name}"),),
            ),
        ),
        scheduler_names=("default-scheduler", "batch"),
        exemptions=(
            Exemption(
                rule="revision-mixed",
                match=Match(namespace="legacy", kind="Deployment"),
                reason="chart",
                expires="2027-03-31",
            ),
        ),
        annotations=Annotations(exempt="denials"),
        messages=Messages(detail="full", docs_url="https://example.com", footer="Ask #platform"),
        max_staleness_seconds=90.0,
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("ceiling: off", Policy(ceiling=Mode.OFF), id="off, unquoted, is a mode and no boolean"),
        pytest.param("ceiling: false", Policy(ceiling=Mode.OFF), id="as a template engine writes it"),
        pytest.param(
            "rules: {selector-null: off}", Policy(rules={"selector-null": Mode.OFF}), id="the same among the rules"
        ),
        pytest.param("rulesVersion: 1.0", Policy(rules_version="1.0"), id="a version is taken as written"),
        pytest.param("ceiling:\nrules:\nexemptions:", Policy(), id="a field without a value is absent"),
        pytest.param("maxStaleness: 1500ms", Policy(max_staleness_seconds=1.5), id="milliseconds"),
        pytest.param("maxStaleness: 1h0.5m", Policy(max_staleness_seconds=3630.0), id="fractions"),
        pytest.param(
            "defaults: {mode: off}",
            Policy(defaults=Defaults(mode="off")),
            id="the mode of the defaults",
        ),
    ],
)
def test_what_people_write_is_understood(body, expected):
    assert policy(body) == expected


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param(
            "ceilling: warn", ['3:1: ceilling: unknown field; did you mean "ceiling"?'], id="a field with a typo"
        ),
        pytest.param(
            "defaults: {fill-null-selector: true}",
            ['3:12: defaults.fill-null-selector: unknown field; did you mean "fillNullSelector"?'],
            id="a field in another spelling",
        ),
        pytest.param(
            "defaultConstraints: []",
            ['3:1: defaultConstraints: unknown field; did you mean "defaults.defaultConstraints"?'],
            id="a field in the wrong place",
        ),
        pytest.param(
            "exemptions: [{rule: revision-mixed, match: {namespace: a}, kind: Deployment, reason: x}]",
            ['3:60: exemptions[0].kind: unknown field; did you mean "exemptions[].match.kind"?'],
            id="a field one level too high",
        ),
        pytest.param(
            "namespaces: [{match: {names: [a]}, ceiling: deny, rules: {}}]",
            ["3:51: namespaces[0].rules: unknown field; rules is a top-level field"],
            id="a field one level too low",
        ),
        pytest.param(
            "defaults: {ceiling: warn}",
            ["3:12: defaults.ceiling: unknown field; ceiling is a top-level field"],
            id="a field in two places",
        ),
        pytest.param(
            "spec: {ceiling: warn}",
            ["3:1: spec: unknown field; a SpreadPolicy has no spec: its fields are at the top level"],
            id="the spec of other Kubernetes objects",
        ),
        pytest.param("zzz: 1", ["3:1: zzz: unknown field"], id="a field like no other"),
        pytest.param(
            "defaults: {overrides: [{name: a, defaultConstraints: [], minReplica: 2}]}",
            ['3:58: defaults.overrides[0].minReplica: unknown field; did you mean "minReplicas"?'],
            id="a field deep inside",
        ),
        pytest.param(
            "ceiling: dney", [f'3:10: ceiling: {MODES}, is "dney"; did you mean "deny"?'], id="a mode, mistyped"
        ),
        pytest.param(
            "ceiling: enforce",
            [f'3:10: ceiling: {MODES}, is "enforce"; did you mean "deny"?'],
            id="another tool's word",
        ),
        pytest.param("ceiling: enabled", [f'3:10: ceiling: {MODES}, is "enabled"'], id="a word that is no mode here"),
        pytest.param(
            "defaults: {mode: enabled}",
            ['3:18: defaults.mode: must be one of off, observe, inject, is "enabled"; did you mean "inject"?'],
            id="the same word where it has a meaning",
        ),
        pytest.param(
            "ceiling: on",
            [f'3:10: ceiling: {MODES}, is the boolean true; YAML reads "on" as a boolean'],
            id="a word that YAML makes a boolean",
        ),
        pytest.param("ceiling: true", [f"3:10: ceiling: {MODES}, is the boolean true"], id="a boolean as written"),
        pytest.param("ceiling: 3", [f"3:10: ceiling: {MODES}, is the number 3"], id="a number for a mode"),
        pytest.param("ceiling: [deny]", [f"3:10: ceiling: {MODES}, is a list"], id="a list for a mode"),
        pytest.param(
            "rules: {replicas-do-not-fit: {Pod: deny}}",
            [f"3:30: rules.replicas-do-not-fit: {MODES}, is a mapping"],
            id="a mode by kind: feasibility never denies on Pods",
        ),
        pytest.param(
            "rules: {selector-not-sef: deny}",
            ['3:9: rules.selector-not-sef: unknown rule; did you mean "selector-not-self"?'],
            id="a rule, mistyped",
        ),
        pytest.param(
            "exemptions: [{rule: 5, match: {kind: Job}, reason: x}]",
            ["3:21: exemptions[0].rule: unknown rule 5"],
            id="a rule that is a number",
        ),
        pytest.param("rules: {qqq: deny}", ["3:9: rules.qqq: unknown rule"], id="a rule like no other"),
        pytest.param("rules: [selector-null]", ["3:8: rules: must be a mapping, is a list"], id="a list of rules"),
        pytest.param(
            "rulesVersion: 1.2",
            ["3:15: rulesVersion: 1.2 is newer than the latest rules of this release, 1.1"],
            id="rules of a later release",
        ),
        pytest.param(
            "rulesVersion: latest",
            ['3:15: rulesVersion: must be a version such as "1.0", is "latest"'],
            id="a version that is none",
        ),
        pytest.param(
            "capacity: grow",
            ['3:11: capacity: must be one of auto, fixed, growing, is "grow"; did you mean "growing"?'],
            id="capacity",
        ),
        pytest.param(
            "domains: {zone: [1, true, a]}",
            [
                "3:18: domains.zone[0]: must be a string, is the number 1; quote it",
                "3:21: domains.zone[1]: must be a string, is the boolean true; quote it",
            ],
            id="domains that are no text",
        ),
        pytest.param(
            "stuckThreshold: 1.5", ["3:17: stuckThreshold: must be at most 1, is 1.5"], id="a share above all"
        ),
        pytest.param(
            "messages:\n  docsURL: |\n    https://example.com\n",
            ['4:12: messages.docsURL: must be an address, is "https://example.com\\n"'],
            id="a line break at the end",
        ),
        pytest.param(
            "denyFrom: hihg",
            ['3:11: denyFrom: must be one of none, high, medium, low, is "hihg"; did you mean "high"?'],
            id="a misspelt severity",
        ),
        pytest.param(
            "stuckThreshold: 1%", ['3:17: stuckThreshold: must be a number, is "1%"'], id="a share in per cent"
        ),
        pytest.param(
            "namespaces: [{match: {}, ceiling: deny}, {match: {names: [team-*]}},\n {scaleIn: guard}]",
            [
                "3:22: namespaces[0].match: must not be empty",
                '3:59: namespaces[1].match.names[0]: must be a lowercase name without wildcards, is "team-*"',
                "4:2: namespaces[2].match: is required",
            ],
            id="namespaces",
        ),
        pytest.param(
            "defaults: {acceptNodeGrowth: 'yes', overrides: [{name: a, minReplicas: 0, defaultConstraints: []}]}",
            [
                '3:30: defaults.acceptNodeGrowth: must be true or false, is "yes"',
                "3:72: defaults.overrides[0].minReplicas: must be at least 1, is 0",
            ],
            id="a quoted boolean and a count of nothing",
        ),
        pytest.param(
            "workloads: [{apiVersion: apps/v1, kind: Deployment, templatePath: spec.template}]",
            ["3:13: workloads[0]: apps/v1 Deployment is built into Kubernetes and needs no entry"],
            id="a built-in kind",
        ),
        pytest.param(
            """\
            workloads:
            - {apiVersion: example.com/v1, kind: Thing, templatePath: spec.template}
            - {apiVersion: example.com/v1, kind: Thing, templatePath: "spec[0].template"}
            - {apiVersion: example.com/v1, kind: thing}
            """,
            [
                "5:3: workloads[1]: example.com/v1 Thing is already in workloads[0]",
                '5:59: workloads[1].templatePath: must be a path such as spec.roles[*].template, is "spec[0].template"',
                "6:3: workloads[2].templatePath: is required without constraintsPath",
                '6:38: workloads[2].kind: must be a kind such as Deployment, is "thing"',
            ],
            id="kinds that embed a template",
        ),
        pytest.param(
            """\
            workloads:
            - {apiVersion: a.io/v1, kind: A, templatePath: spec.t, constraintsPath: spec.c}
            - {apiVersion: a.io/v1, kind: B, templatePath: spec.t, podLabels: {app: x}}
            - {apiVersion: a.io/v1, kind: C, constraintsPath: spec.c, selectorPath: spec.s}
            - {apiVersion: a.io/v1, kind: D, constraintsPath: ".c", podLabels: {app: 1}}
            """,
            [
                (
                    "4:56: workloads[0].constraintsPath: cannot be combined with templatePath; "
                    "a pod template contains its own constraints"
                ),
                (
                    "5:56: workloads[1].podLabels: can only be used with constraintsPath; "
                    "a pod template contains its own labels"
                ),
                (
                    "6:59: workloads[2].selectorPath: can only be used with templatePath; "
                    "with constraintsPath, use podLabels"
                ),
                '7:51: workloads[3].constraintsPath: must be a path such as spec.roles[*].template, is ".c"',
                "7:74: workloads[3].podLabels.app: must be a string, is the number 1; quote it",
            ],
            id="kinds with constraints outside of a template",
        ),
        pytest.param("schedulerNames: []", ["3:17: schedulerNames: must not be empty"], id="no scheduler"),
        pytest.param(
            "schedulerNames: [a, a]", ["3:17: schedulerNames: must not have an entry twice"], id="one scheduler twice"
        ),
        pytest.param(
            """\
            exemptions:
            - {rule: revision-mixd, match: {}, reason: "", expires: 2027-02-29}
            - {rule: revision-mixed, match: {namespace: a}, reason: x, expires: 31.3.2027}
            """,
            [
                '4:10: exemptions[0].rule: unknown rule "revision-mixd"; did you mean "revision-mixed"?',
                "4:32: exemptions[0].match: must not be empty",
                "4:44: exemptions[0].reason: must not be empty",
                "4:57: exemptions[0].expires: 2027-02-29 is not a calendar date",
                '5:69: exemptions[1].expires: must be a date such as 2027-03-31, is "31.3.2027"',
            ],
            id="every fault of an exemption at once",
        ),
        pytest.param(
            "exemptions: [selector-null]\nrules: {qqq: deny}",
            ['3:14: exemptions[0]: must be a mapping, is "selector-null"', "4:9: rules.qqq: unknown rule"],
            id="an exemption that is only a word",
        ),
        pytest.param(
            "maxStaleness: 60",
            ["3:15: maxStaleness: must be a duration such as 60s or 1m30s, is the number 60"],
            id="a duration without a unit",
        ),
        pytest.param(
            "maxStaleness: 1 minute",
            ['3:15: maxStaleness: must be a duration such as 60s or 1m30s, is "1 minute"'],
            id="a duration in words",
        ),
        pytest.param(
            "maxStaleness: 0s",
            ['3:15: maxStaleness: must be above 0s and at most 24h, is "0s"'],
            id="no duration at all",
        ),
        pytest.param(
            f"maxStaleness: {'9' * 400}h",
            [f'3:15: maxStaleness: must be above 0s and at most 24h, is "{"9" * 63}…"'],
            id="a duration beyond all numbers",
        ),
        pytest.param(
            f"messages: {{footer: {'x' * 513}}}",
            ["3:20: messages.footer: must have at most 512 characters"],
            id="a footer that is a book",
        ),
        pytest.param(
            "schedulerConfiguration: 5",
            ["3:25: schedulerConfiguration: must be a string, is the number 5; quote it"],
            id="a path that is no text",
        ),
    ],
)
def test_a_fault_in_a_file(body, lines):
    assert faults(body) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "kind: SpreadPolicy\n",
            ["1:1: apiVersion: is required"],
            id="no apiVersion",
        ),
        pytest.param(
            "apiVersion: config.evenspread.io/v1\nkind: SpreadPolcy\n",
            [
                '1:13: apiVersion: must be config.evenspread.io/v1alpha1, is "config.evenspread.io/v1"',
                '2:7: kind: must be SpreadPolicy, is "SpreadPolcy"',
            ],
            id="another version and kind",
        ),
        pytest.param("- a\n", ["1:1: must be a mapping, is a list"], id="a list"),
        pytest.param("hello\n", ['1:1: must be a mapping, is "hello"'], id="a word"),
    ],
)
def test_a_file_that_is_no_policy(text, lines):
    with pytest.raises(ConfigError) as raised:
        parse_policy(text, file="p")
    assert str(raised.value).split("\n") == [f"p:{line}" for line in lines]


def test_very_many_faults_are_counted():
    lines = faults("\n".join(f"x{n}: 1" for n in range(150)))
    assert len(lines) == 101
    assert lines[-1] == "p: 50 more faults".removeprefix("p:")


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param(
            "exemptions: [{rule: revision-mixed, match: {namespace: a}, reason: x, expires: 2026-11-20}]",
            ["3:80: exemptions[0].expires: the exemption expired after 2026-11-20 and has no effect"],
            id="an exemption that is over",
        ),
        pytest.param(
            "exemptions: [{rule: revision-mixed, match: {namespace: a}, reason: x, expires: 2026-11-21}]",
            [],
            id="an exemption on its last day",
        ),
        pytest.param(
            "namespaces: [{match: {names: [a]}, ceiling: deny}, {match: {names: [b, a]}, ceiling: warn}]",
            ["3:72: namespaces[1].match.names[1]: has no effect: namespaces[0] matches a, and the first match wins"],
            id="a namespace that an earlier entry took",
        ),
        pytest.param(
            "namespaces: [{match: {names: [a], namespaceSelector: {matchLabels: {t: x}}}, ceiling: deny},"
            " {match: {names: [a]}, ceiling: warn}]",
            [],
            id="an earlier entry that takes only some",
        ),
        pytest.param(
            "ceiling: off\nnamespaces: [{match: {names: [a]}, ceiling: deny}]",
            ["4:14: namespaces[0]: has no effect: the global ceiling is off, and nothing overrides it"],
            id="a ceiling under the kill switch",
        ),
        pytest.param(
            "ceiling: off\nnamespaces: [{match: {names: [a]}, scaleIn: guard}]",
            [],
            id="the kill switch concerns rules, not scale-ins",
        ),
        pytest.param(
            "defaults: {overrides: [{name: a, podSelector: {}, defaultConstraints: []},"
            " {name: b, minReplicas: 2, defaultConstraints: []}]}",
            [
                (
                    "3:76: defaults.overrides[1]: has no effect: defaults.overrides[0] matches every pod, "
                    "and the first match wins"
                )
            ],
            id="an override that nothing reaches",
        ),
        pytest.param(
            "defaults: {overrides: [{name: a, minReplicas: 2, defaultConstraints: []},"
            " {name: b, podSelector: {matchLabels: {a: b}}, defaultConstraints: []},"
            " {name: c, defaultConstraints: []}]}",
            [],
            id="overrides that all say something",
        ),
        pytest.param(
            'messages: {docsURL: "example.com/rules"}',
            ['3:21: messages.docsURL: must be an http or https URL, is "example.com/rules"'],
            id="an address without a scheme",
        ),
        pytest.param('messages: {docsURL: "https://example.com/rules"}', [], id="an address"),
    ],
)
def test_a_warning_about_a_file(body, lines):
    assert warnings(body) == lines
