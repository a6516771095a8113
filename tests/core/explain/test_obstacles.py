"""What keeps a pod off nodes, by name."""

import pytest
from build import ROOMY, cluster, constraint, meta, node, pod, requiring, running
from msgspec.structs import replace

from webhook.core.api.storage import (
    Claim,
    CsiDriver,
    CsiDriverOnNode,
    CsiDriverSpec,
    CsiNode,
    CsiNodeSpec,
    CsiSource,
    DriverAllocatable,
    PersistentVolume,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from webhook.core.api.types import (
    Affinity,
    ClaimSource,
    ClaimSpec,
    Container,
    ContainerPort,
    GcePersistentDisk,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    ObjectMeta,
    PodAffinity,
    PodAffinityTerm,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
    Volume,
)
from webhook.core.api.well_known import BIND_COMPLETED, HOSTNAME, ZONE
from webhook.core.explain.explanation import explain_pod
from webhook.core.explain.obstacles import grouped, obstacles
from webhook.core.index import node_sets
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.problem import take

K8S = "node.kubernetes.io/"


def told(index, incoming):
    """``{text: names of nodes}``."""
    found = obstacles(Cycle(take(index, incoming)), index)
    names = index.nodes.view().names
    return {each.text: " ".join(sorted(names[slot] for slot in node_sets.to_slots(each.nodes))) for each in found}


def tainted(*taints):
    index = cluster("z1: a | z2: b")
    parsed = tuple(
        Taint(key=key.partition("=")[0], value=key.partition("=")[2], effect=effect)
        for key, effect in (each.rsplit(":", 1) for each in taints)
    )
    index.apply("MODIFIED", replace(index.nodes.get("b"), spec=NodeSpec(taints=parsed)))
    return index


@pytest.mark.parametrize(
    ("taints", "text"),
    [
        (["dedicated=gpu:NoSchedule"], "tainted dedicated=gpu:NoSchedule"),
        (["a:NoSchedule", "b=c:NoExecute", "d:PreferNoSchedule"], "tainted a:NoSchedule, b=c:NoExecute"),
        ([f"{K8S}unreachable:NoSchedule", f"{K8S}unreachable:NoExecute"], "unreachable"),
        ([f"{K8S}not-ready:NoSchedule"], "not ready"),
        ([f"{K8S}not-ready:NoExecute", "a:NoSchedule"], "not ready, tainted a:NoSchedule"),
        ([f"{K8S}memory-pressure:NoSchedule"], "under memory pressure"),
        (["ToBeDeletedByClusterAutoscaler=1:NoSchedule"], "being removed by the cluster autoscaler"),
        (["tolerated:NoSchedule", "a:NoSchedule"], "tainted a:NoSchedule"),
    ],
)
def test_taints_by_their_names(taints, text):
    incoming = pod("app=web", tolerations=(Toleration(key="tolerated", operator="Exists"),))
    assert told(tainted(*taints), incoming) == {text: "b"}


def test_an_open_node_and_a_tolerated_taint_are_nothing():
    assert told(tainted(), pod()) == {}
    assert told(tainted("a:NoSchedule"), pod(tolerations=(Toleration(operator="Exists"),))) == {}


def test_a_cordon():
    index = cluster("z1: a | z2: b")
    index.apply("MODIFIED", replace(index.nodes.get("b"), spec=NodeSpec(unschedulable=True)))
    assert told(index, pod()) == {"cordoned": "b"}


def labelled():
    """Nodes a (disk=ssd, size=8), b (disk=hdd, size=4) and c without labels."""
    index = cluster("z1: a b c")
    for name, more in (("a", {"disk": "ssd", "size": "8"}), ("b", {"disk": "hdd", "size": "4"})):
        index.apply("MODIFIED", replace(index.nodes.get(name), metadata=node(name, "z1", **more).metadata))
    return index


def expressions(*texts):
    """``disk In ssd,nvme``."""
    parts = [each.split(" ") for each in texts]
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator=operator, values=tuple(rest[0].split(",")) if rest else None)
            for key, operator, *rest in parts
        )
    )


