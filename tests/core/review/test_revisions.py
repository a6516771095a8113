"""A ControllerRevision that no controller wrote gives the pods of a StatefulSet no constraint that is denied."""

import json

import pytest
from build import index
from core.rules.shop import deployed, shop
from manifest import DENY, decide, headline, workload
from msgspec.structs import replace

from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Mode, Policy

NOT_SELF = Policy(ceiling=Mode.DENY, rules={"selector-not-self": Mode.DENY})
RIGHT, WRONG = "zone hard 1 app=web", "zone hard 1 app=other"
UID = "s-1"
CONTROLLER = "system:serviceaccount:kube-system:statefulset-controller"
ADMIN = {"user": "jane", "groups": ("system:authenticated",)}
SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": UID, "controller": True}
CLONE_SET = {**SET, "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "uid": "c-1"}
KRUISE = {"user": "system:serviceaccount:kruise-system:kruise-manager"}
DENIED = "StatefulSet shop/web"


def stateful_set(*constraints):
    return workload("StatefulSet", "app=web", *constraints, meta={"name": "web", "uid": UID})


def known(*constraints):
    of = TypeMeta(api_version="apps/v1", kind="StatefulSet")
    return index(decode_object(json.dumps(stateful_set(*constraints)).encode(), of))


def data(*constraints):
    """As the controller writes it."""
    return {"spec": {"template": {**stateful_set(*constraints)["spec"]["template"], "$patch": "replace"}}}


def revision(written, owner=SET, labels="web"):
    meta = {"name": "web-5d4f", "namespace": "shop", "labels": {"app": labels}}
    meta |= {"ownerReferences": [owner]} if owner else {}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "revision": 1, "data": written}


def denied(new, old=None, *, policy=NOT_SELF, cluster=None, **sender):
    decision = decide(new, old, policy=policy, index=cluster or known(RIGHT), **{**ADMIN, "name": "web-5d4f", **sender})
    return headline(decision)


def spec(**fields):
    return {"spec": {"template": {"$patch": "replace", **fields}}}


TEMPLATE, BAD = (stateful_set(each)["spec"]["template"] for each in (RIGHT, WRONG))


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(data(WRONG), id="a whole template"),
        pytest.param({"spec": {"template": BAD}}, id="one that is merged"),
        pytest.param({"spec": {"template": {"spec": BAD["spec"]}}}, id="the constraints alone"),
        pytest.param(
            {"spec": {"template": {"metadata": {"labels": {"app": "no"}}}}}, id="labels that it does not select"
        ),
        pytest.param({"Spec": {"template": BAD}, **data(RIGHT)}, id="in another case, beside a right one"),
        pytest.param({"\u017fpec": {"template": BAD}, **data(RIGHT)}, id="a letter that Go takes for an s"),
        pytest.param({"spec": {"Template": BAD, **data(RIGHT)["spec"]}}, id="the template in another case"),
        pytest.param(spec(**TEMPLATE, Spec=BAD["spec"]), id="its spec in another case"),
        pytest.param(
            spec(
                metadata=TEMPLATE["metadata"],
                spec={"TopologySpreadConstraints": BAD["spec"]["topologySpreadConstraints"]},
            ),
            id="the constraints in another case",
        ),
        pytest.param({"$patch": "replace", **data(RIGHT)}, id="a directive above"),
        pytest.param(spec(metadata=TEMPLATE["metadata"], spec={"$patch": "merge"}), id="a directive inside"),
        pytest.param({"spec": {"$retainKeys": ["template"], **data(RIGHT)["spec"]}}, id="a directive beside"),
        pytest.param({"spec": {"template": [BAD]}}, id="a list"),
        pytest.param({"spec": None}, id="nothing"),
    ],
)
@pytest.mark.parametrize("cluster", [known(RIGHT), index()], ids=["known", "unknown"])
def test_what_somebody_puts_in_its_place(written, cluster):
    assert denied(revision(written), cluster=cluster) is not None
    assert denied(revision(written), owner_of(written), cluster=cluster) is not None, "given to the set afterwards"


def owner_of(written):
    return revision(written, owner=CLONE_SET)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({"spec": {"networkConfig": {}, "leaderWorkerTemplate": {"size": 2}}}, id="of another kind"),
        pytest.param({"generation": 1}, id="of no spec"),
        pytest.param({}, id="empty"),
    ],
)
def test_data_that_say_nothing_of_a_template_are_let_in(written):
    assert denied(revision(written)) is None


@pytest.mark.parametrize("constraints", [(), (RIGHT,)], ids=["none", "right"])
def test_a_right_one_is_let_in(constraints):
    assert denied(revision(data(*constraints))) is None
    assert denied(revision(data(*constraints)), cluster=index()) is None


