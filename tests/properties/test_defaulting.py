"""What holds of every patch, whatever the pod, the cluster and the defaults."""

import json

import jsonpatch
import msgspec
import pytest
from build import defaulted
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies import clusters, defaults, needs_oracle, raw_pods, validated

from webhook.core.api.types import Pod
from webhook.core.defaulting.injection import Injection
from webhook.core.policy.policy import Policy


def as_sent(raw):
    return json.loads(json.dumps(raw))


def patched(raw, policy, cluster):
    result = defaulted(msgspec.json.decode(json.dumps(raw), type=Pod), policy, cluster, waited=True)
    patch = result.patch if isinstance(result, Injection) else ()
    return jsonpatch.apply_patch(as_sent(raw), list(patch)), result


def patch_of(result):
    return result.patch if isinstance(result, Injection) else ()


def without_ours(raw):
    """The object less what defaulting may write."""
    rest = as_sent(raw)
    metadata = rest.pop("metadata", None) or {}
    (metadata.get("annotations") or {}).pop("evenspread.io/injected", None)
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    spec = rest.pop("spec", None) or {}
    for constraint in spec.pop("topologySpreadConstraints", None) or ():
        constraint.pop("labelSelector", None)
    return rest, metadata, spec


@st.composite
def maimed(draw):
    """A pod that lacks a whole part, as the API server would never send it."""
    raw = draw(raw_pods())
    part = draw(st.sampled_from([None, None, "metadata", "spec"]))
    if part is not None:
        raw.pop(part)
    return raw | draw(st.sampled_from([{}, {"unknown": [1, {"deep": None}]}]))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(maimed(), defaults(), clusters())
def test_every_patch_applies_once_and_touches_nothing_else(raw, configured, cluster):
    policy = Policy(defaults=configured)
    after, result = patched(raw, policy, cluster)
    assert all(operation["op"] == "add" for operation in patch_of(result))
    assert without_ours(after) == without_ours(raw)
    again, second = patched(after, policy, cluster)
    assert again == after
    assert patch_of(second) == ()


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(raw_pods(), defaults(), clusters())
def test_no_key_is_both_selected_and_matched(raw, configured, cluster):
    _, result = patched(raw, Policy(defaults=configured), cluster)
    for constraint in result.record.constraints if isinstance(result, Injection) else ():
        selector, keys = constraint.selector, constraint.match_label_keys or ()
        named = {*(selector.match_labels or ()), *(part.key for part in selector.match_expressions or ())}
        assert not named & {*keys}
        assert len(keys) == len({*keys})


@needs_oracle
@settings(max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(raw_pods(), defaults(), clusters()), min_size=4, max_size=6))
def test_kube_apiserver_accepts_what_it_accepted_before(cases):
    after = [patched(raw, Policy(defaults=configured), cluster)[0] for raw, configured, cluster in cases]
    objects = [raw for raw, _, _ in cases] + after
    answers, refused = validated(objects)
    for place, (before, now) in enumerate(zip(refused[: len(cases)], refused[len(cases) :], strict=True)):
        assert before or not now, json.dumps([cases[place][0], after[place], answers[len(cases) + place]])
