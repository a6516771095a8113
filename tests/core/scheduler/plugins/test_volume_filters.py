"""VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: exact reasons; combinations are in the vectors."""

import pytest
from build import cluster, filled, meta, pod, running
from msgspec.structs import replace

from webhook.core.api.storage import (
    AttachmentSource,
    AttachmentSpec,
    Claim,
    ClaimReference,
    CsiDriver,
    CsiDriverOnNode,
    CsiDriverSpec,
    CsiNode,
    CsiNodeSpec,
    CsiSource,
    DriverAllocatable,
    PersistentVolume,
    PersistentVolumeSpec,
    Phase,
    StorageCapacity,
    StorageClass,
    TopologyRequirement,
    TopologyTerm,
    VolumeAttachment,
    VolumeNodeAffinity,
)
from webhook.core.api.types import (
    AwsElasticBlockStore,
    AzureDisk,
    ClaimSource,
    ClaimSpec,
    EphemeralSource,
    GcePersistentDisk,
    Iscsi,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Rbd,
    ResourceRequirements,
    Volume,
    VolumeIdSource,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import ZONE
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.node_volume_limits import free_attachments
from webhook.core.scheduler.plugins.status import OK, PASSES, Status
from webhook.core.scheduler.problem import take

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def claim(name="data", volume=None, *, of="fast", modes=("ReadWriteOnce",), size="5Gi", **more):
    annotations = (BOUND if volume else {}) | more.pop("annotations", {})
    requests = ResourceRequirements(requests={"storage": size})
    spec = ClaimSpec(access_modes=modes, volume_name=volume, storage_class_name=of, resources=requests)
    made = meta(name, annotations=annotations or None)
    return Claim(metadata=replace(made, uid=f"uid-{name}", **more), spec=spec)


def in_zone(*zones):
    condition = NodeSelectorRequirement(key=ZONE, operator="In", values=zones)
    return VolumeNodeAffinity(
        required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(condition,)),))
    )


def volume(name="pv", *, of="fast", affinity=None, labels=None, phase="Bound", size="10Gi"):
    spec = PersistentVolumeSpec(
        capacity={"storage": size},
        access_modes=("ReadWriteOnce",),
        storage_class_name=of,
        node_affinity=affinity,
        csi=CsiSource(driver="csi.example.com", volume_handle=f"h-{name}"),
    )
    return PersistentVolume(metadata=ObjectMeta(name=name, labels=labels), spec=spec, status=Phase(phase=phase))


def storage_class(name="fast", mode="Immediate", provisioner="csi.example.com", zones=()):
    term = TopologyTerm(match_label_expressions=(TopologyRequirement(key=ZONE, values=zones),))
    topologies = (term,) if zones else None
    made = ObjectMeta(name=name)
    return StorageClass(metadata=made, provisioner=provisioner, volume_binding_mode=mode, allowed_topologies=topologies)


def mounts(*names):
    return tuple(Volume(name=f"v{name}", persistent_volume_claim=ClaimSource(claim_name=name)) for name in names)


def index_of(*objects, spread="z1: a=0 | z2: b=0"):
    return filled(cluster(spread), objects)


def told(plugin, index, volumes, **more):
    incoming = pod("app=x", volumes=volumes)
    incoming = replace(incoming, metadata=replace(incoming.metadata, **more))
    verdict = Cycle(take(index, incoming)).verdict_of(plugin)
    return verdict.pre_filter, [verdict.status(name) for name in sorted(verdict.nodes.slots)]


def never(*reasons):
    return Status("UnschedulableAndUnresolvable", reasons=reasons)


def now(reason):
    return Status("Unschedulable", reasons=(reason,))


def failed(text):
    return Status("Error", reasons=(text,))


def choosy(operator):
    """A claim whose selector has this operator."""
    made = claim(of="static")
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement(key="x", operator=operator, values=("y",)),))
    return replace(made, spec=replace(made.spec, selector=selector))


