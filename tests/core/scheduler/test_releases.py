"""What the scheduler's filters said in older releases; conformance/vectors has what their own code answered."""

import pytest
from build import ROOMY, cluster, filled, namespace, pod, requiring, running, selector
from build import node as bare_node
from msgspec.structs import replace

from webhook.core.api.storage import (
    Claim,
    PersistentVolume,
    PersistentVolumeSpec,
    Phase,
    StorageClass,
    VolumeNodeAffinity,
)
from webhook.core.api.types import (
    Affinity,
    ClaimSource,
    ClaimSpec,
    Container,
    ContainerPort,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    PodAffinity,
    PodAffinityTerm,
    ResourceRequirements,
    Volume,
)
from webhook.core.api.version import parse_version
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.problem import take

IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def node(name, zone=None, **more):
    return replace(bare_node(name, zone), status=NodeStatus(allocatable=ROOMY), **more)


def index_of(release, *objects):
    return filled(ClusterIndex(parse_version(release)), objects)


def told(release, *objects, **spec):
    """The whole answer to a pod: the sentence, and of each node plugin, code and reasons."""
    verdict = decide(take(index_of(release, *objects), pod(**spec)))
    nodes = {name: verdict.status(name) for name in sorted(verdict.nodes.slots)}
    return verdict.sentence, {name: (each.plugin, each.code, each.reasons) for name, each in nodes.items()}


@pytest.mark.parametrize(
    ("release", "plugin"),
    [
        pytest.param("1.36", "NodeUnschedulable", id="1.36 reports the cordon"),
        pytest.param("1.37", "NodeName", id="1.37 reports the name"),
    ],
)
def test_the_name_of_a_node_was_asked_for_second(release, plugin):
    cordoned = node("b", spec=NodeSpec(unschedulable=True))
    assert told(release, node("a"), cordoned, node_name="a")[1]["b"][0] == plugin


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        pytest.param("1.34.0", "node(s) had untolerated taint {dedicated: }", id="1.34.0 names it"),
        pytest.param("1.34.2", "node(s) had untolerated taint(s)", id="1.34.2 does not name it"),
        pytest.param("1.33", "node(s) had untolerated taint {dedicated: }", id="1.33 names it"),
    ],
)
def test_the_taint_is_named_up_to_a_patch_level(release, reason):
    index = cluster("~a=0")
    index.version = parse_version(release)
    assert decide(take(index, pod())).status("a").reasons == (reason,)


@pytest.mark.parametrize(
    ("release", "free"),
    [
        pytest.param("1.32.13", True, id="free in the last 1.32"),
        pytest.param("1.33.5", True, id="free before 1.33.6"),
        pytest.param("1.33.6", False, id="taken since 1.33.6"),
        pytest.param("1.34.0", False, id="taken in the first 1.34"),
    ],
)
def test_ports_of_sidecars_were_free(release, free):
    ports = (ContainerPort(container_port=1, host_port=80),)
    sidecar = Container(name="s", ports=ports, restart_policy="Always")
    plain = (Container(name="c", ports=ports),)
    taken = running("x", "a", init_containers=(sidecar,))
    assert (told(release, node("a"), taken, containers=plain)[0] == "") is free
    holder = running("x", "a", containers=plain)
    assert (told(release, node("a"), holder, init_containers=(sidecar,))[0] == "") is free


@pytest.mark.parametrize(
    ("release", "code"),
    [
        pytest.param("1.33", "Unschedulable", id="1.33 expects preemption to help"),
        pytest.param("1.34", "UnschedulableAndUnresolvable", id="1.34 compares with the empty node"),
    ],
)
def test_preemption_was_thought_to_help_whatever_is_asked(release, code):
    index = cluster("a=0")
    index.version = parse_version(release)
    much = Container(name="c", resources=ResourceRequirements(requests={"cpu": "1k"}))
    assert decide(take(index, pod(containers=(much,)))).status("a").code == code


def on_node(name):
    condition = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    terms = (NodeSelectorTerm(match_fields=(condition,)),)
    return requiring(*terms)


