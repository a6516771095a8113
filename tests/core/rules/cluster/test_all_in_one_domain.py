"""Where the pods of a workload stand."""

from functools import partial

import pytest
from build import running, terminating
from core.rules.shop import LABELS, shop
from manifest import DENY, decide, findings_of, said, web, workload
from manifest import told as told_by
from msgspec.structs import replace

from webhook.core.api.storage import Claim, PersistentVolume, PersistentVolumeSpec
from webhook.core.api.types import ClaimSpec, ObjectMeta
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.policy.policy import Messages, Mode

RULE = "all-in-one-domain"


told = partial(told_by, RULE)
NODE = ["audit all 2 running pods are on one node; spread them over nodes"]
IN_A = ["audit all 2 running pods are in zone a; spread them over zones"]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param("a: n1=web,web | b: n2", NODE, id="on one node"),
        pytest.param("a: n1=web n2=web | b: n3", IN_A, id="in one zone"),
        pytest.param("a: n1=web | b: n2=web", [], id="in two zones"),
        pytest.param("a: n1=web | b: n2", [], id="one pod"),
        pytest.param("a: n1 | b: n2", [], id="none yet"),
        pytest.param("a: n1=web,~web | b: n2", [], id="one, and one on its way out"),
        pytest.param("a: n1=web,old | b: n2", NODE, id="two revisions"),
        pytest.param("a: n1=web,cart | b: n2", [], id="one, and one of another workload"),
        pytest.param("a: n1=web,web", [], id="there is one node"),
        pytest.param("a: n1=web n2=web", [], id="there is one zone"),
        pytest.param("a: n1=web,web n2", NODE, id="there is one zone, and another node in it"),
        pytest.param("a: n1=web n2=web | b: ~n3", [], id="the other zone is cordoned"),
        pytest.param("n1=web n2=web | b: n3", [], id="their nodes have no zone"),
        pytest.param("n1=web,web | b: n3", NODE, id="one node without a zone"),
    ],
)
def test_where_they_stand(cluster, expected):
    assert told(web(), shop(cluster)) == expected


APART = "a: n1=web n2=web | b: n3"
ALONE = "a: n1=web,web | b: n2"