LATER = storage_class("later", "WaitForFirstConsumer")
ANYWHERE = TopologyTerm()
STATIC = storage_class("static", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")


@pytest.mark.parametrize(
    ("objects", "statuses"),
    [
        pytest.param([claim(volume="pv"), volume()], [OK, OK], id="bound and reachable"),
        pytest.param(
            [claim(volume="pv"), volume(affinity=in_zone("z1"))], [OK, never(OTHER_NODE)], id="bound to a zone"
        ),
        pytest.param(
            [claim(volume="pv")],
            [never("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")] * 2,
            id="bound to a volume that is gone",
        ),
        pytest.param([claim(of="later"), LATER], [OK, OK], id="made where the pod goes"),
        pytest.param(
            [claim(of="zonal"), storage_class("zonal", "WaitForFirstConsumer", zones=("z2",))],
            [never(NONE_TO_BIND), OK],
            id="made in some zones",
        ),
        pytest.param([claim(of="static"), STATIC], [never(NONE_TO_BIND)] * 2, id="nothing is made"),
        pytest.param(
            [claim(of="nowhere"), replace(LATER, metadata=ObjectMeta(name="nowhere"), allowed_topologies=(ANYWHERE,))],
            [never(NONE_TO_BIND)] * 2,
            id="a topology that names nothing",
        ),
        pytest.param(
            [
                claim(of="static"),
                STATIC,
                *(
                    volume(f"local-{zone}", of="static", affinity=in_zone(zone), phase="Available")
                    for zone in ("z1", "z2")
                ),
            ],
            [OK, OK],
            id="a free volume in each zone",
        ),
        pytest.param(
            [choosy("Near"), STATIC, volume("local", of="static", phase="Available")],
            [
                failed(
                    "error creating internal label selector for claim: shop/data: "
                    '"Near" is not a valid label selector operator'
                )
            ]
            * 2,
            id="a selector that is none",
        ),
        pytest.param(
            [claim(of="static"), STATIC, volume("local", of="static", affinity=in_zone("z1"), phase="Available")],
            [OK, never(NONE_TO_BIND)],
            id="a free volume in a zone",
        ),
        pytest.param(
            [claim(of="static", size="11Gi"), STATIC, volume("local", of="static", phase="Available")],
            [never(NONE_TO_BIND)] * 2,
            id="a free volume that is too small",
        ),
        pytest.param(
            [claim(of="later", annotations={"volume.kubernetes.io/selected-node": "b"}), LATER],
            [never(NONE_TO_BIND), OK],
            id="a node is chosen already",
        ),
    ],
)
def test_volume_binding(objects, statuses):
    assert told("VolumeBinding", index_of(*objects), mounts("data")) == (OK, statuses)


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        pytest.param([], never('persistentvolumeclaim "data" not found'), id="no claim"),
        pytest.param(
            [claim(), storage_class()], never("pod has unbound immediate PersistentVolumeClaims"), id="unbound"
        ),
        pytest.param(
            [claim(volume="pv", deletion_timestamp="2026-01-01T00:00:00Z")],
            never('persistentvolumeclaim "data" is being deleted'),
            id="being deleted",
        ),
        pytest.param(
            [replace(claim(volume="pv"), status=Phase(phase="Lost"))],
            never('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
            id="lost",
        ),
        pytest.param(
            [claim(of="odd"), storage_class("odd", None)],
            failed('VolumeBindingMode not set for StorageClass "odd"'),
            id="a class without a mode",
        ),
    ],
)
def test_claims_that_keep_the_pod_from_any_node(objects, status):
    assert told("VolumeBinding", index_of(*objects), mounts("data")) == (status, [status, status])


def test_two_claims_take_two_volumes():
    free = [volume(f"local-{n}", of="static", phase="Available", affinity=in_zone("z1")) for n in range(2)]
    claims = [claim("one", of="static"), claim("two", of="static")]
    index = index_of(STATIC, *claims, free[0])
    assert told("VolumeBinding", index, mounts("one", "two"))[1] == [never(NONE_TO_BIND)] * 2
    index.apply("ADDED", free[1])
    assert told("VolumeBinding", index, mounts("one", "two"))[1] == [OK, never(NONE_TO_BIND)]