@pytest.mark.parametrize(
    ("release", "text"),
    [
        pytest.param("1.31.14", "0/2 nodes are available: 1 node(s) were unschedulable.", id="1.31 leaves them out"),
        pytest.param(
            "1.32.0",
            "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.",
            id="1.32 counts them",
        ),
    ],
)
def test_nodes_that_nobody_looked_at_were_not_counted(release, text):
    cordoned = node("b", spec=NodeSpec(unschedulable=True))
    assert told(release, node("a"), cordoned, affinity=on_node("b"))[0] == text
    nowhere = text.partition(": ")[0] + ":" if release == "1.31.14" else text.split(", ")[0].replace("1 n", "2 n") + "."
    assert told(release, node("a"), node("c"), affinity=on_node("b"))[0] == nowhere


def claim(volume=None, *, modes=("ReadWriteOnce",), attributes=None, chooses=None):
    spec = ClaimSpec(
        access_modes=modes,
        volume_name=volume,
        storage_class_name="static",
        volume_attributes_class_name=attributes,
        selector=chooses,
        resources=ResourceRequirements(requests={"storage": "1Gi"}),
    )
    return Claim(metadata=ObjectMeta(name="data", namespace="shop", annotations=BOUND if volume else None), spec=spec)


def volume(name="pv", *hosts, zone=""):
    conditions = [NodeSelectorRequirement(key=HOSTNAME, operator="In", values=(host,)) for host in hosts]
    if zone:
        conditions.append(NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,)))
    term = NodeSelectorTerm(match_expressions=tuple(conditions))
    within = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,))) if conditions else None
    spec = PersistentVolumeSpec(
        capacity={"storage": "1Gi"},
        access_modes=("ReadWriteOnce",),
        storage_class_name="static",
        node_affinity=within,
    )
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=spec, status=Phase(phase="Bound"))


STATIC = StorageClass(
    metadata=ObjectMeta(name="static"),
    provisioner="kubernetes.io/no-provisioner",
    volume_binding_mode="WaitForFirstConsumer",
)
MOUNTS = (Volume(name="v", persistent_volume_claim=ClaimSource(claim_name="data")),)


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        pytest.param("1.32", "node(s) had volume node affinity conflict", id="1.32 reports a conflict"),
        pytest.param(
            "1.33", "node(s) didn't match PersistentVolume's node affinity", id="1.33 names the PersistentVolume"
        ),
    ],
)
def test_a_volume_elsewhere(release, reason):
    sentence, nodes = told(release, node("a", "z2"), STATIC, claim("pv"), volume(zone="z1"), volumes=MOUNTS)
    assert (nodes["a"][2], sentence) == ((reason,), f"0/1 nodes are available: 1 {reason}.")


@pytest.mark.parametrize(
    ("release", "hosts", "plugin"),
    [
        pytest.param("1.31.2", ("a",), "VolumeBinding", id="1.31.2 skips other nodes of a local volume"),
        pytest.param("1.31.3", ("a",), "NodeUnschedulable", id="1.31.3 runs every filter"),
        pytest.param("1.31.2", (), "NodeUnschedulable", id="1.31.2 skips no node without a local volume"),
    ],
)
def test_local_volumes_left_their_own_nodes_alone(release, hosts, plugin):
    cordoned = node("b", spec=NodeSpec(unschedulable=True))
    found = told(release, node("a"), cordoned, STATIC, claim("pv"), volume("pv", *hosts), volumes=MOUNTS)
    assert found[1]["b"][0] == plugin


def test_local_volumes_of_two_nodes():
    two = Claim(metadata=ObjectMeta(name="log", namespace="shop", annotations=BOUND), spec=claim("other").spec)
    mounts = (*MOUNTS, Volume(name="w", persistent_volume_claim=ClaimSource(claim_name="log")))
    objects = (node("a"), node("b"), STATIC, claim("pv"), volume("pv", "a"), two)
    nowhere = told("1.31.2", *objects, volume("other", "b"), volumes=mounts)
    assert nowhere[0] == "0/2 nodes are available: node(s) didn't satisfy plugin VolumeBinding."
    gone = told("1.31.2", *objects, volumes=mounts)
    assert gone[0] == '0/2 nodes are available: persistentvolume "other" not found.'


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        pytest.param(
            "1.33",
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            id="1.33 reports the node of the other pod",
        ),
        pytest.param("1.34", IN_USE, id="1.34 reports the claim"),
    ],
)
def test_a_claim_of_another_pod(release, reason):
    other = running("x", "a", volumes=MOUNTS)
    alone = claim("pv", modes=("ReadWriteOncePod",))
    assert told(release, node("a"), STATIC, alone, volume(), other, volumes=MOUNTS)[1]["a"][2] == (reason,)


