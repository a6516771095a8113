"""Hard constraints that give way at admission: which, when, and the patch, by the whole mutating route."""

import json

import jsonpatch
import msgspec
import pytest
from build import cluster, default, node, owner, policy, running
from msgspec.structs import replace

from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.mutation import mutate

SOFT, HARD = "ScheduleAnyway", "DoNotSchedule"
FULL = "z1: a=1 | z2: b=1 | z3: ~c"  # zone z3 holds the minimum, and nothing is admitted there
ASKING = {"evenspread.io/fallback": "true"}


def written(key=ZONE, when=HARD, **more):
    selects = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selects, **more}


def sent(*constraints, annotations=None, labels=None, owned=None, **spec):
    meta = {"name": "web-9", "labels": labels or {"app": "web"}} | ({"annotations": annotations} if annotations else {})
    if owned:
        meta["ownerReferences"] = [owned]
    given = {"topologySpreadConstraints": list(constraints)} if constraints else {}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}], **given, **spec}}


def asked(raw, index, configured=None, *, age=0.0):
    request = AdmissionRequest(
        uid="1",
        operation="CREATE",
        group="",
        version="v1",
        kind="Pod",
        namespace="shop",
        object=json.dumps(raw).encode(),
    )
    here = Context(policy=configured or policy(), index=index, version=RECORDED, age=lambda: age)
    return mutate(request, here, waited=True)


def patched(raw, made):
    """The pod that kube-apiserver makes of it, as JSON Patch says, and what it records."""
    pod = jsonpatch.apply_patch(raw, json.loads(msgspec.json.encode(made.patch)))
    record = json.loads((pod["metadata"].get("annotations") or {}).get("evenspread.io/fallback", "null"))
    return pod, record


def shown(pod):
    return [
        (each["topologyKey"].rpartition("/")[2], each["whenUnsatisfiable"], each.get("minDomains"))
        for each in pod["spec"]["topologySpreadConstraints"]
    ]


@pytest.mark.parametrize(
    ("constraints", "state", "left", "record"),
    [
        pytest.param([written()], FULL, [("zone", SOFT, None)], {"softened": [ZONE]}, id="the one"),
        pytest.param(
            [written(minDomains=3)], FULL, [("zone", SOFT, None)], {"softened": [ZONE]}, id="its minDomains goes"
        ),
        pytest.param(
            [written(), written(when=SOFT)],
            FULL,
            [("zone", SOFT, None)],
            {"removed": [ZONE]},
            id="beside its soft twin",
        ),
        pytest.param(
            [written(HOSTNAME), written()],
            "z1: a=1 d | z2: b=1 e | z3: ~c",
            [("hostname", HARD, None), ("zone", SOFT, None)],
            {"softened": [ZONE]},
            id="only the one that is in the way",
        ),
        pytest.param(
            [written(HOSTNAME), written(), written(when=SOFT)],
            FULL,
            [("hostname", SOFT, None), ("zone", SOFT, None)],
            {"softened": [HOSTNAME], "removed": [ZONE]},
            id="both where neither alone is enough",
        ),
    ],
)
def test_what_gives_way(constraints, state, left, record):
    raw, index = sent(*constraints, annotations=ASKING), cluster(state)
    made = asked(raw, index)
    pod, recorded = patched(raw, made)
    assert (shown(pod), recorded) == (left, record)
    assert made.audit == {"fell-back": " ".join(key for keys in record.values() for key in keys)}
    again = asked(pod, index)
    assert (again.patch, again.fallback) == ((), None)


def test_all_of_many_constraints_fall_back():
    keys = [f"example.com/{number}" for number in range(5)]
    index = cluster("z1: a | z2: b")
    for name in "ab":
        labelled = {key.replace(".", "__", 1).replace("/", "__"): name for key in keys}
        index.apply("MODIFIED", replace(index.nodes.get(name), metadata=node(name, **labelled).metadata))
    raw = sent(*(written(key, minDomains=9) for key in keys), annotations=ASKING)
    made = asked(raw, index)
    assert made.fallback is None  # every node admits it
    for name in "ab":
        index.apply("MODIFIED", replace(index.nodes.get(name), metadata=node(name).metadata))
    pod, _ = patched(raw, asked(raw, index))
    assert [when for _, when, _ in shown(pod)] == [SOFT] * 5