@pytest.mark.parametrize(
    ("version", "wanted", "status"),
    [
        pytest.param((1, 34), "gold", OK, id="the same"),
        pytest.param((1, 34), None, never(NONE_TO_BIND), id="another"),
        pytest.param((1, 33), None, never(NONE_TO_BIND), id="a volume with a class was never taken"),
    ],
)
def test_attributes_classes_are_compared_since_1_34(version, wanted, status):
    asked, free = claim(of="static"), volume(of="static", phase="Available")
    asked = replace(asked, spec=replace(asked.spec, volume_attributes_class_name=wanted))
    free = replace(free, spec=replace(free.spec, volume_attributes_class_name="gold"))
    index = index_of(STATIC, asked, free)
    index.version = KubernetesVersion(*version)
    assert told("VolumeBinding", index, mounts("data"))[1] == [status] * 2


def test_both_reasons_on_one_node():
    index = index_of(STATIC, claim("one", "pv"), volume(affinity=in_zone("z1")), claim("two", of="static"))
    assert told("VolumeBinding", index, mounts("one", "two"))[1] == [
        never(NONE_TO_BIND),
        never(OTHER_NODE, NONE_TO_BIND),
    ]


def test_claims_of_ephemeral_volumes():
    inline = (Volume(name="v", ephemeral=EphemeralSource()),)
    waits = never('waiting for ephemeral volume controller to create the persistentvolumeclaim "web-0-v"')
    assert told("VolumeBinding", index_of(), inline)[0] == waits
    owner = OwnerReference(api_version="v1", kind="Pod", name="web-0", uid="u1", controller=True)
    index = index_of(claim("web-0-v", "pv", owner_references=(owner,)), volume())
    assert told("VolumeBinding", index, inline, uid="u1") == (OK, [OK, OK])
    other = never("PVC shop/web-0-v was not created for pod shop/web-0 (pod is not owner)")
    assert told("VolumeBinding", index, inline, uid="u2")[0] == other


@pytest.mark.parametrize(
    ("labels", "statuses"),
    [
        pytest.param({ZONE: "z1"}, [OK, "no"], id="a zone"),
        pytest.param({ZONE: "z1__z2"}, [OK, OK], id="two zones"),
        pytest.param({"failure-domain.beta.kubernetes.io/zone": "z2"}, ["no", OK], id="the beta label of a zone"),
        pytest.param({ZONE: "z1__"}, [OK, OK], id="a value that cannot be read"),
        pytest.param(None, [OK, OK], id="no label"),
    ],
)
def test_volume_zone(labels, statuses):
    index = index_of(claim(volume="pv"), volume(labels=labels))
    expected = [never("node(s) had no available volume zone") if each == "no" else each for each in statuses]
    assert told("VolumeZone", index, mounts("data"))[1] == expected


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param([claim(volume="pv")], 'persistentvolume "pv" not found', id="no volume"),
        pytest.param([claim(of=None)], "PersistentVolumeClaim had no pv name and storageClass name", id="no class"),
        pytest.param([claim()], 'storageclass.storage.k8s.io "fast" not found', id="a class that is gone"),
        pytest.param(
            [claim(of="odd"), storage_class("odd", None)],
            'VolumeBindingMode not set for StorageClass "odd"',
            id="no mode",
        ),
        pytest.param([claim(), storage_class()], "PersistentVolume had no name", id="immediate and not bound"),
    ],
)
def test_volume_zone_needs_to_know_the_volume(objects, reason):
    assert told("VolumeZone", index_of(*objects), mounts("data"))[0] == never(reason)
    assert told("VolumeZone", index_of(claim(of="later"), LATER), mounts("data"))[0] == PASSES.pre_filter


def test_a_claim_for_one_pod_only():
    single = claim(volume="pv", modes=("ReadWriteOncePod",))
    index = index_of(single, volume())
    assert told("VolumeRestrictions", index, mounts("data"))[0] == PASSES.pre_filter
    user = running("user", "a", volumes=mounts("data"))
    index.apply("ADDED", user)
    assert told("VolumeRestrictions", index, mounts("data"))[1] == [now(IN_USE)] * 2
    index.apply("DELETED", user)
    assert told("VolumeRestrictions", index, mounts("data"))[1] == [OK, OK]
    assert told("VolumeRestrictions", index, mounts("gone"))[0] == never('persistentvolumeclaim "gone" not found')


