"""Where the pods of a StatefulSet have to go, and what their claims leave uncertain."""

import pytest
from build import cluster, filled, running, terminating
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.storage import Claim, CsiDriver, CsiNode, PersistentVolume, StorageCapacity, StorageClass
from webhook.core.api.types import NodeSpec, ResourceRequirements
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.placement.proofs.pinned_claims import PodsToPlace, ordinals
from webhook.core.workloads.workload import ClaimTemplates

ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
LATE = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}


def index(*values):
    return filled(cluster("a: n1 n2 | b: n3"), values)


def claim(spec=None, **fields):
    meta = {"name": "data-web-0", "namespace": "shop", "annotations": fields.pop("annotations", {})}
    meta |= fields.pop("meta", {})
    return convert({"metadata": meta, "spec": spec or {}, **fields}, Claim)


def volume(labels=None, **spec):
    return convert({"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}, PersistentVolume)


def made_late(name="late", annotations=None, **fields):
    return convert({"metadata": {"name": name, "annotations": annotations or {}}} | LATE | fields, StorageClass)


def only(*values, named="late"):
    """The one pod, of which the claim template names that class."""
    found = ordinals(index(*values), "shop", "web", ClaimTemplates(("data",), (named,)), range(1))
    (pod,) = found.pods
    return pod


PINNED = claim({"volumeName": "pv"}, annotations=BOUND)
IN_A = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}}


@pytest.mark.parametrize(
    ("values", "nodes"),
    [
        pytest.param((), None, id="no claim"),
        pytest.param((PINNED, volume()), None, id="a volume that all nodes reach"),
        pytest.param((PINNED, volume(nodeAffinity=IN_A)), 0b011, id="a volume with node affinity"),
        pytest.param((PINNED, volume({ZONE: "b"})), 0b100, id="a volume with the label of a zone"),
        pytest.param((claim({"volumeName": "pv"}), volume({ZONE: "b"})), None, id="a claim that is not bound for good"),
    ],
)
def test_where_volumes_are(values, nodes):
    assert only(*values).nodes == nodes


IN_B = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}}


