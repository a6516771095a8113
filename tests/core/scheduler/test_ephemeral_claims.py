"""The claims that the ephemeral volumes of a new pod will have."""

import pytest
from build import cluster, filled, pod
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.storage import Claim, PersistentVolume, StorageClass
from webhook.core.api.types import Pod, Volume
from webhook.core.api.version import RECORDED
from webhook.core.index.pod_extras import extras_of
from webhook.core.placement.proofs.pinned_claims import TemplateVolumes, template_volumes
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.not_evaluated import not_evaluated
from webhook.core.scheduler.problem import take

LATE = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
BETA = {"volume.beta.kubernetes.io/storage-class": "late"}
FREE = convert({"metadata": {"name": "pv"}, "spec": {"storageClassName": "late"}}, PersistentVolume)
IN_B = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]


def storage_class(name="late", **fields):
    return convert({"metadata": {"name": name}, **LATE, **fields}, StorageClass)


def default(name, created, **fields):
    meta = {"name": name, "annotations": DEFAULT, "creationTimestamp": created}
    return storage_class(metadata=meta, **fields)


def claim(owner=None, uid="u1"):
    """The claim of the pod's volume, with a pod as its owner."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid, "controller": True}] if owner else None
    meta = {"name": "web-0-scratch", "namespace": "shop", "ownerReferences": owners}
    return convert({"metadata": meta, "spec": {"storageClassName": "late"}}, Claim)


def made(uid="", spec=None, annotations=None):
    """A pod with an ephemeral volume."""
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"storageClassName": "late"} if spec is None else spec,
    }
    volume = convert({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, Volume)
    plain = pod("app=web", volumes=(volume,))
    return replace(plain, metadata=replace(plain.meta, name="web-0", namespace="shop", uid=uid))


def problem(made, *objects):
    return take(with_ephemeral_claims(filled(cluster("a: a0 | b: b0"), objects), made), made)


def fits(made, *objects):
    """The nodes that admit the pod."""
    verdict = decide(problem(made, *objects))
    return {*verdict.nodes.names_of(verdict.feasible)}


@pytest.mark.parametrize(
    ("made", "objects", "nodes"),
    [
        pytest.param(made(), [storage_class()], {"a0", "b0"}, id="a volume on any node"),
        pytest.param(made(), [storage_class(allowedTopologies=IN_B)], {"b0"}, id="a volume in zone b"),
        pytest.param(made(uid="u1"), [storage_class()], set(), id="a pod that exists, without its claim"),
        pytest.param(made(uid="u1"), [storage_class(), claim("web-0")], {"a0", "b0"}, id="and with its claim"),
        pytest.param(made(), [storage_class(), claim()], set(), id="a claim of nobody"),
        pytest.param(made(), [storage_class(), claim("api-0")], set(), id="a claim of another pod"),
        pytest.param(made(), [storage_class(), claim("web-0")], {"a0", "b0"}, id="a claim of an earlier web-0"),
        pytest.param(
            made(spec={}),
            [storage_class(allowedTopologies=IN_B, metadata={"name": "late", "annotations": DEFAULT})],
            {"b0"},
            id="the default class",
        ),
        pytest.param(
            made(spec={}),
            [default("one", "2026-01-01T00:00:00Z"), default("two", "2026-01-02T00:00:00Z", allowedTopologies=IN_B)],
            {"b0"},
            id="the newest default class",
        ),
        pytest.param(
            made(spec={}),
            [default("one", "2026-01-02T00:00:00Z"), default("two", "2026-01-01T00:00:00Z", allowedTopologies=IN_B)],
            {"a0", "b0"},
            id="not an older default class",
        ),
        pytest.param(
            made(spec={}, annotations=BETA),
            [storage_class(allowedTopologies=IN_B)],
            {"b0"},
            id="the class of the beta annotation",
        ),
    ],
)
def test_where_a_pod_with_an_ephemeral_volume_fits(made, objects, nodes):
    assert fits(made, *objects) == nodes


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([storage_class()], TemplateVolumes(("disks",), certain=True), id="waits for its pod"),
        pytest.param(
            [storage_class(provisioner="kubernetes.io/aws-ebs")],
            TemplateVolumes(("ebs.csi.aws.com",), certain=True),
            id="an in-tree provisioner",
        ),
        pytest.param(
            [storage_class(volumeBindingMode="Immediate")],
            TemplateVolumes((), certain=False),
            id="does not wait",
        ),
        pytest.param(
            [storage_class(), FREE],
            TemplateVolumes(("disks",), certain=True),
            id="or a free volume anywhere",
        ),
        pytest.param([], TemplateVolumes((), certain=False), id="a class that is gone"),
    ],
)
def test_volumes_of_new_pods(objects, expected):
    assert template_volumes(problem(made(), *objects), filled(cluster("a: a0 | b: b0"), objects)) == expected


def test_each_pod_has_its_own_claim_for_one_pod():
    own = made(spec={"storageClassName": "late", "accessModes": ["ReadWriteOncePod"]})
    expected = TemplateVolumes(("disks",), certain=True)
    assert template_volumes(problem(own, storage_class()), filled(cluster("a: a0"), [storage_class()])) == expected


def test_a_template_may_name_its_volume():
    named = problem(made(spec={"storageClassName": "late", "volumeName": "pv"}), storage_class())
    assert decide(named).feasible
    assert "EphemeralVolumes" in not_evaluated(named)


@pytest.mark.parametrize("objects", [[storage_class(volumeBindingMode="Immediate")], []])
def test_an_unknown_volume_restricts_no_node(objects):
    assert fits(made(), *objects) == {"a0", "b0"}
    assert not_evaluated(problem(made(), *objects)) == ("SchedulerConfiguration", "EphemeralVolumes")
    assert not_evaluated(problem(made(), storage_class())) == ("SchedulerConfiguration",)


def test_a_stored_pod_keeps_no_template():
    stored = made(uid="u1")
    (volume,) = extras_of(stored.meta, stored.pod_spec, RECORDED).mounted.volumes
    assert (volume.name, volume.ephemeral.volume_claim_template) == ("scratch", None)


def test_a_pod_without_volumes_adds_nothing():
    index = cluster("a: a0")
    assert with_ephemeral_claims(index, Pod()) is index