GCE = GcePersistentDisk(pd_name="d")
RBD = Rbd(monitors=("m1", "m2"), pool="p", image="i")


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        pytest.param({"gce_persistent_disk": GCE}, {"gce_persistent_disk": GCE}, True, id="a disk of GCE"),
        pytest.param(
            {"gce_persistent_disk": replace(GCE, read_only=True)},
            {"gce_persistent_disk": replace(GCE, read_only=True)},
            False,
            id="both read only",
        ),
        pytest.param(
            {"aws_elastic_block_store": AwsElasticBlockStore(volume_id="v")},
            {"aws_elastic_block_store": AwsElasticBlockStore(volume_id="v")},
            True,
            id="a disk of AWS",
        ),
        pytest.param(
            {"iscsi": Iscsi(iqn="i")}, {"iscsi": Iscsi(iqn="i", read_only=True)}, True, id="iSCSI, one writes"
        ),
        pytest.param({"rbd": RBD}, {"rbd": replace(RBD, monitors=("m2",))}, True, id="RBD with a common monitor"),
        pytest.param({"rbd": RBD}, {"rbd": replace(RBD, image="j")}, False, id="another image"),
        pytest.param({"rbd": RBD}, {"iscsi": Iscsi(iqn="i")}, False, id="two kinds"),
    ],
)
def test_disks_that_two_pods_cannot_share(one, other, conflict):
    index = index_of(running("user", "a", volumes=(Volume(name="v", **other),)))
    first = now("node(s) had no available disk") if conflict else OK
    assert told("VolumeRestrictions", index, (Volume(name="v", **one),))[1] == [first, OK]


def limits(node, **counts):
    drivers = tuple(
        CsiDriverOnNode(name=name.replace("__", "."), allocatable=DriverAllocatable(count=count))
        for name, count in counts.items()
    )
    return CsiNode(metadata=ObjectMeta(name=node), spec=CsiNodeSpec(drivers=drivers))


FULL = now("node(s) exceed max volume count")


def test_attach_limits():
    index = index_of(
        *(claim(f"c{n}", f"pv{n}") for n in range(3)),
        *(volume(f"pv{n}") for n in range(3)),
        limits("a", csi__example__com=2),
        running("user", "a", volumes=mounts("c0")),
    )
    assert told("NodeVolumeLimits", index, mounts("c1"))[1] == [OK, OK]
    assert told("NodeVolumeLimits", index, mounts("c0", "c1"))[1] == [OK, OK]  # one is attached already
    assert told("NodeVolumeLimits", index, mounts("c1", "c2"))[1] == [FULL, OK]  # the other node has no limit
    missing = never('looking up PVC shop/gone: persistentvolumeclaim "gone" not found')
    assert told("NodeVolumeLimits", index, mounts("gone"))[1] == [missing, missing]
    assert told("NodeVolumeLimits", index, ())[0] == PASSES.pre_filter