def near(key, *, required=True):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "cache"}}}
    if required:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = [{"weight": 1, "podAffinityTerm": term}, {"weight": 1}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


@pytest.mark.parametrize(
    ("cluster", "fields", "expected"),
    [
        pytest.param(APART, {"nodeSelector": {ZONE: "a"}}, [], id="pinned to the zone"),
        pytest.param(ALONE, {"nodeSelector": {HOSTNAME: "n1"}}, [], id="pinned to the node"),
        pytest.param(
            "a: n1=web,web n2 | b: n3", {"nodeSelector": {ZONE: "a"}}, NODE, id="pinned to the zone, on one node"
        ),
        pytest.param(APART, {"affinity": near(ZONE)}, [], id="wanted near others"),
        pytest.param(APART, {"affinity": near(ZONE, required=False)}, [], id="rather near others"),
        pytest.param(
            "a: n1=web,web n2=cache | b: n3",
            {"affinity": near(ZONE)},
            NODE,
            id="near others, in their zone and not on their node",
        ),
        pytest.param(
            "a: n1=web,web,cache | b: n3", {"affinity": near(ZONE)}, [], id="near others, and no other node is there"
        ),
        pytest.param(ALONE, {"affinity": near(HOSTNAME)}, [], id="on the node of others, which is in one zone"),
        pytest.param(APART, {"affinity": {"podAntiAffinity": {}}}, IN_A, id="anti-affinity pins nothing"),
        pytest.param(APART, {"replicas": 1}, [], id="one replica"),
        pytest.param(APART, {"replicas": 0}, [], id="no replica"),
        pytest.param(APART, {"replicas": None}, IN_A, id="an autoscaler's replicas"),
        pytest.param(APART, {"kind": "DaemonSet"}, [], id="a DaemonSet"),
        pytest.param(APART, {"kind": "Job"}, [], id="a Job"),
        pytest.param(APART, {"kind": "ReplicationController"}, IN_A, id="its selector is its labels"),
    ],
)
def test_what_may_be_meant(cluster, fields, expected):
    assert told(web(**fields), shop(cluster)) == expected


@pytest.mark.parametrize(
    ("constraint", "remedy"),
    [
        pytest.param("zone hard 1 app=web", "restart the pods", id="it came after the pods"),
        pytest.param("zone soft 1 app=web", "restart the pods", id="soft"),
        pytest.param("zone hard 1 app=api", "spread them over zones", id="it counts others"),
        pytest.param("zone hard 1 {}", "spread them over zones", id="it counts nobody"),
        pytest.param("hostname hard 1 app=web", "spread them over zones", id="over another key"),
        pytest.param("zone hard 3 app=web", "use maxSkew: 1", id="it lets all of them stand in one"),
        pytest.param("zone hard 2 app=web", "use maxSkew: 1", id="it lets just as many stand in one"),
    ],
)
def test_what_helps(constraint, remedy):
    assert told(web(constraint), shop(APART)) == [f"audit all 2 running pods are in zone a; {remedy}"]


@pytest.mark.parametrize(
    ("constraints", "remedy"),
    [
        pytest.param(["zone hard 1 app=web"], "count only these pods", id="it balances them with others"),
        pytest.param(["zone hard 1 app=web keys:pod-template-hash"], "restart the pods", id="by revision"),
        pytest.param(["zone soft 1 app=web", "zone hard 1 track=stable"], "restart the pods", id="one is for them"),
        pytest.param(
            ["zone hard 1 app=web", "zone soft 1 track=stable"],
            "count only these pods",
            id="one is for them, and the other holds them",
        ),
    ],
)
def test_what_helps_beside_others_that_are_counted(constraints, remedy):
    manifest = workload("Deployment", LABELS["stable"], *constraints, selector=LABELS["stable"])
    found = shop("a: n1=stable n2=stable | b: n3=canary,canary")
    assert told(manifest, found) == [f"audit all 2 running pods are in zone a; {remedy}"]


@pytest.mark.parametrize(
    ("detail", "zone", "node"),
    [
        ("minimal", "in one zone", "on one node"),
        ("own-namespace", "in zone a", "on one node"),
        ("full", "in zone a", "on node n1"),
    ],
)
def test_names_as_far_as_they_may_be_told(detail, zone, node):
    policy = replace(DENY, messages=Messages(detail=detail))
    assert told(web(), shop(APART), policy) == [f"audit all 2 running pods are {zone}; spread them over zones"]
    assert told(web(), shop(ALONE), policy) == [f"audit all 2 running pods are {node}; spread them over nodes"]


def test_a_node_that_is_gone_is_no_place():
    found = shop("a: n1=web | b: n2")
    found.apply("ADDED", running("web-9", "n9", LABELS["web"]))
    assert told(web(), found) == []


def test_what_is_missing():
    assert said(RULE, web()) == ["not evaluated: no cluster"]
    assert said(RULE, web(), index=shop("")) == ["not evaluated: no nodes known"]
    found = shop(APART)
    found.mark_missing("pods", "403 Forbidden")
    assert said(RULE, web(), index=found) == ["not evaluated: pods: 403 Forbidden"]
    without = ["not evaluated: its own pods (the kind has no selector)"]
    assert (
        said(
            RULE,
            web(kind="PyTorchJob", spec={"pytorchReplicaSpecs": {"Worker": {"template": {}}}}),
            index=shop(APART),
        )
        == without
    )
    assert said(RULE, web(spec={"template": None}), index=shop(APART)) == []


def test_the_words():
    [together] = findings_of(RULE, web(), index=shop(APART))
    assert (
        together.detail
        == "losing that zone takes down all 2 running pods; after recreation, they could use another zone"
    )
    what = "maxSkew 1, ScheduleAnyway, the workload's own selector"
    assert together.fix == f"add a constraint over {ZONE} ({what}); the rollout recreates the pods"
    warned = replace(DENY, rules={RULE: Mode.WARN})
    assert decide(web(), policy=warned, index=shop(APART)).warnings == (
        "evenspread/all-in-one-domain: all 2 running pods are in zone a; spread them over zones",
    )


def fix_of(manifest, found):
    [together] = findings_of(RULE, manifest, index=found)
    return together.fix


@pytest.mark.parametrize(
    ("kind", "constraint", "fix"),
    [
        pytest.param(
            "Deployment",
            "zone soft 1 app=web",
            "restart the pods (kubectl rollout restart), because Kubernetes never moves a running pod",
            id="a Deployment",
        ),
        pytest.param(
            "ReplicaSet",
            "zone soft 1 app=web",
            "restart the pods (delete them one by one), because Kubernetes never moves a running pod",
            id="a ReplicaSet",
        ),
        pytest.param(
            "Deployment",
            "zone hard 4 app=web",
            "set maxSkew: 1, because maxSkew 4 allows all 2 pods in one zone",
            id="a large maxSkew",
        ),
        pytest.param(
            "Deployment",
            "zone soft 1 app=api",
            f"let the constraint over {ZONE} match these pods",
            id="it counts others",
        ),
    ],
)
def test_what_is_to_be_done(kind, constraint, fix):
    assert fix_of(web(constraint, kind=kind), shop(APART)) == fix


TIGHT = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "65"}}}]}


@pytest.mark.parametrize(
    ("cluster", "constraints", "fields", "spoken"),
    [
        pytest.param(APART, [], {}, True, id="another zone has room"),
        pytest.param(APART, [], TIGHT, False, id="no node has room"),
        pytest.param(APART, [], {"schedulerName": "own"}, False, id="another scheduler decides"),
        pytest.param(APART, ["zone hard 1 app=a_"], {}, False, id="a selector that cannot be read"),
        pytest.param(APART, ["hostname hard 1 app=web"], {}, True, id="an empty host is in the other zone"),
        pytest.param(
            "a: n1=web n2=web n4 | b: n3=pay,pay",
            ["hostname hard 1 part=shop"],
            {},
            False,
            id="a constraint that counts others, and is full there",
        ),
    ],
)
def test_it_speaks_only_if_a_pod_made_anew_may_go_elsewhere(cluster, constraints, fields, spoken):
    assert bool(told(web(*constraints, **fields), shop(cluster))) is spoken


