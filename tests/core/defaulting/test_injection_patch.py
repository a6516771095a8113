import json

import msgspec
import pytest
from build import constraint, default, defaulted, index, owner, pod, policy, selector

from webhook.core.api.types import ObjectMeta, OwnerReference, Pod, PodSpec
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.defaulting.injection import Skip, revision
from webhook.core.policy.defaults import Defaults

SET = index(owner("StatefulSet/s", "app=web", replicas=3))
SELECTED = selector("app=web")
NULL = constraint()
OWN = constraint(HOSTNAME, when="ScheduleAnyway", select="app=other")


@pytest.mark.parametrize(
    ("constraints", "filled"),
    [
        pytest.param((NULL,), (0,), id="a null selector"),
        pytest.param((OWN, NULL), (1,), id="only what is null"),
    ],
)
def test_null_selectors_are_filled(constraints, filled):
    made = defaulted(pod(owner="StatefulSet/s", constraints=constraints), policy(fill_null_selector=True), SET)
    assert made.record.filled == filled
    assert made.record.constraints == ()
    for place, (before, after) in enumerate(zip(constraints, made.constraints, strict=True)):
        wanted = SELECTED if place in filled else before.label_selector
        assert after == msgspec.structs.replace(before, label_selector=wanted)


@pytest.mark.parametrize(
    ("constraints", "fill", "reason"),
    [
        pytest.param((NULL,), False, "own-constraints", id="not configured"),
        pytest.param((OWN,), True, "own-constraints", id="nothing to fill"),
        pytest.param((constraint(select="{}"),), True, "own-constraints", id="an empty selector is not null"),
        pytest.param((constraint(key=None),), True, "own-constraints", id="an entry that is no constraint"),
        pytest.param((constraint(key=None), NULL), True, "would-be-refused", id="beside what is refused anyway"),
    ],
)
def test_constraints_that_stay(constraints, fill, reason):
    made = defaulted(pod(owner="StatefulSet/s", constraints=constraints), policy(fill_null_selector=fill), SET)
    assert made == Skip(reason)


def controlled(**metadata):
    reference = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="s", controller=True)
    return ObjectMeta(labels={"app": "web"}, owner_references=(reference,), **metadata)


INJECTED = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


@pytest.mark.parametrize(
    ("incoming", "spec", "noted"),
    [
        pytest.param(
            Pod(metadata=controlled(annotations={"a": "b"}), spec=PodSpec()),
            ("/spec/topologySpreadConstraints", INJECTED),
            "/metadata/annotations/evenspread.io~1injected",
            id="beside other annotations",
        ),
        pytest.param(
            Pod(metadata=controlled(annotations={}), spec=PodSpec()),
            ("/spec/topologySpreadConstraints", INJECTED),
            "/metadata/annotations/evenspread.io~1injected",
            id="into empty annotations",
        ),
        pytest.param(
            Pod(metadata=controlled(), spec=PodSpec()),
            ("/spec/topologySpreadConstraints", INJECTED),
            "/metadata/annotations",
            id="with the annotations themselves",
        ),
        pytest.param(
            Pod(metadata=controlled()),
            ("/spec", {"topologySpreadConstraints": INJECTED}),
            "/metadata/annotations",
            id="with the spec itself",
        ),
    ],
)
def test_the_patch(incoming, spec, noted):
    made = defaulted(incoming, policy(), SET)
    first, second = made.patch
    assert first == {"op": "add", "path": spec[0], "value": spec[1]}
    assert (second["op"], second["path"]) == ("add", noted)
    text = second["value"] if isinstance(second["value"], str) else second["value"]["evenspread.io/injected"]
    assert json.loads(text) == {"revision": revision(policy().defaults), "constraints": INJECTED}


def test_the_patch_of_a_filled_selector():
    incoming = pod(owner="StatefulSet/s", constraints=(OWN, NULL))
    first, second = defaulted(incoming, policy(fill_null_selector=True), SET).patch
    path = "/spec/topologySpreadConstraints/1/labelSelector"
    assert first == {"op": "add", "path": path, "value": {"matchLabels": {"app": "web"}}}
    noted = json.loads(second["value"]["evenspread.io/injected"])
    assert noted == {"revision": revision(policy(fill_null_selector=True).defaults), "filled": [1]}


def test_observing_says_what_would_be_injected_and_patches_nothing():
    made = defaulted(pod(owner="StatefulSet/s"), policy(mode="observe"), SET)
    assert [one.topology_key for one in made.constraints] == [ZONE]
    assert made.patch == ()


def test_a_revision_names_the_configuration():
    assert revision(policy().defaults) == revision(policy().defaults)
    assert revision(policy().defaults) != revision(policy(default(max_skew=2)).defaults)
    assert len(revision(Defaults())) == 8