def test_free_attachments_of_a_driver():
    attachment = AttachmentSpec(
        attacher="csi.example.com", node_name="a", source=AttachmentSource(persistent_volume_name="pv2")
    )
    index = index_of(
        *(claim(f"c{n}", f"pv{n}") for n in range(3)),
        *(volume(f"pv{n}") for n in range(3)),
        limits("a", csi__example__com=3, files=5),
        limits("b", csi__example__com=1),
        limits("gone", csi__example__com=0),
        running("user", "a", volumes=mounts("c0", "c1")),
        running("other", "a", volumes=mounts("c1")),
        # It is about to be detached.
        VolumeAttachment(metadata=ObjectMeta(name="x"), spec=attachment),
    )
    a, b = (index.nodes.view().slots[name] for name in "ab")
    assert free_attachments("csi.example.com", 4, index) == {a: 1, b: 1}
    assert free_attachments("csi.example.com", 1, index) == {}
    assert free_attachments("files", 9, index) == {a: 5}
    index.apply("MODIFIED", limits("a", csi__example__com=1))
    assert free_attachments("csi.example.com", 1, index) == {a: -1}
    disk = Volume(name="v", aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws://zone/disk"))
    index.apply("ADDED", running("unreadable", "b", volumes=(disk,)))
    assert free_attachments("csi.example.com", 1, index) == {a: -1, b: -(2**31)}  # as many as no leaving pods free


def test_free_attachments_of_many_nodes():
    """Each node has a volume of another driver, and an upper bound of its volumes would leave no room."""
    numbers = range(150)
    index = index_of(
        *(claim(f"c{n}", f"pv{n}") for n in numbers),
        *(volume(f"pv{n}") for n in numbers),
        *(limits(f"n{n}", csi__example__com=1, files=1) for n in numbers),
        *(running(f"user-{n}", f"n{n}", volumes=mounts(f"c{n}")) for n in numbers),
        spread=f"z1: {' '.join(f'n{n}=0' for n in numbers)}",
    )
    assert set(free_attachments("csi.example.com", 1, index).values()) == {0}
    assert free_attachments("files", 1, index) == {}


def test_volumes_of_in_tree_plugins_count_for_the_driver_that_replaced_them():
    def disk(written):
        return (Volume(name="v", aws_elastic_block_store=AwsElasticBlockStore(volume_id=written)),)

    index = index_of(limits("a", ebs__csi__aws__com=1), running("user", "a", volumes=disk("vol-1")))
    assert told("NodeVolumeLimits", index, disk("vol-2"))[1] == [FULL, OK]
    assert told("NodeVolumeLimits", index, disk("aws://zone/vol-1"))[1] == [OK, OK]
    text = (
        "converting volume(v) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
        "Invalid format for AWS volume (aws://zone/disk)"
    )
    assert told("NodeVolumeLimits", index, disk("aws://zone/disk"))[1] == [failed(text), OK]
    waiting = index_of(claim(of="later"), storage_class("later", "WaitForFirstConsumer", "kubernetes.io/aws-ebs"))
    waiting.apply("ADDED", limits("a", ebs__csi__aws__com=0))
    assert told("NodeVolumeLimits", waiting, mounts("data"))[1] == [FULL, OK]


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        pytest.param({"cinder": VolumeIdSource(volume_id="v")}, "cinder__csi__openstack__org", id="Cinder"),
        pytest.param({"portworx_volume": VolumeIdSource(volume_id="v")}, "pxd__portworx__com", id="Portworx"),
        pytest.param({"azure_disk": AzureDisk(disk_uri="v", kind="Managed")}, "disk__csi__azure__com", id="Azure"),
        pytest.param({"gce_persistent_disk": GCE}, "pd__csi__storage__gke__io", id="GCE"),
    ],
)
def test_drivers_of_in_tree_plugins(source, driver):
    bound = replace(volume(), spec=PersistentVolumeSpec(**source))
    index = index_of(claim(volume="pv"), bound, limits("a", **{driver: 0}))
    assert told("NodeVolumeLimits", index, mounts("data"))[1] == [FULL, OK]
    assert told("NodeVolumeLimits", index, (Volume(name="v", **source),))[1] == [FULL, OK]


def test_volumes_that_are_not_counted():
    shared = replace(volume(), spec=PersistentVolumeSpec(azure_disk=AzureDisk(disk_uri="v", kind="Shared")))
    index = index_of(claim(volume="pv"), shared, limits("a", disk__csi__azure__com=0))
    assert told("NodeVolumeLimits", index, mounts("data"))[1] == [OK, OK]
    text = "converting volume(v) from inline to csi: kind(Shared) is not supported in csi migration"
    inline = (Volume(name="v", azure_disk=shared.spec.azure_disk),)
    assert told("NodeVolumeLimits", index, inline)[1] == [failed(text), OK]
    index = index_of(
        claim(of="files"), storage_class("files", "Immediate", "kubernetes.io/azure-file"), limits("a", x=0)
    )
    assert told("NodeVolumeLimits", index, mounts("data"))[1] == [OK, OK]
    assert told("NodeVolumeLimits", index, mounts(""))[1] == [failed("PersistentVolumeClaim had no name")] * 2


