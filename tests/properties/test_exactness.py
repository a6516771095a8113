"""Properties of decoding, validation and selectors, against arbitrary JSON and naive oracles."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core.api.quantity import parse_quantity
from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, PodTemplate, SpreadConstraint
from webhook.core.api.version import ANNOUNCED, OLDEST, RECORDED, KubernetesVersion
from webhook.core.apiserver.decoding import GO_KINDS, DecodeError, as_go_reads, decode, decode_strictly
from webhook.core.apiserver.go_json import go_type, is_plain
from webhook.core.apiserver.validation import (
    _errors,
    are_clearly_valid,
    constraint_warnings,
    merge_match_label_keys,
    selector_errors,
    validate_constraints,
)
from webhook.core.scheduler.args import ArgsError, decode_args, validate_args

POD = msgspec.json.Decoder(PodTemplate)
PATH = "spec.topologySpreadConstraints"

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
versions = st.integers(OLDEST.minor, ANNOUNCED.minor).map(lambda minor: KubernetesVersion(1, minor))

keys = st.sampled_from(["app", "rev", "tier", "a.example/x", "bad key", ""])
values = st.sampled_from(["", "a", "b", "7", "bad value"])
label_maps = st.dictionaries(st.sampled_from(["app", "rev", "tier"]), st.sampled_from(["", "a", "b", "7"]))
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", ""])
requirements = st.builds(
    LabelSelectorRequirement,
    key=keys,
    operator=operators,
    values=st.none() | st.lists(values, max_size=3).map(tuple),
)
selectors = st.builds(
    LabelSelector,
    match_labels=st.none() | st.dictionaries(keys, values, max_size=3),
    match_expressions=st.none() | st.lists(requirements, max_size=3).map(tuple),
)
constraints = st.builds(
    SpreadConstraint,
    max_skew=st.none() | st.integers(-1, 2),
    topology_key=st.sampled_from([None, "", "zone", "rack"]),
    when_unsatisfiable=st.sampled_from([None, "DoNotSchedule", "ScheduleAnyway", "Maybe"]),
    label_selector=st.just(msgspec.UNSET) | st.none() | selectors,
    min_domains=st.none() | st.integers(-1, 2),
    node_affinity_policy=st.sampled_from([None, "Honor", "Ignore", "", "x"]),
    node_taints_policy=st.sampled_from([None, "Honor", "Ignore", "x"]),
    match_label_keys=st.none() | st.lists(keys, max_size=3).map(tuple),
)
constraint_lists = st.lists(constraints, max_size=4).map(tuple)


def members(names, inner):
    """JSON objects in which a name may stand twice, as text."""
    pairs = st.lists(st.tuples(st.sampled_from(names), inner), max_size=6)
    return pairs.map(lambda found: "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in found) + "}")


texts = anything.map(json.dumps)
CONSTRAINT_FIELDS = ["maxSkew", "topologyKey", "labelSelector", "matchLabelKeys", "minDomains", "maxskew"]
selector_texts = members(["matchLabels", "matchExpressions"], texts)
constraint_texts = members(CONSTRAINT_FIELDS, texts | selector_texts)
spec_texts = members(
    ["topologySpreadConstraints", "containers", "tolerations", "affinity", "overhead", "volumes"],
    texts | constraint_texts.map(lambda text: f"[{text},{text}]"),
)
pod_texts = members(["metadata", "spec", "status"], texts | spec_texts)


def attempt(function, *arguments, refused):
    """The result, or the error where it is of the kind that is allowed."""
    try:
        return function(*arguments)
    except refused as error:
        return error


class TestDecoding:
    """Whatever stands in the JSON, decoding gives a value of the model or a DecodeError, and nothing else."""

    @pytest.mark.slow
    @settings(max_examples=50)
    @given(text=pod_texts | texts, kind=st.sampled_from(sorted(GO_KINDS)))
    def test_strictly(self, text, kind):
        outcome = attempt(as_go_reads, text.encode(), f"v1.{kind}", refused=DecodeError)
        if isinstance(outcome, DecodeError):
            assert outcome.message.endswith(outcome.text)
        else:
            assert isinstance(outcome[0], dict)
            assert all(isinstance(warning, str) for warning in outcome[1])

    @pytest.mark.slow
    @settings(max_examples=50)
    @given(text=pod_texts)
    def test_the_fast_way_agrees_unless_a_name_stands_twice(self, text):
        try:
            exact, warnings = decode_strictly(text.encode(), POD, "v1.Pod")
        except DecodeError:
            return
        if not any(warning.startswith("duplicate") for warning in warnings):
            assert decode(text.encode(), POD, "v1.Pod") == exact

    @settings(max_examples=50)
    @given(text=pod_texts | texts, kind=st.sampled_from(sorted(GO_KINDS)))
    def test_a_plain_value_has_no_fault_and_no_warning(self, text, kind):
        value = json.loads(text)
        if is_plain(value, go_type(f"v1.{kind}", RECORDED)) and value is not None:
            assert as_go_reads(json.dumps(value).encode(), f"v1.{kind}")[1] == ()

    @given(raw=st.binary())
    def test_bytes(self, raw):
        for body in (raw, b"{" + raw, b'{"spec":{"nodeName":"' + raw + b'"}}'):
            assert isinstance(attempt(decode, body, POD, "v1.Pod", refused=DecodeError), DecodeError | PodTemplate)

    @given(value=anything)
    def test_args(self, value):
        args = attempt(decode_args, json.dumps(value).encode(), refused=ArgsError)
        assert str(args) if isinstance(args, ArgsError) else validate_args(args) is not None


class TestValidation:
    """Validation is total, deterministic, and its short cut says only what the long way says."""

    @given(found=constraint_lists, labels=st.none() | label_maps, version=versions)
    def test_every_value_has_an_answer(self, found, labels, version):
        errors = validate_constraints(found, labels, PATH, version)
        assert errors == validate_constraints(found, labels, PATH, version)
        assert len({error.text for error in errors}) == len(errors)
        assert all(error.text.startswith(f"{error.field}: ") for error in errors)
        assert all(warning.startswith(PATH) for warning in constraint_warnings(found, PATH))

    @given(found=constraint_lists, version=versions)
    def test_the_short_cut(self, found, version):
        if are_clearly_valid(found):
            assert list(_errors(found, PATH, version)) == []

    @given(selector=selectors)
    def test_the_scheduler_can_compile_what_the_api_server_accepts(self, selector):
        accepted = not list(selector_errors(selector, "s", RECORDED))
        try:
            compile_selector(selector)
        except SelectorError:
            assert not accepted
        else:
            assert accepted


class TestMerge:
    """The merge adds the pod's own values, so that it never takes the pod itself out of a valid selector."""

    @given(found=constraint_lists, labels=label_maps)
    def test_a_pod_that_matched_still_matches(self, found, labels):
        merged = merge_match_label_keys(found, labels, RECORDED)
        assert len(merged) == len(found)
        for before, after in zip(found, merged, strict=True):
            if before.selector is not None and not list(selector_errors(before.selector, "s", RECORDED)):
                matched = compile_selector(before.selector).matches(labels)
                assert compile_selector(after.selector).matches(labels) is matched

    @given(found=constraint_lists, labels=label_maps)
    def test_nothing_else_changes(self, found, labels):
        for before, after in zip(found, merge_match_label_keys(found, labels, RECORDED), strict=True):
            assert msgspec.structs.replace(after, label_selector=before.label_selector) == before


