"""kube-apiserver's own words, each under the id of a rule."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest import DENY, RECENT, TODAY, constraint, examined, expression, findings, findings_of, workload

from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, SpreadConstraint
from webhook.core.api.version import ANNOUNCED, OLDEST, KubernetesVersion
from webhook.core.apiserver.validation import are_clearly_valid, validate_constraints
from webhook.core.context import Context
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.review.examination import examine
from webhook.core.rules.rule_set import API_RULES

ROOT = "spec.template.spec.topologySpreadConstraints[0]"


def broken(**fields):
    return {**constraint("zone hard 1 app=web"), **fields}


@pytest.mark.parametrize(
    ("fields", "rule", "text"),
    [
        ({"maxSkew": 0}, "max-skew", ".maxSkew: Invalid value: 0: must be greater than zero"),
        ({"topologyKey": ""}, "topology-key", ".topologyKey: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Never"},
            "when-unsatisfiable",
            '.whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        ({"minDomains": 0}, "min-domains", ".minDomains: Invalid value: 0: must be greater than zero"),
        (
            {"nodeAffinityPolicy": "Maybe"},
            "node-affinity-policy",
            '.nodeAffinityPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
        ),
        (
            {"nodeTaintsPolicy": "Maybe"},
            "node-taints-policy",
            '.nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
        ),
        (
            {"labelSelector": None, "matchLabelKeys": ["app"]},
            "match-label-keys",
            ".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "label-selector",
            (
                ".labelSelector.matchExpressions[0].values: Required value:"
                " must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_errors_of_the_field(fields, rule, text):
    found = findings(workload("Rollout", "app=web", broken(**fields)))
    assert [(name, mode, said) for name, mode, said, _ in found if mode == "deny"] == [(rule, "deny", ROOT + text)]


EXPRESSION = ".labelSelector.matchExpressions[0]"


@pytest.mark.parametrize(
    ("fields", "where", "fix", "edits"),
    [
        ({"maxSkew": 0}, ".maxSkew", "maxSkew: 1", {".maxSkew": 1}),
        ({"maxSkew": None}, ".maxSkew", "add maxSkew: 1", {".maxSkew": 1}),
        (
            {"topologyKey": ""},
            ".topologyKey",
            "set topologyKey to a node label, such as topology.kubernetes.io/zone or kubernetes.io/hostname",
            {},
        ),
        (
            {"whenUnsatisfiable": "schedule-anyway"},
            ".whenUnsatisfiable",
            "whenUnsatisfiable: ScheduleAnyway",
            {".whenUnsatisfiable": "ScheduleAnyway"},
        ),
        (
            {"whenUnsatisfiable": "DoNotScedule"},
            ".whenUnsatisfiable",
            "whenUnsatisfiable: DoNotSchedule",
            {".whenUnsatisfiable": "DoNotSchedule"},
        ),
        (
            {"whenUnsatisfiable": "Never"},
            ".whenUnsatisfiable",
            "choose DoNotSchedule (a requirement) or ScheduleAnyway (a preference)",
            {},
        ),
        (
            {"whenUnsatisfiable": "Never", "minDomains": 2},
            ".whenUnsatisfiable",
            "whenUnsatisfiable: DoNotSchedule",
            {".whenUnsatisfiable": "DoNotSchedule"},
        ),
        (
            {"whenUnsatisfiable": "Never", "minDomains": 2},
            ".minDomains",
            "set whenUnsatisfiable: DoNotSchedule",
            {".whenUnsatisfiable": "DoNotSchedule"},
        ),
        (
            {"whenUnsatisfiable": "scheduleAnyway", "minDomains": 2},
            ".whenUnsatisfiable",
            "set whenUnsatisfiable: ScheduleAnyway and remove minDomains",
            {".whenUnsatisfiable": "ScheduleAnyway", ".minDomains": None},
        ),
        ({"minDomains": 0}, ".minDomains", "remove minDomains", {".minDomains": None}),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            ".minDomains",
            "remove minDomains",
            {".minDomains": None},
        ),
        (
            {"nodeAffinityPolicy": "honour"},
            ".nodeAffinityPolicy",
            "nodeAffinityPolicy: Honor",
            {".nodeAffinityPolicy": "Honor"},
        ),
        (
            {"nodeTaintsPolicy": "Ignored"},
            ".nodeTaintsPolicy",
            "nodeTaintsPolicy: Ignore",
            {".nodeTaintsPolicy": "Ignore"},
        ),
        (
            {"nodeTaintsPolicy": "Ignor"},
            ".nodeTaintsPolicy",
            "nodeTaintsPolicy: Ignore",
            {".nodeTaintsPolicy": "Ignore"},
        ),
        ({"nodeTaintsPolicy": ""}, ".nodeTaintsPolicy", "remove nodeTaintsPolicy", {".nodeTaintsPolicy": None}),
        ({"nodeTaintsPolicy": "Maybe"}, ".nodeTaintsPolicy", "choose Honor or Ignore", {}),
        (
            {"labelSelector": None, "matchLabelKeys": ["pod-template-hash"]},
            ".matchLabelKeys",
            "set labelSelector: {matchLabels: {app: web}}",
            {".labelSelector": {"matchLabels": {"app": "web"}}},
        ),
        (
            {"labelSelector": None, "matchLabelKeys": ["app"]},
            ".matchLabelKeys",
            "set labelSelector: {}",
            {".labelSelector": {}},
        ),
        (
            {"matchLabelKeys": ["a b", "pod-template-hash"]},
            ".matchLabelKeys[0]",
            'remove "a b" from matchLabelKeys',
            {".matchLabelKeys[0]": None},
        ),
        ({"matchLabelKeys": ["a b"] * 65}, ".matchLabelKeys[0]", 'remove "a b" from matchLabelKeys', {}),
        (
            {
                "labelSelector": {
                    "matchLabels": {"app": "web"},
                    "matchExpressions": [{"key": "app", "operator": "Exists"}],
                },
                "matchLabelKeys": ["app", "pod-template-hash", "app"],
            },
            "[2]",
            "remove app from matchLabelKeys",
            {".matchLabelKeys[0]": None, ".matchLabelKeys[2]": None},
        ),
        (
            {"labelSelector": {"matchLabels": {"a b": "web"}}},
            ".labelSelector.matchLabels",
            "set labelSelector: {matchLabels: {app: web}}",
            {".labelSelector": {"matchLabels": {"app": "web"}}},
        ),
        (
            expression(operator="exists"),
            f"{EXPRESSION}.operator",
            "operator: Exists",
            {f"{EXPRESSION}.operator": "Exists"},
        ),
        (
            expression(operator="Gt", values=["1"]),
            f"{EXPRESSION}.operator",
            "set labelSelector: {matchLabels: {app: web}}",
            {".labelSelector": {"matchLabels": {"app": "web"}}},
        ),
        (
            expression(operator="Exists", values=["a"]),
            f"{EXPRESSION}.values",
            "remove values",
            {f"{EXPRESSION}.values": None},
        ),
        (
            expression(operator="In"),
            f"{EXPRESSION}.values",
            "add values: [front]",
            {f"{EXPRESSION}.values": ["front"]},
        ),
        (
            expression(operator="In", values=[]),
            f"{EXPRESSION}.values",
            "values: [front]",
            {f"{EXPRESSION}.values": ["front"]},
        ),
        (
            expression(operator="NotIn"),
            f"{EXPRESSION}.values",
            "set labelSelector: {matchLabels: {app: web}}",
            {".labelSelector": {"matchLabels": {"app": "web"}}},
        ),
    ],
    ids=str,
)
def test_the_fix_follows_from_what_is_written(fields, where, fix, edits):
    found = examined(workload("Deployment", "app=web tier=front", broken(**fields), strategy={"type": "Recreate"}))
    refused = [each.finding for each in found.findings if each.finding.rule in API_RULES]
    told = [(each.fix, each.edits) for each in refused if each.path == f"{ROOT}{where}"]
    expected = fix, tuple(Edit(f"{ROOT}{path}", value) for path, value in edits.items())
    assert told
    assert all(each == expected for each in told)


@pytest.mark.parametrize(
    ("fields", "where", "fix"),
    [
        (
            {"labelSelector": None, "matchLabelKeys": ["v"]},
            ".matchLabelKeys",
            "add a labelSelector that matches the pods, or remove matchLabelKeys",
        ),
        (
            {"labelSelector": {"matchLabels": {"a b": ""}}},
            ".labelSelector.matchLabels",
            "use label keys and values Kubernetes accepts",
        ),
        (expression(operator="Gt"), f"{EXPRESSION}.operator", "use label keys and values Kubernetes accepts"),
    ],
    ids=str,
)
def test_of_pods_whose_labels_are_unknown_it_is_in_words(fields, where, fix):
    found = examined(workload("CloneSet", "", broken(**fields), selector="")).findings
    assert [(each.finding.fix, each.finding.edits) for each in found if each.finding.path == f"{ROOT}{where}"] == [
        (fix, ())
    ]


CHOOSE = "choose DoNotSchedule (a requirement) or ScheduleAnyway (a preference)"


@pytest.mark.parametrize(
    ("actions", "fixes"),
    [
        pytest.param(["hard", "Never"], [CHOOSE], id="not guessed from the one that is left"),
        pytest.param(["hard", "Never", "soft"], [CHOOSE], id="nor where none is left"),
        pytest.param(["hard", "soft", "doNotSchedule"], ["remove the constraint"], id="meant what stands there"),
    ],
)
def test_an_action_beside_others_of_its_key(actions, fixes):
    constraints = [
        {
            **constraint("zone hard 1 app=web"),
            "whenUnsatisfiable": {"hard": "DoNotSchedule", "soft": "ScheduleAnyway"}.get(each, each),
        }
        for each in actions
    ]
    assert [
        each.fix for each in findings_of("when-unsatisfiable", workload("Rollout", "app=web", *constraints))
    ] == fixes


@pytest.mark.parametrize(
    ("skews", "fix", "removed"),
    [
        pytest.param((1, 1, 1), "remove zone[1] and zone[2]", (1, 2), id="they say the same"),
        pytest.param((1, 2, 3), "keep one of zone[0], zone[1] and zone[2]", (), id="which one is right is not known"),
        pytest.param((1, 1, 2), "keep one of zone[0], zone[1] and zone[2]", (), id="one of them differs"),
    ],
)
def test_of_constraints_with_one_key_and_action_the_first_stays_if_they_are_alike(skews, fix, removed):
    found = examined(workload("Rollout", "app=web", *[f"zone soft {skew} app=web" for skew in skews])).findings
    told = {(each.finding.fix, each.finding.edits) for each in found if each.finding.rule == "duplicate-constraint"}
    path = ROOT.removesuffix("[0]")
    assert told == {(fix, tuple(Edit(f"{path}[{number}]") for number in removed))}


MISFITS = [
    ({"maxSkew": "1"}, ".maxSkew", "maxSkew: 1", 1),
    ({"maxSkew": " +2 "}, ".maxSkew", "maxSkew: 2", 2),
    ({"maxSkew": "0"}, ".maxSkew", "write a whole number of at least 1 here, without quotes", None),
    ({"maxSkew": "9999999999"}, ".maxSkew", "write a whole number of at least 1 here, without quotes", None),
    ({"maxSkew": "one"}, ".maxSkew", "write a whole number here, without quotes", None),
    ({"maxSkew": 1.5}, ".maxSkew", "write a whole number here", None),
    ({"matchLabelKeys": "app"}, ".matchLabelKeys", "matchLabelKeys: [app]", ["app"]),
    ({"matchLabelKeys": [1]}, ".matchLabelKeys[0]", '"1"', "1"),
    ({"labelSelector": {"matchLabels": {"v": 1.5}}}, ".labelSelector.matchLabels.v", 'v: "1.5"', "1.5"),
    ({"labelSelector": {"matchLabels": {"a.b/c": True}}}, ".labelSelector.matchLabels.a.b/c", 'a.b/c: "true"', "true"),
    (
        {"labelSelector": {"matchLabels": {"v": -1}}},
        ".labelSelector.matchLabels.v",
        "write it in quotes, because the field needs a string",
        None,
    ),
    ({"labelSelector": {"matchLabels": {"v": []}}}, ".labelSelector.matchLabels.v", "write a string here", None),
    ({"topologyKey": 1}, ".topologyKey", "write it in quotes, because the field needs a string", None),
    ({"labelSelector": "app"}, ".labelSelector", "write matchLabels or matchExpressions here", None),
    (
        {"labelSelector": {"matchLabels": ["app"]}},
        ".labelSelector.matchLabels",
        "write a label and its value here",
        None,
    ),
    ({"matchLabelKeys": {}}, ".matchLabelKeys", "write a value of type []string here", None),
    ({"matchLabelKeys": True}, ".matchLabelKeys", "write a value of type []string here", None),
]


@pytest.mark.parametrize(("fields", "where", "fix", "value"), MISFITS, ids=str)
def test_a_value_of_the_wrong_type_as_the_right_one(fields, where, fix, value):
    manifest = workload("Deployment", "app=web", broken(**fields))
    found = examine(
        manifest,
        Context(policy=DENY, version=RECENT, now=TODAY),
        as_written=lambda path: json.dumps(value_at(manifest, path)),
    )
    [wrong] = [each.finding for each in found.findings]
    assert (wrong.path, wrong.fix) == (f"{ROOT}{where}", fix)
    assert wrong.edits == (() if value is None else (Edit(f"{ROOT}{where}", value),))


@pytest.mark.parametrize(
    ("cpu", "fixes"),
    [
        pytest.param("CPU_REQUEST", ["write a quantity here, such as 100m or 128Mi"], id="text"),
        pytest.param("100m", [], id="a quantity"),
    ],
)
def test_what_belongs_in_a_field_of_a_quantity(cpu, fixes):
    containers = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]
    manifest = workload("Deployment", "app=web", constraint("hostname hard 1 app=web"), containers=containers)
    found = examine(manifest, Context(policy=DENY, version=RECENT, now=TODAY))
    assert [each.finding.fix for each in found.findings if each.finding.rule == "wrong-type"] == fixes


TEXT = "this is text, not a list: "
GO_TEXT = "this is text as Go prints it, not a "
IN_HELM = "in a Helm template write {{{{- toYaml {} | nindent {} }}}}"
OF_CONSTRAINTS = ".Values.topologySpreadConstraints"
BLOCK = f"{TEXT}remove the | or > before it, or {IN_HELM}"
QUOTED = f"{TEXT}remove the quotes, or {IN_HELM}"


@pytest.mark.parametrize(
    ("kind", "where", "text", "fix"),
    [
        pytest.param("Deployment", "", "- maxSkew: 1\n", BLOCK.format(OF_CONSTRAINTS, 8), id="a block of text"),
        pytest.param("CronJob", "", "- maxSkew: 1\n", BLOCK.format(OF_CONSTRAINTS, 12), id="deeper"),
        pytest.param("Pod", "", "# a\n- maxSkew: 1\n", BLOCK.format(OF_CONSTRAINTS, 4), id="higher, with a comment"),
        pytest.param("Rollout", "", '[{"maxSkew": 1}]', QUOTED.format(OF_CONSTRAINTS, 8), id="JSON"),
        pytest.param("Deployment", "", "zone", (TEXT + IN_HELM).format(OF_CONSTRAINTS, 8), id="a word"),
        pytest.param("Deployment", "", "{{ .Values.x }}", (TEXT + IN_HELM).format(OF_CONSTRAINTS, 8), id="a template"),
        pytest.param(
            "Deployment",
            "",
            "[map[maxSkew:1 topologyKey:zone]]",
            (GO_TEXT + "list: " + IN_HELM).format(OF_CONSTRAINTS, 8),
            id="Go's list",
        ),
        pytest.param(
            "CronJob", "", "map[maxSkew:1]", (GO_TEXT + "list: " + IN_HELM).format(OF_CONSTRAINTS, 12), id="Go's map"
        ),
        pytest.param(
            "Deployment", "[0]", "map[maxSkew:1]", (GO_TEXT + "mapping: " + IN_HELM).format(".", 10), id="Go's item"
        ),
        pytest.param(
            "Deployment",
            "[0].labelSelector",
            "map[matchLabels:map[app:web]]",
            (GO_TEXT + "mapping: " + IN_HELM).format(".Values.labelSelector", 12),
            id="Go's selector",
        ),
        pytest.param(
            "Deployment",
            "[0].labelSelector.matchLabels",
            "map[]",
            (GO_TEXT + "mapping: " + IN_HELM).format(".Values.matchLabels", 14),
            id="Go's empty map",
        ),
        pytest.param(
            "Deployment",
            "[0].labelSelector",
            "matchLabels:\n  app: web\n",
            BLOCK.replace("a list", "a mapping").format(".Values.labelSelector", 12),
            id="a selector's text",
        ),
        pytest.param(
            "Deployment",
            "[0].matchLabelKeys",
            "- pod-template-hash\n",
            BLOCK.format(".Values.matchLabelKeys", 12),
            id="the text of keys",
        ),
    ],
)
def test_text_instead_of_a_list_or_a_mapping_says_how_helm_writes_it(kind, where, text, fix):
    manifest = workload(kind, "app=web", broken())
    ways = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
    path = f"{ways.get(kind, 'spec.template.spec')}.topologySpreadConstraints{where}"
    assert "wrong-type" not in {each.finding.rule for each in examined(manifest).findings}
    [wrong] = [each.finding for each in examined(applied(manifest, [Edit(path, text)])).findings]
    assert (wrong.rule, wrong.path, wrong.fix, wrong.edits) == ("wrong-type", path, fix, ())
    assert wrong.by_hand == "the text may come from a template"


@pytest.mark.parametrize("letters", ["\n", "[", "map[", "a", "- "])
def test_long_text_instead_of_a_list_costs_little(letters):
    manifest = workload("Deployment", "app=web", broken())
    given = json.dumps(applied(manifest, [Edit(ROOT.removesuffix("[0]"), letters * 1_000_000)])).encode()
    started = time.thread_time()
    examined(given)
    assert time.thread_time() - started < 1  # not with the square of the text's length


def test_where_the_text_of_a_number_is_not_known_it_is_not_guessed():
    [wrong] = examined(workload("Deployment", "app=web", broken(labelSelector={"matchLabels": {"v": 1}}))).findings
    assert (wrong.finding.fix, wrong.finding.edits) == ("write it in quotes, because the field needs a string", ())


def test_two_constraints_of_one_key_and_action():
    found = findings(workload("Rollout", "app=web", "zone hard 1 app=web", "zone hard 2 app=web"))
    text = '.{topologyKey, whenUnsatisfiable}: Duplicate value: "{topology.kubernetes.io/zone, DoNotSchedule}"'
    assert ("duplicate-constraint", "deny", ROOT + text, "") in found


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "Deployment",
            (
                'Deployment in version "v1" cannot be handled as a Deployment:'
                " json: cannot unmarshal string into Go struct"
                " field TopologySpreadConstraint.spec.template.spec.topologySpreadConstraints.maxSkew of type int32"
            ),
        ),
        (
            "Rollout",
            (
                "json: cannot unmarshal string into Go struct"
                " field TopologySpreadConstraint.spec.template.spec.topologySpreadConstraints.maxSkew of type int32"
            ),
        ),
    ],
)
def test_a_value_of_the_wrong_type(kind, message):
    found = examined(workload(kind, "app=web", broken(maxSkew="1")))
    assert [(each.finding.rule, each.finding.summary) for each in found.findings] == [("wrong-type", message)]
    assert found.decode_error is not None
    assert found.findings[0].finding.path == f"{ROOT}.maxSkew"
    assert found.workload is None


def test_a_null_entry_is_an_empty_constraint():
    found = findings(workload("Rollout", "app=web", None))
    assert [rule for rule, mode, _, _ in found if mode == "deny"] == ["max-skew", "topology-key", "when-unsatisfiable"]


def test_a_custom_resource_may_mean_something_else_by_other_fields():
    manifest = workload("Rollout", "app=web", broken(maxSkew=0), tolerations="any")
    assert [rule for rule, mode, _, _ in findings(manifest) if mode == "deny"] == ["max-skew"]


@pytest.mark.parametrize(
    ("meta", "rules"),
    [
        pytest.param({}, ["match-label-keys"], id="a manifest: the key will be merged into the selector that has it"),
        pytest.param({"uid": "u", "creationTimestamp": "2026-11-21T00:00:00Z"}, [], id="as stored: it has been merged"),
    ],
)
def test_a_stored_pod_has_its_keys_merged(meta, rules):
    manifest = workload("Pod", "app=web", broken(matchLabelKeys=["app"]), meta=meta)
    assert [rule for rule, mode, _, _ in findings(manifest) if mode == "deny"] == rules


WORDS = st.sampled_from([None, "", "app", "a b", "zone", "x" * 64, "-", "a/b/c"])
LABELS = st.none() | st.dictionaries(st.sampled_from(["app", "a b", "zone", "x/y"]), st.sampled_from(["", "web", "-"]))
SELECTORS = st.none() | st.builds(
    LabelSelector,
    match_labels=LABELS,
    match_expressions=st.none() | st.just((LabelSelectorRequirement(key="app", operator="In"),)),
)
CONSTRAINTS = st.lists(
    st.builds(
        SpreadConstraint,
        max_skew=st.sampled_from([None, -1, 0, 1, 2]),
        topology_key=WORDS,
        when_unsatisfiable=st.sampled_from([None, "", "DoNotSchedule", "ScheduleAnyway", "x"]),
        label_selector=SELECTORS,
        min_domains=st.sampled_from([None, None, 0, 1]),
        node_affinity_policy=st.sampled_from([None, None, "Honor", "x"]),
        node_taints_policy=st.sampled_from([None, None, "Ignore", "x"]),
        match_label_keys=st.none() | st.lists(st.sampled_from(["app", "v", "a b", ""]), max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)
VERSIONS = st.integers(OLDEST.minor, ANNOUNCED.minor).map(lambda minor: KubernetesVersion(1, minor))


@given(CONSTRAINTS, VERSIONS)
def test_what_a_first_look_calls_right_has_no_error(constraints, version):
    if are_clearly_valid(constraints):
        assert validate_constraints(constraints, None, "spec", version) == ()


def test_a_first_look_is_enough_for_common_constraints():
    selector = LabelSelector(match_labels={"app": "web"})
    zone, host = (
        SpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            label_selector=selector,
            match_label_keys=("pod-template-hash",),
        )
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    )
    assert are_clearly_valid((zone, host))
    assert not are_clearly_valid((zone, zone))


ZERO = "zone hard 0 app=web"
UNREADABLE = {"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}


@pytest.mark.parametrize(
    ("selector", "read"),
    [
        pytest.param({"matchLabels": {"app": "web"}}, True, id="a selector without a fault"),
        pytest.param(None, True, id="none, which is a fault that stops nothing"),
        pytest.param({}, True, id="an empty one, which is a fault that stops nothing"),
        pytest.param({"matchLabels": {"app": "x"}}, True, id="one that does not match"),
        pytest.param(UNREADABLE, False, id="an operator that there is not"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "In"}]}, False, id="no values"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]}, False, id="values too many"
        ),
        pytest.param({"matchExpressions": [{"key": "a b", "operator": "Exists"}]}, False, id="a key"),
        pytest.param({"matchLabels": {"a b": "web"}}, False, id="a label's key"),
        pytest.param({"matchLabels": {"app": "a b"}}, False, id="a label's value"),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_selector_with_a_fault_keeps_kube_apiserver_from_the_template(kind, selector, read):
    """As recorded of the create path of Kubernetes 1.37.1, for each kind and selector."""
    found = examined(workload(kind, "app=web", ZERO, spec={"selector": selector}))
    unread = {each.rule for each in found.not_evaluated if each.missing.startswith("template")}
    assert ("max-skew" in {each.finding.rule for each in found.findings}) is read
    assert unread == (set() if read else {"max-skew"})


@pytest.mark.parametrize("kind", ["DaemonSet", "Job", "CloneSet"])
def test_other_kinds_are_read_to_the_end(kind):
    found = examined(workload(kind, "app=web", ZERO, spec={"selector": UNREADABLE})).findings
    assert "max-skew" in {each.finding.rule for each in found}


def test_of_what_it_does_not_read_kube_apiserver_warns_of_nothing():
    manifest = workload("Deployment", "app=web", "zone hard 1 null")
    assert len(examined(manifest).warnings) == 1
    assert examined(workload("Deployment", "app=web", "zone hard 1 null", spec={"selector": UNREADABLE})).warnings == ()


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": "1"}]},
            "topologySpreadConstraints[0].maxSkew: cannot unmarshal string into int32",
            id="a constraint",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"labelSelector": {"matchLabels": "app=web"}}]},
            "topologySpreadConstraints[0].labelSelector.matchLabels: cannot unmarshal string into map[string]string",
            id="a field in a field",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": 5}]},
            "spec.template.spec.containers[0].image: cannot unmarshal number into string",
            id="a field that no rule reads",
        ),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="in other words",
        ),
    ],
)
def test_the_warning_of_a_wrong_type_begins_with_the_field(spec, warning):
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web")
    manifest["spec"]["template"]["spec"].update(spec)
    [found] = examined(manifest).findings
    assert (found.finding.rule, found.finding.warning) == ("wrong-type", warning)