def test_free_volumes_follow_events():
    index = index_of(STATIC, claim(of="static"))
    told_now = lambda: told("VolumeBinding", index, mounts("data"))[1][0]  # noqa: E731 - the same question each time
    free = volume("local", of="static", phase="Available")
    claimed = ClaimReference(namespace="shop", name="data")
    for event, each, status in (
        ("ADDED", free, OK),
        ("MODIFIED", replace(free, spec=replace(free.spec, claim_ref=replace(claimed, name="x"))), never(NONE_TO_BIND)),
        ("MODIFIED", replace(free, spec=replace(free.spec, claim_ref=claimed)), OK),
        ("MODIFIED", replace(free, spec=replace(free.spec, storage_class_name="other")), never(NONE_TO_BIND)),
        ("MODIFIED", free, OK),
        ("DELETED", free, never(NONE_TO_BIND)),
        ("DELETED", free, never(NONE_TO_BIND)),
    ):
        index.apply(event, each)
        assert told_now() == status


def test_a_limit_is_looked_at_only_where_it_may_be_reached():
    index = index_of(
        *(claim(f"c{n}", f"pv{n}") for n in range(4)),
        *(volume(f"pv{n}") for n in range(4)),
        limits("a", csi__example__com=2, other=1),
        limits("b", csi__example__com=9),
        running("user", "a", volumes=mounts("c0", "c1")),
        running("other", "b", volumes=mounts("c2")),
    )
    problem = take(index, pod("app=x", volumes=mounts("c3")))
    assert set(problem.storage.mounted) == {index.nodes.view().slots["a"]}
    assert told("NodeVolumeLimits", index, mounts("c3"))[1] == [FULL, OK]


def test_a_pod_without_namespace_finds_no_claim():
    index = index_of(claim(volume="pv", namespace=""), volume())
    status = failed('error getting PVC "/data": persistentvolumeclaims "/data" not found')
    assert told("VolumeBinding", index, mounts("data"), namespace="")[0] == status


def test_a_claim_that_several_pods_use_is_in_use_until_the_last_is_gone():
    index = index_of(claim(volume="pv", modes=("ReadWriteOncePod",)), volume())
    users = [running(name, "a", volumes=mounts("data")) for name in ("one", "two")]
    for user in users:
        index.apply("ADDED", user)
    index.apply("DELETED", users[0])
    assert told("VolumeRestrictions", index, mounts("data"))[1] == [now(IN_USE)] * 2
    index.apply("DELETED", users[1])
    assert told("VolumeRestrictions", index, mounts("data"))[1] == [OK, OK]


def test_a_claim_for_many_pods_restricts_nobody():
    assert told("VolumeRestrictions", index_of(claim(volume="pv"), volume()), mounts("data"))[0] == PASSES.pre_filter


