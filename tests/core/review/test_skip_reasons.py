"""What an author writes into an object exempts it from nothing; each attack stands beside its honest twin."""

import pytest
from build import declared, index, owner
from manifest import constraint, decide, workload
from msgspec import convert

from webhook.core.api.types import SpreadConstraint
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.skip_reasons import is_controller
from webhook.core.workloads.custom_kinds import EmbeddedKind

NOT_SELF = Policy(ceiling=Mode.DENY, rules={"selector-not-self": Mode.DENY})
WRONG = "zone hard 1 app=other"
NODE = {"user": "system:node:a-1", "groups": ("system:nodes", "system:authenticated")}
TENANT = {"user": "jane", "groups": ("system:authenticated",)}
ACCOUNT = "system:serviceaccount:kube-system:{}-controller"
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
ARGO = "system:serviceaccount:argo-rollouts:argo-rollouts"
REDIS = EmbeddedKind(api_version="example.com/v1", kind="Redis", template_path="spec.template")
PARTS = EmbeddedKind(api_version="example.com/v1", kind="Db", constraints_path="spec.topologySpreadConstraints")


def controlled(api_version, kind, uid="u-1", **more):
    reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": uid, "controller": True}
    return {"ownerReferences": [{**reference, **more}]}


def reason(kind, meta, *, policy=NOT_SELF, index=None, broken=WRONG, **sender):
    """Why the object is not examined; ``denied`` where it is, since it breaks a rule on deny."""
    decision = decide(workload(kind, "app=web", broken, meta=meta), policy=policy, index=index, **sender)
    if decision.allowed:
        return decision.reason
    pods, spec = ("this pod has", "spec") if kind == "Pod" else ("the pods have", "spec.template.spec")
    problem = (
        f"zone[0] counts app=other but {pods} app=web; set matchLabels app=web"
        if broken == WRONG
        else f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal string into Go struct field'
        f" TopologySpreadConstraint.{spec}.topologySpreadConstraints.maxSkew of type int32"
    )
    assert decision.message.splitlines()[0] == f"{kind} shop/web: {problem}"
    return "denied"


@pytest.mark.parametrize("broken", [WRONG, {"maxSkew": "1"}], ids=["reads", "does not decode"])
@pytest.mark.parametrize(
    ("kind", "sender", "expected"),
    [
        pytest.param("Pod", NODE, "mirror pod", id="a node's own"),
        pytest.param("Pod", TENANT, "denied", id="a tenant's"),
        pytest.param("Pod", {**NODE, "groups": ()}, "denied", id="the user without the group"),
        pytest.param("Pod", {**NODE, "user": "jane"}, "denied", id="the group without the user"),
        pytest.param("Deployment", NODE, "denied", id="no pod"),
        pytest.param("Deployment", TENANT, "denied", id="a tenant's Deployment"),
    ],
)
def test_mirror_pods_are_those_of_nodes(kind, sender, expected, broken):
    assert reason(kind, MIRROR, broken=broken, **sender) == expected


@pytest.mark.parametrize("broken", [WRONG, {"maxSkew": "1"}], ids=["reads", "does not decode"])
@pytest.mark.parametrize(
    ("kind", "meta", "user", "expected"),
    [
        pytest.param("ReplicaSet", controlled("apps/v1", "Deployment"), "deployment", "its owner is reviewed"),
        pytest.param("Pod", controlled("apps/v1", "ReplicaSet"), "replicaset", "its owner is reviewed"),
        pytest.param("Pod", controlled("apps/v1", "DaemonSet"), "daemon-set", "its owner is reviewed"),
        pytest.param("Pod", controlled("batch/v1", "Job"), "job", "its owner is reviewed"),
        pytest.param("Job", controlled("batch/v1", "CronJob"), "cronjob", "its owner is reviewed"),
        pytest.param("Job", controlled("apps/v1", "ReplicaSet"), "cronjob", "denied", id="a ReplicaSet makes no Job"),
        pytest.param("Pod", controlled("v1", "ConfigMap"), "replicaset", "denied", id="a ConfigMap makes nothing"),
        pytest.param("Pod", controlled("v1", "Pod"), "replicaset", "denied", id="a Pod makes nothing"),
        pytest.param(
            "Pod", controlled("apps/v1", "ReplicaSet", controller=False), "replicaset", "denied", id="an owner only"
        ),
        pytest.param(
            "Pod", controlled("example.com/v1", "ReplicaSet"), "replicaset", "denied", id="the name in another group"
        ),
    ],
)
def test_what_controllers_send_is_not_examined(kind, meta, user, expected, broken):
    assert reason(kind, meta, broken=broken, user=ACCOUNT.format(user)) == expected
    assert reason(kind, meta, broken=broken, **TENANT) == "denied"


@pytest.mark.parametrize(
    ("user", "is_one"),
    [
        pytest.param("system:kube-controller-manager", True, id="one user for all controllers"),
        pytest.param("system:serviceaccount:kube-system:replicaset-controller", True, id="a controller's account"),
        pytest.param(ARGO, True, id="an account of the policy"),
        pytest.param("system:serviceaccount:shop:replicaset-controller", False, id="its name in another namespace"),
        pytest.param("system:serviceaccount:kube-system:default", False, id="another account of the namespace"),
        pytest.param("replicaset-controller", False, id="its name alone"),
        pytest.param("", False, id="no user"),
    ],
)
def test_controllers(user, is_one):
    assert is_controller(user, Policy(controllers=(ARGO,))) == is_one


def of_owner(uid="u-1", labelled="app=web", *constraints, kind="ReplicaSet", **more):
    return owner(f"{kind}/x", labelled, declared(labelled, *constraints), uid=uid, **more)