def named(name, operator="In"):
    return NodeSelectorTerm(
        match_fields=(NodeSelectorRequirement(key="metadata.name", operator=operator, values=(name,)),)
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"node_selector": {"disk": "ssd"}}, {"wants disk=ssd": "b c"}, id="a pair"),
        pytest.param(
            {"node_selector": {"disk": "tape"}}, {"wants disk=tape, which no node has": "a b c"}, id="a pair of no node"
        ),
        pytest.param(
            {"node_selector": {"disk": "ssd", "size": "4"}},
            {"wants disk=ssd": "b c", "wants size=4": "a c"},
            id="two pairs, each on some node",
        ),
        pytest.param({"affinity": requiring(expressions("disk In ssd"))}, {"wants disk=ssd": "b c"}, id="In"),
        pytest.param(
            {"affinity": requiring(expressions("disk In ssd,nvme"))}, {"wants disk in (ssd, nvme)": "b c"}, id="In two"
        ),
        pytest.param(
            {"affinity": requiring(expressions("disk NotIn hdd"))}, {"wants disk other than hdd": "b"}, id="NotIn"
        ),
        pytest.param(
            {"affinity": requiring(expressions("disk NotIn hdd,ssd"))},
            {"wants disk not in (hdd, ssd)": "a b"},
            id="NotIn two",
        ),
        pytest.param({"affinity": requiring(expressions("disk Exists"))}, {"wants a label disk": "c"}, id="Exists"),
        pytest.param(
            {"affinity": requiring(expressions("disk DoesNotExist"))}, {"wants no label disk": "a b"}, id="DoesNotExist"
        ),
        pytest.param({"affinity": requiring(expressions("size Gt 5"))}, {"wants size above 5": "b c"}, id="Gt"),
        pytest.param({"affinity": requiring(expressions("size Lt 5"))}, {"wants size below 5": "a c"}, id="Lt"),
        pytest.param(
            {
                "affinity": requiring(
                    expressions("disk In ssd", "size In 9"), expressions("disk In hdd", "size In 9", "x Exists")
                )
            },
            {"wants disk=ssd": "b c", "wants size=9, which no node has": "a b c"},
            id="of several terms the nearest",
        ),
        pytest.param({"affinity": requiring(named("a"))}, {"wants node a": "b c"}, id="a name"),
        pytest.param({"affinity": requiring(named("a", "NotIn"))}, {"wants a node other than a": "a"}, id="not a name"),
        pytest.param({"node_name": "a"}, {"wants node a": "b c"}, id="a node that the pod names"),
        pytest.param(
            {"affinity": requiring()}, {"the pod's node affinity has only empty terms": "a b c"}, id="no term at all"
        ),
        pytest.param(
            {"affinity": requiring(expressions("disk Near x"))},
            {"the pod's node affinity has a term that cannot be read": "a b c"},
            id="a term that cannot be read",
        ),
    ],
)
def test_the_label_that_is_missing(spec, expected):
    assert told(labelled(), pod(**spec)) == {f"not selected ({text})": names for text, names in expected.items()}


def asking(cpu=None, port=None):
    ports = None if port is None else (ContainerPort(container_port=port, host_port=port),)
    return (Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu} if cpu else {}), ports=ports),)


def test_ports_and_room():
    index = cluster("z1: a b=2", resources={"cpu": "2", "memory": "4Gi", "pods": "2"})
    index.apply("ADDED", running("x", "a", "app=x", containers=asking("1", 80)))
    assert told(index, pod(containers=asking("2", 80))) == {
        "with port 80/TCP taken": "a",
        "short of cpu": "a",
        "full of pods": "b",
    }


def test_spread_constraints_by_name():
    zones, hosts = constraint(select="app=web"), constraint(HOSTNAME, select="app=web")
    soft = constraint("rack", when="ScheduleAnyway")
    assert told(cluster("b | z1: a=1"), pod(constraints=(soft, zones))) == {f"without {ZONE}": "b"}
    both = told(cluster("z1: a=1 | z2: ~b"), pod(constraints=(zones, hosts)))
    assert both == {
        "tainted dedicated:NoSchedule": "b",
        "over the limit of zone[0]": "a",
        "over the limit of hostname[1]": "a",
    }


def near(select, key=ZONE, which="pod_affinity", **more):
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=select), topology_key=key, **more)
    return Affinity(**{which: PodAffinity(required=(term,))})