def within(*zones):
    """The class whose volumes are made in these zones alone."""
    return made_late(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": [*zones]}]}])


def space(**zones):
    """What the driver says of its free capacity in each zone."""
    for zone, amount in zones.items():
        topology = {"matchLabels": {ZONE: zone}}
        fields = {"storageClassName": "late", "capacity": amount, "nodeTopology": topology}
        yield convert({"metadata": {"name": zone, "namespace": "disks"}, **fields}, StorageCapacity)


DRIVER = convert({"metadata": {"name": "disks"}, "spec": {"storageCapacity": True}}, CsiDriver)

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


@pytest.mark.parametrize(
    ("values", "named", "likely", "certain"),
    [
        pytest.param((PINNED, volume()), "", True, True, id="bound"),
        pytest.param(
            (claim({"volumeName": "pv"}, annotations=BOUND, status={"phase": "Lost"}), volume()),
            "",
            *[False] * 2,
            id="lost",
        ),
        pytest.param(
            (
                claim({"volumeName": "pv"}, annotations=BOUND, meta={"deletionTimestamp": "2026-11-21T09:00:00Z"}),
                volume(),
            ),
            "",
            *[False] * 2,
            id="being deleted",
        ),
        pytest.param(
            (claim({"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}, annotations=BOUND), volume()),
            "",
            *[False] * 2,
            id="for one pod only",
        ),
        pytest.param((PINNED,), "", *[False] * 2, id="bound to a volume that is gone"),
        pytest.param((made_late(),), "late", True, True, id="to be made of a class that waits for the pod"),
        pytest.param((), "late", *[False] * 2, id="of a class that nobody knows"),
        pytest.param((), "", True, False, id="of the default class, which nobody knows"),
        pytest.param((made_late(annotations=DEFAULT),), "", True, True, id="of the default class"),
        pytest.param(
            (made_late(annotations=DEFAULT), made_late("other", DEFAULT)),
            "",
            True,
            True,
            id="of the first of two default classes",
        ),
        pytest.param(
            (made_late(volumeBindingMode="Immediate"),), "late", *[False] * 2, id="made before the pod has a node"
        ),
        pytest.param((made_late(provisioner="kubernetes.io/no-provisioner"),), "late", *[False] * 2, id="made by hand"),
        pytest.param((within("b"),), "late", True, True, id="made in some places"),
        pytest.param(
            (within("b"), volume(storageClassName="late")), "late", *[False] * 2, id="or free in another place"
        ),
        pytest.param(
            (within("b"), volume(storageClassName="late", nodeAffinity=IN_B)), "late", True, True, id="or free there"
        ),
        pytest.param((within("b"), volume(storageClassName="other")), "late", True, True, id="free in another class"),
        pytest.param((claim({"storageClassName": "late"}), made_late()), "", True, True, id="there, and waiting"),
        pytest.param((claim(), made_late()), "late", *[False] * 2, id="there, without a class"),
        pytest.param(
            (
                claim({"storageClassName": "late"}, annotations={"volume.kubernetes.io/selected-node": "n1"}),
                made_late(),
            ),
            "",
            *[False] * 2,
            id="on its way to a node",
        ),
    ],
)
def test_what_is_known_of_claims(values, named, likely, certain):
    pod = only(*values, named=named)
    assert (pod.likely, pod.certain) == (likely, certain)


CLAIM = claim({"storageClassName": "late", "resources": {"requests": {"storage": "5Gi"}}})


@pytest.mark.parametrize(
    ("values", "requests", "nodes"),
    [
        pytest.param((within("a"),), None, 0b011, id="in a zone"),
        pytest.param((within("a", "b"),), None, None, id="in all zones"),
        pytest.param((within("z"),), None, 0, id="in a zone without nodes"),
        pytest.param((made_late(allowedTopologies=[{}]),), None, 0, id="a term without conditions"),
        pytest.param((within("a"), CLAIM), None, 0b011, id="of a claim that is there"),
        pytest.param((made_late(), DRIVER, *space(a="9Gi", b="1Gi")), {"storage": "5Gi"}, 0b011, id="with space"),
        pytest.param((made_late(), DRIVER, *space(a="9Gi", b="1Gi"), CLAIM), None, 0b011, id="for the claim"),
        pytest.param((made_late(), *space(a="9Gi", b="1Gi")), {"storage": "5Gi"}, None, id="space nobody counts"),
        pytest.param((within("b"), DRIVER, *space(a="9Gi", b="1Gi")), {"storage": "5Gi"}, 0, id="space elsewhere"),
    ],
)
def test_where_volumes_are_made(values, requests, nodes):
    templates = ClaimTemplates(("data",), ("late",), (ResourceRequirements(requests=requests),))
    (pod,) = ordinals(index(*values), "shop", "web", templates, range(1)).pods
    assert (pod.nodes, pod.certain) == (nodes, True)


def test_pods_to_be_placed():
    made = index(PINNED, volume(nodeAffinity=IN_A), made_late())
    found = ordinals(made, "shop", "web", ClaimTemplates(("data",), ("late",)), range(3))
    assert found.to_place(3) == PodsToPlace({0b011: 1}, 2)
    assert found.to_place(1) == PodsToPlace({0b011: 1}, 0)
    assert found.are_certain(3)
    assert not found.are_certain(4)
    assert not found.are_likely(4)
    assert ordinals(made, "shop", "web", ClaimTemplates(("data",), ("late",)), range(257)) is None


@pytest.mark.parametrize(
    ("pods", "missing"),
    [
        pytest.param([running("web-0", "n1")], 2, id="runs"),
        pytest.param([terminating("web-0", "n1")], 3, id="terminates"),
        pytest.param([terminating("web-0", "n3")], 2, id="terminates for ever, on an unreachable node"),
        pytest.param([running("web-0", "n3")], 2, id="runs on an unreachable node"),
        pytest.param([terminating("web-0", "n1"), terminating("web-2", "n2")], 3, id="two terminate"),
        pytest.param([terminating("web-9", "n1")], 3, id="of another ordinal"),
    ],
)
def test_an_ordinal_that_terminates_is_to_be_placed_again(pods, missing):
    made = index(made_late(), *pods)
    made.apply("MODIFIED", replace(made.nodes.get("n3"), spec=NodeSpec(taints=UNREACHABLE)))
    found = ordinals(made, "shop", "web", ClaimTemplates(("data",), ("late",)), range(3))
    assert found.to_place(3) == PodsToPlace({}, missing)


def test_room_for_two_volumes_each():
    drivers = [{"name": "disks", "allocatable": {"count": 5}}, {"name": "files"}]
    nodes = [convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CsiNode) for name in ("n2", "gone")]
    found = ordinals(index(*nodes), "shop", "web", ClaimTemplates(("data", "log"), ("late", "late")), range(3))
    assert found.limits == {1: 2}


@pytest.mark.parametrize(
    ("values", "named", "limits"),
    [
        pytest.param([], "", {0: 3}, id="an unknown class may use any driver"),
        pytest.param([made_late(annotations=DEFAULT)], "", {0: 5}, id="the default class"),
        pytest.param([made_late()], "late", {0: 5}, id="a named class"),
        pytest.param([made_late(provisioner="local")], "late", {}, id="a driver without a limit"),
    ],
)
def test_limits_are_those_of_the_drivers_used(values, named, limits):
    drivers = [{"name": "disks", "allocatable": {"count": 5}}, {"name": "files", "allocatable": {"count": 3}}]
    node = convert({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, CsiNode)
    found = ordinals(index(node, *values), "shop", "web", ClaimTemplates(("data",), (named,)), range(9))
    assert found.limits == limits
