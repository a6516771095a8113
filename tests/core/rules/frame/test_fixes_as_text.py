"""What a fix says, and the same as edits."""

import pytest

from webhook.core.api.types import LabelSelector, PodTemplate, SpreadConstraint
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.rules.frame.fixes import Fix, all_of, changes, changes_in, removal, softening
from webhook.core.rules.frame.subject import Placed
from webhook.core.workloads.workload import Template
from webhook.core.yaml_text import flow

AT = "spec.template.spec.topologySpreadConstraints"
TEMPLATE = Template(path="spec.template.", pod=PodTemplate())
ZONE = Placed(
    TEMPLATE,
    0,
    SpreadConstraint(
        max_skew=1,
        topology_key="topology.kubernetes.io/zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=None,
        min_domains=3,
    ),
)
HOST = Placed(
    TEMPLATE,
    1,
    SpreadConstraint(max_skew=2, topology_key="kubernetes.io/hostname", when_unsatisfiable="DoNotSchedule"),
)
SOFT_ZONE = Placed(
    TEMPLATE,
    2,
    SpreadConstraint(max_skew=1, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"),
)


@pytest.mark.parametrize(
    ("fix", "text", "edits"),
    [
        pytest.param(changes(ZONE, maxSkew=2), "maxSkew: 2", {"[0].maxSkew": 2}, id="what replaces the marked text"),
        pytest.param(
            changes(ZONE, labelSelector=LabelSelector(match_labels={"app": "1.0"})),
            'labelSelector: {matchLabels: {app: "1.0"}}',
            {"[0].labelSelector": {"matchLabels": {"app": "1.0"}}},
            id="a value of the model in place of null",
        ),
        pytest.param(
            changes(HOST, matchLabelKeys=("pod-template-hash",)),
            "add matchLabelKeys: [pod-template-hash]",
            {"[1].matchLabelKeys": ["pod-template-hash"]},
            id="an absent field",
        ),
        pytest.param(changes(ZONE, minDomains=None), "remove minDomains", {"[0].minDomains": None}, id="out with it"),
        pytest.param(
            changes(ZONE, at="spec.replicas", maxSkew=2),
            "set maxSkew: 2",
            {"[0].maxSkew": 2},
            id="the finding marks something else",
        ),
        pytest.param(
            changes(ZONE, at=f"{AT}[0].maxSkew", maxSkew=2), "maxSkew: 2", {"[0].maxSkew": 2}, id="it marks the field"
        ),
        pytest.param(
            changes(HOST, named=True, maxSkew=3),
            "set maxSkew: 3 in hostname[1]",
            {"[1].maxSkew": 3},
            id="in another constraint",
        ),
        pytest.param(
            changes(ZONE, maxSkew=2, minDomains=None, nodeTaintsPolicy="Honor"),
            "set maxSkew: 2 and remove minDomains and add nodeTaintsPolicy: Honor",
            {"[0].maxSkew": 2, "[0].minDomains": None, "[0].nodeTaintsPolicy": "Honor"},
            id="several fields",
        ),
        pytest.param(
            changes_in((ZONE, HOST), (ZONE, HOST), nodeTaintsPolicy="Honor"),
            "add nodeTaintsPolicy: Honor in every constraint",
            {"[0].nodeTaintsPolicy": "Honor", "[1].nodeTaintsPolicy": "Honor"},
            id="in every constraint",
        ),
        pytest.param(
            changes_in((ZONE, HOST), (ZONE, HOST, SOFT_ZONE), maxSkew=3, minDomains=None),
            "set maxSkew: 3 and remove minDomains in zone[0] and hostname[1]",
            {"[0].maxSkew": 3, "[0].minDomains": None, "[1].maxSkew": 3, "[1].minDomains": None},
            id="in some constraints",
        ),
        pytest.param(
            changes_in((HOST,), (HOST,), maxSkew=3), "set maxSkew: 3", {"[1].maxSkew": 3}, id="there is no other"
        ),
        pytest.param(removal(HOST), "remove the constraint", {"[1]": None}, id="the whole constraint"),
        pytest.param(removal(HOST, named=True), "remove hostname[1]", {"[1]": None}, id="another one, whole"),
        pytest.param(
            softening(HOST, (ZONE, HOST)),
            "whenUnsatisfiable: ScheduleAnyway",
            {"[1].whenUnsatisfiable": "ScheduleAnyway"},
            id="soft",
        ),
        pytest.param(
            softening(ZONE, (ZONE, HOST), named=True),
            "set whenUnsatisfiable: ScheduleAnyway and remove minDomains in zone[0]",
            {"[0].whenUnsatisfiable": "ScheduleAnyway", "[0].minDomains": None},
            id="soft, which minDomains does not go with",
        ),
        pytest.param(
            all_of((changes(ZONE, maxSkew=2), Fix(), removal(HOST, named=True))),
            "set maxSkew: 2 and remove hostname[1]",
            {"[0].maxSkew": 2, "[1]": None},
            id="two that belong together",
        ),
        pytest.param(all_of((Fix(), changes(ZONE, maxSkew=2))), "maxSkew: 2", {"[0].maxSkew": 2}, id="one of them"),
        pytest.param(all_of(()), "", {}, id="none of them"),
        pytest.param(
            changes(ZONE, topologyKey="a" * 600),
            "run evenspread check --fix, because the fix is too long for one line",
            {"[0].topologyKey": "a" * 600},
            id="too long for a line",
        ),
    ],
)
def test_what_is_said_is_what_is_edited(fix, text, edits):
    assert fix == Fix(text, tuple(Edit(f"{AT}{path}", value) for path, value in edits.items()))


@pytest.mark.parametrize(
    ("fix", "text", "by_hand"),
    [
        pytest.param(
            softening(ZONE, (ZONE, HOST, SOFT_ZONE)),
            "remove the constraint",
            "another ScheduleAnyway constraint has the same topologyKey",
            id="a soft one of the key is there",
        ),
        pytest.param(
            all_of((Fix("label the nodes", by_hand="nodes are no part of the object"), changes(ZONE, maxSkew=2))),
            "set label the nodes and set maxSkew: 2",
            "nodes are no part of the object",
            id="a part of it is for people",
        ),
    ],
)
def test_what_only_people_can_do_says_why(fix, text, by_hand):
    assert fix == Fix(text, by_hand=by_hand)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"app": "web", "v": "1.0"}, '{app: web, v: "1.0"}'),
        ({"app.kubernetes.io/name": "web-v2"}, "{app.kubernetes.io/name: web-v2}"),
        ({"1": "", "on": "No", "a b": "x:"}, '{"1": "", "on": "No", "a b": "x:"}'),
        (["true", True, None, 1, "null"], '["true", true, null, 1, "null"]'),
        ({}, "{}"),
        ("é\x7f\n\U000e0001", r'"é\u007f\n\U000e0001"'),
        ('"', r'"\""'),
        ('"\x00', r'"\"\u0000"'),
        ("-a", '"-a"'),
        ("a-", '"a-"'),
    ],
    ids=str,
)
def test_a_value_on_one_line(value, text):
    assert flow(value) == text