ALONE = "pod_anti_affinity"


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(
            near({"app": "web"}),
            {"without a pod app=web in its zone (pod affinity)": "b", f"without {ZONE}": "c"},
            id="a pod elsewhere",
        ),
        pytest.param(
            near({"app": "db"}),
            {"without a pod app=db in its zone (pod affinity; no node has such a pod)": "a b", f"without {ZONE}": "c"},
            id="a pod that is nowhere",
        ),
        pytest.param(
            near({}, which=ALONE),
            {"with a pod of any kind in its zone (pod anti-affinity): shop/a-0, shop/a-1 and 2 more": "a b"},
            id="any pod",
        ),
        pytest.param(
            near({"app": "web"}, HOSTNAME, ALONE),
            {"with a pod app=web in its hostname (pod anti-affinity): shop/a-0, shop/a-1 and 1 more": "a"},
            id="a pod in the way",
        ),
        pytest.param(near({"app": "web"}, which=ALONE, namespaces=("other",)), {}, id="in another namespace"),
        pytest.param(
            near({"app": "one"}, which=ALONE),
            {"with a pod app=one in its zone (pod anti-affinity): shop/x": "b"},
            id="a pod that is in one zone, and one on a node without",
        ),
    ],
)
def test_other_pods(affinity, expected):
    index = cluster("c | z1: a=3 | z2: b")
    index.apply("ADDED", running("x", "b", "app=one"))
    index.apply("ADDED", running("y", "c", "app=one"))
    index.apply("ADDED", running("z", "b", "app=one", namespace="batch"))
    assert told(index, pod("app=x", affinity=affinity)) == expected


def test_the_anti_affinity_of_others_names_them():
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", running("db-0", "a", "app=db", affinity=near({"app": "web"}, which=ALONE)))
    index.apply("ADDED", running("free", "b", "app=db"))
    assert told(index, pod("app=web")) == {"excluded by the anti-affinity of another pod: shop/db-0": "a"}
    [one] = obstacles(Cycle(take(index, pod("app=web"))))
    assert one.text == "excluded by the anti-affinity of another pod"


MOUNTS = (Volume(name="d", persistent_volume_claim=ClaimSource(claim_name="data")),)


def claim(*, bound="", of="", modes=None):
    annotations = {BIND_COMPLETED: "yes"} if bound else None
    spec = ClaimSpec(volume_name=bound or None, storage_class_name=of or None, access_modes=modes)
    return Claim(metadata=meta("data", annotations=annotations), spec=spec)


def volume(*, zone=None, labelled=None, driver=None):
    affinity = None
    if zone:
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(expressions(f"{ZONE} In {zone}"),)))
    source = CsiSource(driver=driver, volume_handle="h") if driver else None
    labels = {ZONE: labelled} if labelled else None
    spec = PersistentVolumeSpec(node_affinity=affinity, csi=source)
    return PersistentVolume(metadata=ObjectMeta(name="pv-1", labels=labels), spec=spec)


def storage_class(mode, provisioner="x"):
    return StorageClass(metadata=ObjectMeta(name="fast"), volume_binding_mode=mode, provisioner=provisioner)


NO_CLAIM = 'persistentvolumeclaim "data" not found'


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], {NO_CLAIM: "a b"}, id="no claim"),
        pytest.param([claim(bound="pv-1"), volume()], {}, id="a volume that every node reaches"),
        pytest.param(
            [claim(bound="pv-1"), volume(zone="z1")],
            {f"out of reach of volume pv-1 (claim data), usable from {ZONE}=z1": "b"},
            id="a volume's node affinity",
        ),
        pytest.param(
            [claim(bound="pv-1"), volume(labelled="z1__z3")],
            {f"out of reach of volume pv-1 (claim data), which is in {ZONE}=z1 or z3": "b"},
            id="a volume's zone",
        ),
        pytest.param(
            [claim(of="fast"), storage_class("Immediate")],
            {"waiting for claim data (class fast), which has no volume yet": "a b"},
            id="unbound",
        ),
        pytest.param([claim()], {"waiting for claim data (no class), which has no volume yet": "a b"}, id="no class"),
        pytest.param(
            [claim(of="fast"), storage_class("WaitForFirstConsumer", "kubernetes.io/no-provisioner")],
            {"without a volume for claim data (class fast): none is free there, and none can be provisioned": "a b"},
            id="none to bind",
        ),
    ],
)
def test_volumes(objects, expected):
    index = cluster("z1: a | z2: b")
    for each in objects:
        index.apply("ADDED", each)
    assert told(index, pod("app=web", volumes=MOUNTS)) == expected


def test_a_volume_that_is_gone():
    index = cluster("z1: a")
    index.apply("ADDED", claim(bound="pv-9"))
    found = told(index, pod("app=web", volumes=MOUNTS))
    assert found["waiting for volume pv-9 of claim data, which does not exist"] == "a"