@pytest.mark.parametrize(
    ("raw", "state", "more"),
    [
        pytest.param(sent(written()), FULL, {}, id="nobody asked"),
        pytest.param(sent(written(), annotations=ASKING), FULL, {"fallback": "off"}, id="it is off"),
        pytest.param(
            sent(written(), annotations={"evenspread.io/fallback": "false"}),
            FULL,
            {"fallback": "always"},
            id="not wanted",
        ),
        pytest.param(sent(written(), annotations=ASKING), "z1: a=1 | z2: b", {}, id="some node admits it"),
        pytest.param(sent(written(when=SOFT), annotations=ASKING), FULL, {}, id="nothing is hard"),
        pytest.param(
            sent(written(), annotations=ASKING, nodeSelector={"disk": "ssd"}),
            FULL,
            {},
            id="something else is in the way",
        ),
        pytest.param(
            sent(written(), annotations=ASKING, schedulingGates=[{"name": "g"}]), FULL, {}, id="not tried yet"
        ),
        pytest.param(sent(written(), annotations=ASKING, nodeName="a"), FULL, {}, id="it has a node"),
        pytest.param(
            sent(written(), annotations={**ASKING, "evenspread.io/skip": "true"}),
            FULL,
            {},
            id="the pod is to be left alone",
        ),
        pytest.param(sent(written(), annotations=ASKING, priority=5), "z1: a=1 | z2: b=1 x=0", {}, id="it fits anyway"),
    ],
)
def test_who_keeps_all(raw, state, more):
    made = asked(raw, cluster(state), policy(**more))
    assert (made.patch, made.fallback, made.audit) == ((), None, {})


def test_always_asks_no_pod():
    raw = sent(written())
    assert patched(raw, asked(raw, cluster(FULL), policy(fallback="always")))[1] == {"softened": [ZONE]}


def test_injected_constraints_give_way_in_the_same_pass():
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4", "uid": "u", "controller": True}
    index = cluster(FULL)
    index.apply("ADDED", owner("ReplicaSet/web-7d4", "app=web", replicas=3, uid="u"))
    raw = sent(owned=owned)
    made = asked(raw, index, policy(default(max_skew=1, when="DoNotSchedule"), fallback="always"))
    pod, record = patched(raw, made)
    assert (shown(pod), record) == ([("zone", SOFT, None)], {"softened": [ZONE]})
    assert json.loads(pod["metadata"]["annotations"]["evenspread.io/injected"])["constraints"]
    assert {*made.audit} == {"injected", "fell-back"}
    assert asked(pod, index, policy(fallback="always")).patch == ()


def test_an_owner_that_is_to_be_left_alone_leaves_its_pods_alone():
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4", "uid": "u", "controller": True}
    index = cluster(FULL)
    skips = {"evenspread.io/skip": "true"}
    index.apply("ADDED", owner("ReplicaSet/web-7d4", "app=web", replicas=3, uid="u", annotations=skips))
    raw = sent(written(), owned=owned, annotations=ASKING)
    assert asked(raw, index, policy(fill_null_selector=True)).reason == "own-constraints"
    null = {**written(HOSTNAME, SOFT), "labelSelector": None}
    assert (
        asked(sent(written(), null, owned=owned, annotations=ASKING), index, policy(fill_null_selector=True)).patch
        == ()
    )


def test_observing_only_says_so():
    made = asked(sent(written(), annotations=ASKING), cluster(FULL), policy(mode="observe"))
    assert (made.patch, made.audit) == ((), {"would-fall-back": ZONE})


@pytest.mark.parametrize(
    ("index", "more"),
    [
        pytest.param(None, {}, id="no cluster"),
        pytest.param(cluster(FULL), {"age": 3600.0}, id="one that was not heard of for long"),
        pytest.param(cluster(FULL, labelled="karpenter__sh__nodepool=x"), {}, id="one where a node may be added"),
    ],
)
def test_where_nobody_knows_nothing_gives_way(index, more):
    made = asked(sent(written(), annotations=ASKING), index, **more)
    assert (made.patch, made.fallback) == ((), None)


@pytest.mark.parametrize(("priority", "gives_way"), [(None, True), (10, False)])
def test_nothing_gives_way_where_preemption_makes_room(priority, gives_way):
    index = cluster("z1: a=1 | z2: b", resources={"cpu": "64", "memory": "1Ti", "pods": "2"})
    for number in range(2):
        index.apply("ADDED", running(f"other-{number}", "b", "app=other"))
    more = {"priority": priority} if priority else {}
    made = asked(sent(written(), annotations=ASKING, **more), index)
    assert (made.fallback is not None) is gives_way


def test_a_record_that_has_no_room_is_not_made():
    full = {**ASKING, "note": "x" * (256 * 1024 - 40)}
    assert asked(sent(written(), annotations=full), cluster(FULL)).patch == ()


def test_a_pod_that_would_be_refused_stays_as_it_is():
    raw = sent(written(), {**written(HOSTNAME, SOFT), "maxSkew": 0}, annotations=ASKING)
    assert asked(raw, cluster(FULL)).patch == ()


def test_a_pod_of_immense_constraints_is_not_tried():
    many = [written(f"example.com/k{number}") for number in range(400)]
    assert asked(sent(*many, annotations=ASKING), cluster(FULL)).fallback is None


def test_hard_ones_without_annotations_and_metadata_of_their_own():
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4", "uid": "u", "controller": True}
    raw = sent(written(), owned=owned)
    pod, record = patched(raw, asked(raw, cluster(FULL), policy(fallback="always")))
    assert record == {"softened": [ZONE]}
    assert {*pod["metadata"]["annotations"]} == {"evenspread.io/fallback"}