@pytest.mark.parametrize(
    ("value", "edits", "after"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="replaced"),
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="added"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="taken out"),
        pytest.param({"a": None, "b": 2}, {"a.c": 1}, {"a": {"c": 1}, "b": 2}, id="in what was null"),
        pytest.param({}, {"a.b.c": 1}, {"a": {"b": {"c": 1}}}, id="made on the way"),
        pytest.param({}, {"a.b": None}, {}, id="nothing there to take out"),
        pytest.param({"a": [1, 2, 3]}, {"a[0]": None, "a[2]": 4}, {"a": [2, 4]}, id="places are those of before"),
        pytest.param({"a": [1]}, {"a[1]": 2, "a[2]": {"b": 3}}, {"a": [1, 2, {"b": 3}]}, id="behind the last item"),
        pytest.param({"a": [1], "b": [[1]]}, {"a[0]": None, "b[0][0]": None}, {}, id="the last item"),
        pytest.param({"a": [], "b": 1}, {"b": None}, {"a": []}, id="a list that was empty"),
        pytest.param({"a": {"x.y/z": 1, "x": {}}}, {"a.x.y/z": 2}, {"a": {"x.y/z": 2, "x": {}}}, id="a key with dots"),
        pytest.param({"a": {}}, {"a[x.y/z]": 2}, {"a": {"x.y/z": 2}}, id="a new key with dots"),
        pytest.param({"a": 1}, {"": {"b": 1}}, {"b": 1}, id="all of it"),
    ],
)
def test_an_object_with_the_edits(value, edits, after):
    assert applied(value, [Edit(path, new) for path, new in edits.items()]) == after


@pytest.mark.parametrize("path", ["a.b", "a[0]", "b[2]", "b.c", "[0]", "b[x]"])
def test_a_path_that_leads_nowhere(path):
    with pytest.raises(LookupError):
        applied({"a": 1, "b": [{}]}, [Edit(path, 1)])


@pytest.mark.parametrize(
    ("path", "found"), [("a", 1), ("b[0].c.d/e", 2), ("b[1]", None), ("x", None), ("a.b", None), ("", ...)], ids=str
)
def test_what_stands_at_a_path(path, found):
    value = {"a": 1, "b": [{"c.d/e": 2}]}
    assert value_at(value, path) == (value if found is ... else found)