def test_a_claim_that_is_being_deleted_has_the_schedulers_words():
    index = cluster("z1: a")
    leaving = claim(bound="pv-1")
    index.apply("ADDED", replace(leaving, metadata=replace(leaving.meta, deletion_timestamp="2026-01-01T00:00:00Z")))
    index.apply("ADDED", volume(zone="z2"))
    assert told(index, pod("app=web", volumes=MOUNTS)) == {'persistentvolumeclaim "data" is being deleted': "a"}


def test_volumes_that_others_use():
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", claim(bound="pv-1", modes=("ReadWriteOncePod",)))
    index.apply("ADDED", volume())
    index.apply("ADDED", running("db-0", "a", "app=db", volumes=MOUNTS))
    text = "blocked by claim data, which allows only one pod and is in use by another pod"
    assert told(index, pod("app=web", volumes=MOUNTS)) == {text: "a b"}
    disk = (Volume(name="d", gce_persistent_disk=GcePersistentDisk(pd_name="x")),)
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", running("db-0", "a", "app=db", volumes=disk))
    assert told(index, pod("app=web", volumes=disk)) == {"with a disk of this pod in use by another pod": "a"}


def test_volumes_that_cannot_be_attached():
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", claim(bound="pv-1"))
    index.apply("ADDED", volume(driver="csi"))
    drivers = (CsiDriverOnNode(name="csi", allocatable=DriverAllocatable(count=0)),)
    index.apply("ADDED", CsiNode(metadata=ObjectMeta(name="a"), spec=CsiNodeSpec(drivers=drivers)))
    assert told(index, pod("app=web", volumes=MOUNTS)) == {"at its limit of attached volumes": "a"}


def test_what_storage_drivers_say():
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", claim(bound="pv-1"))
    index.apply("ADDED", volume(driver="csi"))
    insists = CsiDriverSpec(prevent_pod_scheduling_if_missing=True)
    index.apply("ADDED", CsiDriver(metadata=ObjectMeta(name="csi"), spec=insists))
    index.apply(
        "ADDED", CsiNode(metadata=ObjectMeta(name="a"), spec=CsiNodeSpec(drivers=(CsiDriverOnNode(name="csi"),)))
    )
    assert told(index, pod("app=web", volumes=MOUNTS)) == {"without the storage driver csi of a volume": "b"}
    index = cluster("z1: a | z2: b")
    size = ResourceRequirements(requests={"storage": "1Gi"})
    waits = Claim(metadata=meta("data"), spec=ClaimSpec(storage_class_name="later", resources=size))
    later = StorageClass(
        metadata=ObjectMeta(name="later"), provisioner="csi", volume_binding_mode="WaitForFirstConsumer"
    )
    publishes = CsiDriver(metadata=ObjectMeta(name="csi"), spec=CsiDriverSpec(storage_capacity=True))
    for each in (waits, later, publishes):
        index.apply("ADDED", each)
    text = "without space for a volume for claim data (class later), according to the storage driver"
    assert told(index, pod("app=web", volumes=MOUNTS)) == {text: "a b"}


def test_a_selector_that_cannot_be_read_is_in_the_schedulers_words():
    [text] = told(cluster("z1: a"), pod(constraints=(constraint(select="app=not/a/value"),)))
    assert text.startswith("get constraints from pod: ")


def test_nodes_that_two_things_keep_out_have_both():
    index = cluster("z1: a | z2: ~b ~c")
    found = explain_pod(take(index, pod(node_selector={HOSTNAME: "c"})), index)
    names = found.verdict.nodes.names
    parts = [
        (texts, [names[slot] for slot in node_sets.to_slots(nodes)])
        for texts, nodes in grouped(found.obstacles, found.verdict.nodes.live)
    ]
    selected = f"not selected (wants {HOSTNAME}=c)"
    assert parts == [
        ((selected,), ["a"]),
        (("tainted dedicated:NoSchedule",), ["c"]),
        (("tainted dedicated:NoSchedule", selected), ["b"]),
    ]


def test_a_node_that_is_kept_for_another_has_no_name():
    index = cluster("z1: a=0", resources={**ROOMY, "pods": "1"})
    waits = replace(running("first", "", "app=x"), status=PodStatus(nominated_node_name="a"))
    index.apply("ADDED", waits)
    found = explain_pod(take(index, pod()), index)
    assert not found.verdict.feasible
    assert grouped(found.obstacles, found.verdict.nodes.live) == [((), found.verdict.nodes.live)]
    assert grouped(found.obstacles, 0) == [], "no nodes are no group"
