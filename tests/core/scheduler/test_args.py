"""What kube-scheduler says of the args of PodTopologySpread; each row differs from a good block in what it says."""

import json

import msgspec
import pytest

from webhook.core.api.label_syntax import key_faults
from webhook.core.api.version import KubernetesVersion, parse_version
from webhook.core.scheduler.args import ArgsError, PodTopologySpreadArgs, decode_args, validate_args

AT = "decoding .profiles[0].pluginConfig[0]"
PLUGIN = f"{AT}: decoding args for plugin PodTopologySpread"
STRICT = f"strict decoding error: {AT}: strict decoding error: decoding args for plugin PodTopologySpread"
ANONYMOUS = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type "
    'struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)
V1 = "kubescheduler.config.k8s.io/v1"


def block(*constraints, **fields):
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    merged = [{**good, **each} for each in constraints]
    args = {"defaultConstraints": merged, "defaultingType": "List", **fields}
    return json.dumps({name: value for name, value in args.items() if value != "absent"}).encode()


def texts(raw, version=None):
    args = decode_args(raw)
    return [error.text for error in (validate_args(args, version) if version else validate_args(args))]


SUPPORTED = 'supported values: "System", "List"'
ACTIONS = 'supported values: "DoNotSchedule", "ScheduleAnyway"'


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(block(), [], id="an empty list switches defaults off"),
        pytest.param(block({}), [], id="a good constraint"),
        pytest.param(b"{}", [], id="nothing said"),
        pytest.param(b"null", [], id="null"),
        pytest.param(
            block({}, defaultingType="absent"),
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="System is the default, and takes no constraints",
        ),
        pytest.param(block(defaultingType="System"), [], id="System with an empty list"),
        pytest.param(
            block({}, defaultingType="list"),
            [f'defaultingType: Unsupported value: "list": {SUPPORTED}'],
            id="an unknown defaultingType",
        ),
        pytest.param(
            block({"maxSkew": 0}),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="maxSkew 0",
        ),
        pytest.param(
            block({"topologyKey": ""}),
            ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
            id="topologyKey empty",
        ),
        pytest.param(
            block({"topologyKey": "-x"}),
            [f'defaultConstraints[0].topologyKey: Invalid value: "-x": {key_faults("-x")[0]}'],
            id="topologyKey must be a label name, unlike in a pod",
        ),
        pytest.param(
            block({"whenUnsatisfiable": ""}),
            ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
            id="whenUnsatisfiable empty",
        ),
        pytest.param(
            block({"whenUnsatisfiable": "Maybe"}),
            [f'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": {ACTIONS}'],
            id="whenUnsatisfiable unknown",
        ),
        pytest.param(
            block({"labelSelector": {}}),
            [
                (
                    "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, "
                    "as they deduced for each pod"
                )
            ],
            id="an empty selector is one",
        ),
        pytest.param(block({"labelSelector": None}), [], id="a null selector is none"),
        pytest.param(
            block({}, {}, {"topologyKey": "rack"}, {}),
            [
                'defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"',
                'defaultConstraints[3]: Duplicate value: "{zone, ScheduleAnyway}"',
            ],
            id="a pair that came before: the later ones, unlike in a pod",
        ),
        pytest.param(block({}, {"whenUnsatisfiable": "DoNotSchedule"}), [], id="the same key with another action"),
        pytest.param(
            block({"minDomains": -1, "nodeTaintsPolicy": "Never", "matchLabelKeys": ["bad key"]}),
            [],
            id="minDomains, policies and matchLabelKeys are not checked",
        ),
        pytest.param(
            b'{"defaultConstraints":[null],"defaultingType":"List"}',
            [
                "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "defaultConstraints[0].topologyKey: Required value: can not be empty",
                "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="a null constraint is an empty one",
        ),
    ],
)
def test_the_errors_of_a_block(raw, expected):
    assert texts(raw) == expected