@pytest.mark.parametrize(
    ("owner", "sender", "expected"),
    [
        pytest.param(SET, {"user": CONTROLLER}, None, id="its controller's"),
        pytest.param(SET, {"user": "system:kube-controller-manager"}, None, id="its controller's, of the manager"),
        pytest.param(
            SET, {"user": "system:serviceaccount:kube-system:generic-garbage-collector"}, None, id="collected"
        ),
        pytest.param(SET, ADMIN, DENIED, id="an administrator's of the namespace"),
        pytest.param(SET, {"user": "system:serviceaccount:shop:default"}, DENIED, id="an account's of the namespace"),
        pytest.param(SET, KRUISE, DENIED, id="an operator's"),
        pytest.param(None, ADMIN, DENIED, id="nobody's, which is adopted"),
        pytest.param(None, KRUISE, DENIED, id="nobody's, of an operator"),
        pytest.param({**SET, "kind": "DaemonSet"}, ADMIN, DENIED, id="as if a DaemonSet had it"),
        pytest.param(CLONE_SET, KRUISE, None, id="an operator's of its own kind"),
        pytest.param({**CLONE_SET, "uid": UID}, KRUISE, DENIED, id="of another kind, with the uid of the set"),
        pytest.param(CLONE_SET, ADMIN, "StatefulSet shop/web-5d4f", id="of another kind, by an administrator"),
        pytest.param(
            CLONE_SET, {"user": "system:serviceaccount:shop:x"}, "StatefulSet shop/web-5d4f", id="by an account"
        ),
    ],
)
def test_who_sends_it_for_whom(owner, sender, expected):
    said = denied(revision(data(WRONG), owner), **{**ADMIN, **sender})
    assert said == expected or (said or "").startswith(f"{expected}: zone[0] ")


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(revision(data(WRONG)), revision(data(WRONG)), None, id="nothing that counts"),
        pytest.param(revision(data(WRONG)), revision(data(WRONG), None), DENIED, id="given to the set"),
        pytest.param(revision(data(WRONG)), revision(data(WRONG), CLONE_SET), DENIED, id="taken from another"),
        pytest.param(revision(data(WRONG), None), revision(data(WRONG), None, "x"), DENIED, id="labelled for the set"),
        pytest.param(revision(data(RIGHT)), revision(data(RIGHT), None), None, id="a right one given to the set"),
    ],
)
def test_updates(new, old, expected):
    said = denied(new, old)
    assert said == expected or (said or "").startswith(f"{expected}: zone[0] ")


GONE = {"deletionTimestamp": "2026-11-24T12:00:00Z"}
COLLECTOR = {"user": "system:serviceaccount:kube-system:generic-garbage-collector"}


@pytest.mark.parametrize("sender", [COLLECTOR, {"user": "system:kube-controller-manager"}, KRUISE, ADMIN])
@pytest.mark.parametrize("more", [{}, GONE], ids=["there", "being deleted"])
@pytest.mark.parametrize(
    ("written", "old", "expected"),
    [
        pytest.param(data(WRONG), CLONE_SET, True, id="an operator's"),
        pytest.param(data(RIGHT), CLONE_SET, False, id="a right one of an operator"),
        pytest.param({"spec": {"Template": BAD}}, CLONE_SET, True, id="data of no controller"),
        pytest.param({"generation": 1}, CLONE_SET, False, id="data of another kind"),
    ],
)
def test_what_loses_an_operators_object_is_reviewed_whoever_sends_it(written, old, expected, more, sender):
    new = revision(written, None)
    new["metadata"] |= more
    assert (denied(new, revision(written, old), **sender) is not None) is expected


def test_a_set_that_is_deleted_may_leave_its_revisions():
    assert denied(revision(data(WRONG), None), revision(data(WRONG)), **COLLECTOR) is None


def test_it_is_judged_as_the_set_in_its_cluster():
    """By its own selector, replicas and name, beside other workloads."""
    cluster = shop("a: n1=cart,pay | b: n2=pay", deployed("pay"))
    mine = workload("StatefulSet", "app=cart part=shop", selector="app=cart", meta={"name": "cart", "uid": UID})
    cluster.apply(
        "ADDED", decode_object(json.dumps(mine).encode(), TypeMeta(api_version="apps/v1", kind="StatefulSet"))
    )
    policy = replace(DENY, rules={"selector-too-wide": Mode.DENY})
    for constraint, expected in (("zone soft 1 part=shop", False), ("zone soft 1 app=cart", True)):
        template = workload("StatefulSet", "app=cart part=shop", constraint, selector="app=cart")["spec"]["template"]
        made = revision(spec(**template), {**SET, "name": "cart"})
        assert decide(made, policy=policy, index=cluster, **ADMIN).allowed is expected