class TestSelectors:
    """A compiled selector says what a naive reading of the API says."""

    @given(selector=selectors, labels=label_maps)
    def test_matching(self, selector, labels):
        try:
            compiled = compile_selector(selector)
        except SelectorError:
            return
        pairs = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
        assert compiled.matches(labels) is (pairs and all(map(naive(labels), selector.match_expressions or ())))


def naive(labels):
    def holds(requirement):
        has, wanted = requirement.key in labels, requirement.values or ()
        return {
            "In": has and labels.get(requirement.key) in wanted,
            "NotIn": not (has and labels[requirement.key] in wanted),
            "Exists": has,
            "DoesNotExist": not has,
        }[requirement.operator]

    return holds


class TestQuantities:
    """Any text is a quantity or a ValueError in upstream's words; thousandths are never less than a thousandth part."""

    @given(
        text=st.text()
        | st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}[eEinumkKMGTP]?i?[+-]?[0-9]{0,3}", fullmatch=True)
    )
    def test_any_text(self, text):
        quantity = attempt(parse_quantity, text, refused=ValueError)
        if isinstance(quantity, ValueError):
            assert "quantit" in str(quantity)
        else:
            assert -(2**63) <= quantity.value < 2**63
            assert -(2**63) <= quantity.milli < 2**63

    @given(number=st.integers(0, 2**30), suffix=st.sampled_from(["", "m", "k", "Ki", "Mi", "u"]))
    def test_rounding(self, number, suffix):
        quantity = parse_quantity(f"{number}{suffix}")
        assert (quantity.value - 1) * 1000 < quantity.milli <= quantity.value * 1000