def test_before_1_34_an_unknown_value_is_shown_in_go_syntax():
    raw = block(defaultingType="<")
    assert texts(raw) == [f'defaultingType: Unsupported value: "\\u003c": {SUPPORTED}']
    assert texts(raw, KubernetesVersion(1, 33)) == [f'defaultingType: Unsupported value: "<": {SUPPORTED}']


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(
            block(defaultingType=5),
            f"{PLUGIN}: json: cannot unmarshal number into Go struct field PodTopologySpreadArgs.defaultingType "
            "of type v1.PodTopologySpreadConstraintsDefaulting",
            id="a wrong type",
        ),
        pytest.param(
            block({"maxskew": 1}, x=1),
            f'{STRICT}: strict decoding error: unknown field "defaultConstraints[0].maxskew", unknown field "x"',
            id="unknown fields are refused, all at once",
        ),
        pytest.param(
            b'{"defaultingType":"List","defaultingType":"System"}',
            f'{STRICT}: strict decoding error: duplicate field "defaultingType"',
            id="a field that stands twice",
        ),
        pytest.param(b"[]", f"{PLUGIN}: {ANONYMOUS.format('array')}", id="a list"),
        pytest.param(b"5", f"{PLUGIN}: {ANONYMOUS.format('number')}", id="a number"),
        pytest.param(
            b'{"Kind":5}',
            f"{PLUGIN}: couldn't get version/kind; json parse error: "
            "json: cannot unmarshal number into Go struct field .kind of type string",
            id="kind in any case",
        ),
        pytest.param(
            b'{"kind":"NodeAffinityArgs"}',
            f"{AT}: args for plugin PodTopologySpread were not of type "
            "PodTopologySpreadArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io",
            id="the args of another plugin",
        ),
        pytest.param(
            b'{"kind":"Foo"}',
            f'{PLUGIN}: no kind "Foo" is registered for version "{V1}" in scheme "pkg/runtime/scheme.go:111"',
            id="an unknown kind",
        ),
        pytest.param(
            b'{"apiVersion":"kubescheduler.config.k8s.io/v1beta3"}',
            f'{PLUGIN}: no kind "PodTopologySpreadArgs" is registered for version '
            '"kubescheduler.config.k8s.io/v1beta3" in scheme "pkg/runtime/scheme.go:111"',
            id="a version that is gone",
        ),
        pytest.param(
            b'{"apiVersion":"v1"}',
            f'{PLUGIN}: no kind "PodTopologySpreadArgs" is registered for version "v1" '
            'in scheme "pkg/runtime/scheme.go:111"',
            id="a version without a group",
        ),
        pytest.param(
            b'{"apiVersion":"a/b/c"}', f"{PLUGIN}: unexpected GroupVersion string: a/b/c", id="a version of three parts"
        ),
        pytest.param(
            b'{"apiVersion":"apps/"}',
            f"{PLUGIN}: Object 'apiVersion' is missing in '{{\"apiVersion\":\"apps/\"}}'",
            id="another group without a version",
        ),
        pytest.param(
            b"{",
            f"{PLUGIN}: the args are not valid JSON: Expecting property name enclosed in double quotes: "
            "line 1 column 2 (char 1)",
            id="no JSON",
        ),
    ],
)
def test_a_block_that_kube_scheduler_does_not_start_with(raw, text):
    with pytest.raises(ArgsError) as caught:
        decode_args(raw)
    assert str(caught.value) == text


def test_the_place_of_the_block_is_part_of_the_text():
    with pytest.raises(ArgsError, match=r"decoding \.profiles\[2\]\.pluginConfig\[1\]: "):
        decode_args(b"[]", ".profiles[2].pluginConfig[1]")


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        pytest.param(b"{}", {"defaultingType": "System"}, id="defaultingType is filled in"),
        pytest.param(
            b'{"apiVersion":"%s","kind":"PodTopologySpreadArgs"}' % V1.encode(),
            {"defaultingType": "System"},
            id="its type",
        ),
        pytest.param(b'{"apiVersion":"kubescheduler.config.k8s.io/"}', {"defaultingType": "System"}, id="its group"),
        pytest.param(
            b'{"defaultingType":"List","defaultConstraints":[{"maxSkew":3}]}',
            {"defaultingType": "List", "defaultConstraints": [{"maxSkew": 3}]},
            id="nothing is filled in inside a constraint",
        ),
    ],
)
def test_what_a_block_becomes(raw, args):
    assert json.loads(msgspec.json.encode(decode_args(raw))) == args


def test_absent_constraints_are_no_constraints():
    assert PodTopologySpreadArgs(defaulting_type="List").constraints == ()


@pytest.mark.parametrize(
    ("release", "line"), [("1.32", 100), ("1.33", 110), ("1.34", 110), ("1.35", 111), ("1.37", 111), ("1.38", 110)]
)
def test_the_line_of_the_scheme(release, line):
    with pytest.raises(ArgsError, match=rf'in scheme "pkg/runtime/scheme.go:{line}"'):
        decode_args(b'{"apiVersion": "v2", "kind": "X"}', version=parse_version(release))


@pytest.mark.parametrize(("release", "known"), [("1.33", False), ("1.34", True)])
def test_the_kinds_of_args_follow_the_release(release, known):
    text = "were not of type" if known else 'no kind "DynamicResourcesArgs" is registered'
    with pytest.raises(ArgsError, match=text):
        decode_args(b'{"kind": "DynamicResourcesArgs"}', version=parse_version(release))