class TestAttachedVolumes:
    LIMIT = limits("a", csi__example__com=1)

    @pytest.mark.parametrize(
        ("user", "status"),
        [
            pytest.param(mounts("c0"), FULL, id="one"),
            pytest.param(mounts("gone"), OK, id="a claim that is gone"),
            pytest.param(mounts(""), failed("PersistentVolumeClaim had no name"), id="a claim without name"),
        ],
    )
    def test_a_pod_on_the_node_uses_up_the_limit(self, user, status):
        bound = [each for n in range(2) for each in (claim(f"c{n}", f"pv{n}"), volume(f"pv{n}"))]
        index = index_of(*bound, self.LIMIT, running("user", "a", volumes=user))
        assert told("NodeVolumeLimits", index, mounts("c1"))[1] == [status, OK]

    def test_limits_of_missing_nodes_and_of_nodes_without_any(self):
        index = index_of(
            claim(volume="pv"), volume(), limits("gone", x=1), limits("a"), limits("b", csi__example__com=0)
        )
        assert told("NodeVolumeLimits", index, mounts("data"))[1] == [OK, FULL]

    @pytest.mark.parametrize(
        ("objects", "status"),
        [
            pytest.param([claim(), storage_class()], FULL, id="not yet made: by the driver of its class"),
            pytest.param(
                [claim(volume="pv"), replace(volume(), spec=PersistentVolumeSpec())],
                OK,
                id="of a kind that is not counted",
            ),
        ],
    )
    def test_a_claim_counts_towards_the_limit(self, objects, status):
        index = index_of(*objects, limits("a", csi__example__com=0))
        assert told("NodeVolumeLimits", index, mounts("data"))[1] == [status, OK]

    def test_a_claim_made_for_another_pod(self):
        inline = (Volume(name="v", ephemeral=EphemeralSource()),)
        index = index_of(claim("web-0-v", "pv"), volume(), self.LIMIT)
        status = failed("PVC shop/web-0-v was not created for pod shop/web-0 (pod is not owner)")
        assert told("NodeVolumeLimits", index, inline, uid="u1")[1] == [status, status]
        owner = OwnerReference(api_version="v1", kind="Pod", name="web-0", uid="u1", controller=True)
        index.apply("MODIFIED", claim("web-0-v", "pv", owner_references=(owner,)))
        assert told("NodeVolumeLimits", index, inline, uid="u1")[1] == [OK, OK]


def driver(*, publishes=None, insists=None, name="csi.example.com"):
    spec = CsiDriverSpec(storage_capacity=publishes, prevent_pod_scheduling_if_missing=insists)
    return CsiDriver(metadata=ObjectMeta(name=name), spec=spec)


def attachment(name="va", pv: str | None = "pv0", node="a", attacher="csi.example.com"):
    spec = AttachmentSpec(attacher=attacher, node_name=node, source=AttachmentSource(persistent_volume_name=pv))
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec)


@pytest.mark.parametrize(
    ("attached", "full"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param([attachment()], True, id="a volume without a pod"),
        pytest.param([attachment(pv="pv2")], False, id="the volume of a pod that is there, once"),
        pytest.param([attachment(pv="pv1")], True, id="the volume itself, which upstream counts twice"),
        pytest.param([attachment(node="b")], False, id="to another node"),
        pytest.param([attachment(attacher="other")], False, id="by another driver"),
        pytest.param([attachment(attacher="")], False, id="by nobody"),
        pytest.param([attachment(pv="gone")], False, id="a volume that does not exist"),
        pytest.param([attachment(pv=None)], False, id="no volume"),
        pytest.param([attachment(), attachment(node="b")], False, id="moved to another node"),
    ],
)
def test_volumes_that_are_attached_count(attached, full):
    index = index_of(
        *(claim(f"c{n}", f"pv{n}") for n in range(3)),
        *(volume(f"pv{n}") for n in range(3)),
        limits("a", csi__example__com=2),
        running("user", "a", volumes=mounts("c2")),
        *attached,
    )
    assert told("NodeVolumeLimits", index, mounts("c1"))[1] == [FULL if full else OK, OK]
    for each in attached:
        index.apply("DELETED", each)
    assert told("NodeVolumeLimits", index, mounts("c1"))[1] == [OK, OK]


WITHOUT = now("csi.example.com CSI driver is not installed on the node")


@pytest.mark.parametrize(
    ("version", "insists", "said"),
    [
        pytest.param((1, 37), True, [OK, WITHOUT], id="1.37"),
        pytest.param((1, 36), True, [OK, OK], id="1.36"),
        pytest.param((1, 37), False, [OK, OK], id="it does not"),
        pytest.param((1, 37), None, [OK, OK], id="it says nothing"),
    ],
)
def test_a_driver_may_insist_on_being_installed_since_1_37(version, insists, said):
    index = index_of(claim(volume="pv"), volume(), driver(insists=insists), limits("a", csi__example__com=9))
    index.version = KubernetesVersion(*version)
    assert told("NodeVolumeLimits", index, mounts("data"))[1] == said
    index.apply("DELETED", limits("a", csi__example__com=9))
    assert told("NodeVolumeLimits", index, mounts("data"))[1] == ([WITHOUT] * 2 if WITHOUT in said else said)