DECLARED = convert(constraint(WRONG), SpreadConstraint)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param([], "denied", id="the cluster does not have the owner"),
        pytest.param([of_owner("u-1", "app=web", DECLARED)], "its owner is reviewed", id="it has"),
        pytest.param([of_owner("u-2", "app=web", DECLARED)], "denied", id="another of that name"),
        pytest.param([of_owner("", "app=web", DECLARED)], "denied", id="of an unknown uid"),
        pytest.param([of_owner("u-1", "app=web")], "denied", id="the owner has no such constraint"),
        pytest.param([of_owner("u-1", "app=db", DECLARED)], "denied", id="the owner's pods are others"),
        pytest.param([owner("ReplicaSet/x", "app=web", uid="u-1")], "denied", id="of an unknown template"),
        pytest.param(
            [
                owner("ReplicaSet/x", "app=web", uid="u-1", above="Deployment/x", above_uid="d-1"),
                of_owner("d-1", "app=web", DECLARED, kind="Deployment"),
            ],
            "its owner is reviewed",
            id="the template is the Deployment's",
        ),
        pytest.param(
            [owner("ReplicaSet/x", "app=web", uid="u-1", above="Deployment/x", above_uid="d-1")],
            "denied",
            id="the Deployment is unknown",
        ),
    ],
)
def test_what_others_send_repeats_an_owner_that_is_there(known, expected):
    assert reason("Pod", controlled("apps/v1", "ReplicaSet"), index=index(*known), **TENANT) == expected


@pytest.mark.parametrize(
    ("excluded", "expected"),
    [
        pytest.param({"key": "shard", "operator": "NotIn", "values": ["1"]}, "denied", id="to be different"),
        pytest.param({"key": "shard", "operator": "DoesNotExist"}, "denied", id="to be absent"),
        pytest.param({"key": "other", "operator": "DoesNotExist"}, "its owner is reviewed", id="a label it lacks"),
    ],
)
def test_a_copy_is_examined_with_a_label_that_the_owner_says(excluded, expected):
    """With it, the pod does not select itself, as its owner's do."""
    written = constraint("zone hard 1 app=web")
    written["labelSelector"]["matchExpressions"] = [excluded, {"key": "app", "operator": "Exists"}]
    cluster = index(of_owner("u-1", "app=web", convert(written, SpreadConstraint)))
    made = workload("Pod", "app=web shard=1", meta=controlled("apps/v1", "ReplicaSet"))
    made["spec"]["topologySpreadConstraints"] = [written]
    decision = decide(made, policy=NOT_SELF, index=cluster, **TENANT)
    assert (decision.reason or "denied", decision.allowed) == (expected, expected != "denied")


@pytest.mark.parametrize(
    ("kind", "owned_by"),
    [("Pod", controlled("apps/v1", "ReplicaSet")), ("ReplicaSet", controlled("apps/v1", "Deployment"))],
)
@pytest.mark.parametrize(
    ("labelled", "expected"),
    [
        pytest.param("app=web", "denied", id="without the hash"),
        pytest.param("app=web pod-template-hash=5d4f", "its owner is reviewed", id="as the controller makes it"),
    ],
)
def test_a_copy_is_examined_without_a_label_that_the_controller_adds(kind, owned_by, labelled, expected):
    """Its owner may name the label in matchLabelKeys, which do nothing for a pod that lacks it."""
    written = {**constraint("zone hard 1 app=web"), "matchLabelKeys": ["pod-template-hash"]}
    known = convert(written, SpreadConstraint)
    deployment = of_owner("u-1", "app=web", known, kind="Deployment")
    cluster = index(
        owner("ReplicaSet/x", "app=web", uid="u-1", above="Deployment/x", above_uid="u-1")
        if kind == "Pod"
        else deployment,
        deployment,
    )
    made = workload(kind, labelled, meta=owned_by)
    spec = made["spec"] if kind == "Pod" else made["spec"]["template"]["spec"]
    spec["topologySpreadConstraints"] = [written]
    policy = Policy(ceiling=Mode.DENY, rules={"match-label-key-absent": Mode.DENY})
    decision = decide(made, policy=policy, index=cluster, **TENANT)
    assert (decision.reason or "denied", decision.allowed) == (expected, expected != "denied")


def test_a_copy_is_examined_where_more_is_denied_than_the_index_compares():
    """Replicas and affinity of a copy may be others than the owner's."""
    cluster = index(of_owner("u-1", "app=web", DECLARED))
    meta = controlled("apps/v1", "ReplicaSet")
    policy = Policy(ceiling=Mode.DENY, rules={"selector-not-self": Mode.DENY, "zone-host-ceiling": Mode.DENY})
    assert reason("Pod", meta, policy=policy, index=cluster, **TENANT) == "denied"
    assert reason("Pod", meta, policy=policy, index=cluster, user=ACCOUNT.format("replicaset")) != "denied"


@pytest.mark.parametrize(
    ("kind", "workloads", "user", "expected"),
    [
        pytest.param("Redis", (REDIS,), ARGO, "its owner is reviewed", id="a configured kind, a configured user"),
        pytest.param("Redis", (REDIS,), "jane", "denied", id="a configured kind, any user"),
        pytest.param("Redis", (), ARGO, "denied", id="a kind that nobody knows"),
        pytest.param("Db", (PARTS,), ARGO, "denied", id="a kind without a whole template"),
    ],
)
def test_operators_are_named_by_the_policy(kind, workloads, user, expected):
    policy = Policy(ceiling=Mode.DENY, rules=NOT_SELF.rules, workloads=workloads, controllers=(ARGO,))
    assert reason("StatefulSet", controlled("example.com/v1", kind), policy=policy, user=user) == expected