def test_a_constraint_that_holds_them_there_is_not_called_open():
    """Two of the canary are in zone b and one host is free in a: the next stable pod has to go there."""
    manifest = workload("Deployment", LABELS["stable"], "hostname hard 1 app=web", selector=LABELS["stable"])
    closed = shop("a: n1=stable n2=stable n4 | b: n3=canary,canary")
    assert told(manifest, closed) == []
    opened = shop("a: n1=stable n2=stable n4 | b: n3=canary,canary n5")
    assert told(manifest, opened) == ["audit all 2 running pods are in zone a; spread them over zones"]


def test_counting_these_pods_alone_has_to_open_another_zone():
    manifest = workload(
        "Deployment", LABELS["stable"], "zone hard 1 app=web", "hostname hard 1 track=canary", selector=LABELS["stable"]
    )
    held = shop("a: n1=stable n2=stable | b: n3=canary,canary,canary")
    assert told(manifest, held) == ["audit all 2 running pods are in zone a; count only these pods"]
    full = workload(
        "Deployment", LABELS["stable"], "zone hard 1 app=web", selector=LABELS["stable"], nodeSelector={"no": "x"}
    )
    assert told(full, held) == []


# -- volumes


def claim(name, volume, *modes):
    return Claim(
        metadata=ObjectMeta(name=name, namespace="shop", annotations={"pv.kubernetes.io/bind-completed": "yes"}),
        spec=ClaimSpec(volume_name=volume, access_modes=modes or ("ReadWriteOnce",)),
    )


def disk(name, zone=None):
    meta = ObjectMeta(name=name, labels={ZONE: zone} if zone else None)
    return PersistentVolume(metadata=meta, spec=PersistentVolumeSpec())


def ordinals(cluster, *where):
    for number, name in enumerate(where):
        cluster.apply("ADDED", running(f"web-{number}", name, LABELS["web"]))
    return cluster


SET = {"kind": "StatefulSet", "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        pytest.param(("a", "a"), [], id="the disks of all are in the zone"),
        pytest.param(("a", None), IN_A, id="one disk may be mounted anywhere"),
        pytest.param((None, None), IN_A, id="both may"),
    ],
)
def test_volumes_hold_the_pods_of_a_statefulset(disks, expected):
    found = ordinals(shop("a: n1 n2 | b: n3"), "n1", "n2")
    for number, zone in enumerate(disks):
        found.apply("ADDED", claim(f"data-web-{number}", f"pv-{number}"))
        found.apply("ADDED", disk(f"pv-{number}", zone))
    assert told(web(**SET), found) == expected
    if expected:
        [together] = findings_of(RULE, web(**SET), index=found)
        assert together.detail.endswith("after recreation, at least one of them could use another zone")


@pytest.mark.parametrize(("pod", "expected"), [(running, IN_A), (terminating, [])], ids=["runs", "terminates"])
def test_a_pod_that_terminates_is_none_of_those_that_run(pod, expected):
    """The disks of web-0 and web-1 are in zone a, that of web-2 may be mounted anywhere."""
    found = ordinals(shop("a: n1 n2 | b: n3"), "n1", "n2")
    found.apply("ADDED", pod("web-2", "n1", LABELS["web"]))
    for number, zone in enumerate(("a", "a", None)):
        found.apply("ADDED", claim(f"data-web-{number}", f"pv-{number}"))
        found.apply("ADDED", disk(f"pv-{number}", zone))
    assert [each.replace("3 running", "2 running") for each in told(web(**SET), found)] == expected


def test_a_claim_that_is_not_there_says_nothing():
    assert told(web(**SET), ordinals(shop("a: n1 n2 | b: n3"), "n1", "n2")) == []


def mounting(name):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


@pytest.mark.parametrize(
    ("mode", "zone", "cluster", "expected"),
    [
        pytest.param("ReadWriteMany", None, ALONE, NODE, id="shared by nodes"),
        pytest.param("ReadWriteOnce", None, ALONE, [], id="one node at a time"),
        pytest.param("ReadWriteMany", "a", "a: n1=web n2=web | b: n3", [], id="in one zone"),
        pytest.param("ReadWriteMany", None, "a: n1=web n2=web | b: n3", IN_A, id="in all zones"),
    ],
)
def test_one_volume_holds_all_pods(mode, zone, cluster, expected):
    found = shop(cluster)
    found.apply("ADDED", claim("data", "pv", mode))
    found.apply("ADDED", disk("pv", zone))
    assert told(web(**mounting("data")), found) == expected


def test_volumes_that_could_not_be_read():
    found = shop(APART)
    found.mark_missing("persistentvolumes", "403 Forbidden")
    assert said(RULE, web(**mounting("data")), index=found) == ["not evaluated: persistentvolumes: 403 Forbidden"]
    assert len(told(web(), found)) == 1