def capacity(amount, zone="z1", *, largest=None, of="later", select=None):
    labelled = select or (None if zone is None else LabelSelector(match_labels={ZONE: zone}))
    return StorageCapacity(
        metadata=ObjectMeta(name=f"c-{zone}", namespace="kube-system"),
        storage_class_name=of,
        node_topology=labelled,
        capacity=amount,
        maximum_volume_size=largest,
    )


NO_SPACE = never("node(s) did not have enough free storage")
ODD = LabelSelector(match_expressions=(LabelSelectorRequirement(key=ZONE, operator="In"),))


@pytest.mark.parametrize(
    ("published", "said"),
    [
        pytest.param([], [NO_SPACE, NO_SPACE], id="nothing"),
        pytest.param([capacity("5Gi")], [OK, NO_SPACE], id="enough in one zone"),
        pytest.param([capacity("5368709119")], [NO_SPACE, NO_SPACE], id="a byte too little"),
        pytest.param([capacity("5368709119.5")], [OK, NO_SPACE], id="rounded up"),
        pytest.param([capacity("1Ti", largest="1Gi")], [NO_SPACE, NO_SPACE], id="no volume so large"),
        pytest.param([capacity(None)], [NO_SPACE, NO_SPACE], id="it does not say how much"),
        pytest.param([capacity("5Gi", None)], [NO_SPACE, NO_SPACE], id="it does not say where"),
        pytest.param([capacity("5Gi", select=LabelSelector())], [OK, OK], id="everywhere"),
        pytest.param([capacity("5Gi", select=ODD)], [NO_SPACE, NO_SPACE], id="nobody knows where"),
        pytest.param([capacity("5Gi", of="fast")], [NO_SPACE, NO_SPACE], id="of another class"),
        pytest.param([capacity("5Gi"), capacity("1Gi")], [NO_SPACE, NO_SPACE], id="less by now"),
        pytest.param([capacity("5Gi"), capacity("6Gi", "z2")], [OK, OK], id="in both zones"),
    ],
)
def test_capacity_that_a_driver_publishes(published, said):
    index = index_of(claim(of="later"), storage_class("later", "WaitForFirstConsumer"), driver(publishes=True))
    for each in published:
        index.apply("MODIFIED", each)
    assert told("VolumeBinding", index, mounts("data"))[1] == said
    for each in published:
        index.apply("DELETED", each)
    assert told("VolumeBinding", index, mounts("data"))[1] == [NO_SPACE, NO_SPACE]
    for publishes in (False, None):
        index.apply("MODIFIED", driver(publishes=publishes))
        assert told("VolumeBinding", index, mounts("data"))[1] == [OK, OK]
    index.apply("DELETED", driver())
    assert told("VolumeBinding", index, mounts("data"))[1] == [OK, OK]


def test_space_is_asked_for_where_a_volume_could_be_made():
    index = index_of(
        claim("a", of="zonal"),
        claim("b", of="later", annotations={"volume.kubernetes.io/selected-node": "a"}),
        storage_class("zonal", "WaitForFirstConsumer", zones=("z1",)),
        storage_class("later", "WaitForFirstConsumer"),
        driver(publishes=True),
    )
    assert told("VolumeBinding", index, mounts("a"))[1] == [NO_SPACE, never(NONE_TO_BIND)]
    assert told("VolumeBinding", index, mounts("b"))[1] == [NO_SPACE, never(NONE_TO_BIND)]
    index.apply("ADDED", capacity("5Gi", of="zonal"))
    assert told("VolumeBinding", index, mounts("a", "b"))[1] == [NO_SPACE, never(NONE_TO_BIND)]
    unsized = replace(claim("a", of="zonal"), spec=replace(claim("a", of="zonal").spec, resources=None))
    index.apply("MODIFIED", unsized)
    index.apply("DELETED", capacity("5Gi", of="zonal"))
    assert told("VolumeBinding", index, mounts("a"))[1] == [OK, never(NONE_TO_BIND)]