def test_a_claim_with_an_attributes_class_was_an_error():
    nodes = told("1.33", node("a"), STATIC, claim(attributes="gold"), volumes=MOUNTS)[1]
    text = (
        "unsupported volumeAttributesClassName is set on claim shop/data when the feature-gate VolumeAttributesClass is"
        " disabled"
    )
    assert nodes["a"] == ("VolumeBinding", "Error", (f'running "VolumeBinding" filter plugin: {text}',))
    assert told("1.34", node("a"), STATIC, claim(attributes="gold"), volumes=MOUNTS)[1]["a"][1] != "Error"


def near(select, within):
    term = PodAffinityTerm(label_selector=selector(select), topology_key=ZONE, namespace_selector=within)
    return Affinity(pod_affinity=PodAffinity(required=(term,)))


@pytest.mark.parametrize(
    ("release", "operator", "fits"),
    [
        pytest.param("1.33", "NotIn", False, id="1.33 counts no namespace"),
        pytest.param("1.34", "NotIn", True, id="1.34 counts every namespace"),
        pytest.param("1.36.3", "NotIn", True, id="1.36.3 counts every namespace"),
        pytest.param("1.37", "NotIn", False, id="1.37 counts no namespace"),
        pytest.param("1.36", "Exists", True, id="a namespace that satisfies it"),
    ],
)
def test_a_namespace_selector_that_nothing_satisfies_was_for_every_namespace(release, operator, fits):
    values = ("red",) if operator == "NotIn" else None
    condition = LabelSelectorRequirement(key="team", operator=operator, values=values)
    within = LabelSelector(match_expressions=(condition,))
    index = cluster("z1: a=1")
    index.version = parse_version(release)
    index.apply("ADDED", namespace(labelled="team=red"))
    ran = Cycle(take(index, pod("app=api", affinity=near("app=web", within)))).verdict_of("InterPodAffinity")
    assert bool(ran.feasible) is fits


@pytest.mark.parametrize(
    ("release", "values", "operator", "shown"),
    [
        pytest.param(
            "1.33",
            None,
            "In",
            "[]string(nil): for 'in', 'notin' operators, values set can't be empty",
            id="no list in Go's form",
        ),
        pytest.param(
            "1.34", None, "In", "null: for 'in', 'notin' operators, values set can't be empty", id="no list in JSON"
        ),
        pytest.param(
            "1.33",
            ("a", "b"),
            "Exists",
            '[]string{"a", "b"}: values set must be empty for exists and does not exist',
            id="a list in Go's form",
        ),
        pytest.param(
            "1.34",
            ("a", "b"),
            "Exists",
            '["a","b"]: values set must be empty for exists and does not exist',
            id="a list in JSON",
        ),
    ],
)
def test_lists_in_a_selector_that_cannot_be_read(release, values, operator, shown):
    condition = LabelSelectorRequirement(key="x", operator=operator, values=values)
    term = PodAffinityTerm(label_selector=LabelSelector(match_expressions=(condition,)), topology_key=ZONE)
    found = told(release, node("a"), affinity=Affinity(pod_affinity=PodAffinity(required=(term,))))
    assert f"values: Invalid value: {shown}" in found[0]


def test_words_about_labels_in_a_selector_follow_the_release():
    condition = LabelSelectorRequirement(key="x", operator="In", values=("y" * 64,))
    chooses = LabelSelector(match_expressions=(condition,))
    for release, unit in (("1.34", "characters"), ("1.35", "bytes")):
        nodes = told(release, node("a"), STATIC, claim(chooses=chooses), volumes=MOUNTS)[1]
        assert f"must be no more than 63 {unit}" in nodes["a"][2][0]


@pytest.mark.parametrize(
    ("release", "text"),
    [
        pytest.param("1.34", 'could not find v1.PersistentVolumeClaim "/data"', id="1.34 names the Go type"),
        pytest.param("1.35", 'persistentvolumeclaims "/data" not found', id="1.35 names the resource"),
    ],
)
def test_a_claim_that_cannot_be_got(release, text):
    nowhere = Claim(metadata=ObjectMeta(name="data", annotations=BOUND), spec=claim("pv").spec)
    asked = pod(volumes=MOUNTS)
    asked = replace(asked, metadata=replace(asked.metadata, namespace=""))
    index = index_of(release, node("a"), STATIC, nowhere, volume())
    found = Cycle(take(index, asked)).verdict_of("VolumeBinding").pre_filter
    assert found.reasons == (f'error getting PVC "/data": {text}',)
