"""All filters together: order, first failure, PreFilter, the sentence; and the filters that look at one node."""

import pytest
from build import cluster, constraint, pod, requiring, running, service
from msgspec.structs import replace

from bench.verdict import codes
from webhook.core.api.storage import CsiNode, CsiNodeSpec
from webhook.core.api.types import (
    AzureDisk,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    ObjectMeta,
    PodSchedulingGroup,
    PodStatus,
    ResourceClaim,
    ResourceRequirements,
    SchedulingGate,
    Toleration,
    Volume,
)
from webhook.core.api.types import ClaimSource as Claimed
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.policy.lookup import profile_for
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.not_evaluated import NOT_EVALUATED, not_evaluated
from webhook.core.scheduler.plugins.status import OK, Status
from webhook.core.scheduler.plugins.volumes import DRIVER_RESOURCES
from webhook.core.scheduler.problem import FILTERS, take
from webhook.core.scheduler.profile import SchedulerProfile

WEB = "app=web"
EVERY = "0.0.0.0"  # noqa: S104 - a port of every address, which nobody here opens
TAINTED = "node(s) had untolerated taint(s)"


def container(requests=None, ports=None):
    resources = None if requests is None else ResourceRequirements(requests=requests)
    return Container(name="c", resources=resources, ports=ports)


def named(*names, operator="In"):
    conditions = tuple(
        NodeSelectorRequirement(key="metadata.name", operator=operator, values=(each,)) for each in names
    )
    return NodeSelectorTerm(match_fields=conditions)


def verdict_of(index, *constraints, **spec):
    return decide(take(index, pod(WEB, constraints=constraints or None, **spec)))


def statuses(verdict):
    return {name: verdict.status(name) for name in verdict.nodes.slots}


def unresolvable(plugin, *reasons):
    return Status("UnschedulableAndUnresolvable", plugin, reasons)


def unschedulable(plugin, *reasons):
    return Status("Unschedulable", plugin, reasons)


@pytest.mark.parametrize(
    ("spec", "of_a", "of_b"),
    [
        pytest.param({}, OK, unresolvable("TaintToleration", TAINTED), id="taints"),
        pytest.param({"tolerations": (Toleration(operator="Exists"),)}, OK, OK, id="tolerated"),
        pytest.param(
            {"node_selector": {ZONE: "z2"}},
            unresolvable("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
            unresolvable("TaintToleration", TAINTED),
            id="the first filter that fails names the reason",
        ),
        pytest.param(
            {"node_name": "b"},
            unresolvable("NodeName", "node(s) didn't satisfy plugin(s) [NodeName]"),
            unresolvable("TaintToleration", TAINTED),
            id="a named node leaves no other",
        ),
        pytest.param(
            {"affinity": requiring(named("b"))},
            unresolvable("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
            unresolvable("TaintToleration", TAINTED),
            id="affinity to a name leaves no other",
        ),
        pytest.param(
            {"affinity": requiring(named("a", operator="NotIn"))},
            unresolvable("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
            unresolvable("TaintToleration", TAINTED),
            id="any node but one",
        ),
        pytest.param(
            {"containers": (container({"cpu": "65", "memory": "1Ti"}),)},
            unresolvable("NodeResourcesFit", "Insufficient cpu", "Insufficient memory"),
            unresolvable("TaintToleration", TAINTED),
            id="more than a node has",
        ),
        pytest.param(
            {"containers": (container({"example.com/gpu": "1", "hugepages-2Mi": "4Mi"}),)},
            unresolvable("NodeResourcesFit", "Insufficient example.com/gpu", "Insufficient hugepages-2Mi"),
            unresolvable("TaintToleration", TAINTED),
            id="what a node does not have at all",
        ),
    ],
)
def test_what_each_node_says(spec, of_a, of_b):
    assert statuses(verdict_of(cluster("z1: a=0 | z2: ~b=0"), **spec)) == {"a": of_a, "b": of_b}


def test_what_others_use_is_not_free():
    index = cluster("z1: a=0 b=0", resources={"cpu": "2", "memory": "4Gi", "pods": "2"})
    index.apply("ADDED", running("x", "a", "app=x", containers=(container({"cpu": "1500m"}),)))
    wanted = (container({"cpu": "1"}),)
    short = unschedulable("NodeResourcesFit", "Insufficient cpu")
    assert statuses(verdict_of(index, containers=wanted)) == {"a": short, "b": OK}
    index.apply("ADDED", running("y", "a", "app=x"))
    full = unschedulable("NodeResourcesFit", "Too many pods", "Insufficient cpu")
    assert statuses(verdict_of(index, containers=wanted)) == {"a": full, "b": OK}
    index.apply("DELETED", running("x", "a", "app=x"))
    assert statuses(verdict_of(index, containers=wanted)) == {"a": OK, "b": OK}


def test_a_cordon_is_named_before_its_taint():
    index = cluster("z1: a=0")
    cordoned = replace(index.nodes.get("a"), spec=NodeSpec(unschedulable=True))
    index.apply("MODIFIED", cordoned)
    reason = unresolvable("NodeUnschedulable", "node(s) were unschedulable")
    assert statuses(verdict_of(index)) == {"a": reason}
    tolerant = (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),)
    assert statuses(verdict_of(index, tolerations=tolerant)) == {"a": OK}


@pytest.mark.parametrize(
    ("taken", "wanted", "conflict"),
    [
        pytest.param((EVERY, "TCP", 80), ("", "TCP", 80), True, id="the same port"),
        pytest.param((EVERY, "TCP", 80), ("", "TCP", 81), False, id="another port"),
        pytest.param(("10.0.0.1", "TCP", 80), ("", "TCP", 80), True, id="all addresses want a port of one"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="two addresses"),
        pytest.param(("", "TCP", 80), ("10.0.0.2", "", 80), True, id="TCP when nothing is said"),
        pytest.param(("", "UDP", 80), ("", "TCP", 80), False, id="two protocols"),
        pytest.param(("::", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="the IPv6 wildcard is no wildcard here"),
    ],
)
def test_host_ports(taken, wanted, conflict):
    def ports(of):
        return (container(ports=(ContainerPort(container_port=1, host_ip=of[0], protocol=of[1], host_port=of[2]),)),)

    index = cluster("z1: a=0")
    index.apply("ADDED", running("x", "a", containers=ports(taken)))
    found = verdict_of(index, containers=ports(wanted)).status("a")
    reason = unschedulable("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    assert found == (reason if conflict else OK)


def test_host_ports_of_a_sidecar_are_taken():
    ports = (ContainerPort(container_port=1, host_port=80),)
    sidecar = replace(container(ports=ports), restart_policy="Always")
    index = cluster("z1: a=0 b=0")
    index.apply("ADDED", running("x", "a", init_containers=(sidecar,)))
    index.apply("ADDED", running("y", "b", init_containers=(container(ports=ports),)))
    verdict = verdict_of(index, containers=(container(ports=ports),))
    assert [verdict.status(name).code for name in "ab"] == ["Unschedulable", "Success"]


def test_an_error_names_the_plugin_that_was_running():
    index = cluster("z1: a=0")
    index.apply("ADDED", CsiNode(metadata=ObjectMeta(name="a"), spec=CsiNodeSpec()))
    disk = Volume(name="v", azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    text = "converting volume(v) from inline to csi: kind(Shared) is not supported in csi migration"
    reasons = (f'running "NodeVolumeLimits" filter plugin: {text}',)
    assert verdict_of(index, volumes=(disk,)).status("a") == Status("Error", "NodeVolumeLimits", reasons)


def test_names_that_exclude_each_other():
    both = NodeSelectorTerm(match_fields=named("a").match_fields + named("b").match_fields)
    verdict = verdict_of(cluster("z1: a=0 b=0"), affinity=requiring(both))
    assert verdict.pre_filter == unresolvable("NodeAffinity", "pod affinity terms conflict")
    assert verdict.sentence == "0/2 nodes are available: pod affinity terms conflict."
    verdict = verdict_of(cluster("z1: a=0 b=0"), affinity=requiring(named("a")), node_name="b")
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously"
    assert verdict.pre_filter == unresolvable("", reason)


@pytest.mark.parametrize(
    ("spread", "sentence"),
    [
        pytest.param("", "no nodes available to schedule pods", id="no node"),
        pytest.param("z1: a=0", "", id="a node is feasible"),
        pytest.param("z1: ~a=0 ~b=0", f"0/2 nodes are available: 2 {TAINTED}.", id="one reason"),
        pytest.param(
            "z1: a=2 | z2: ~b=0 | c=0",
            "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
            "1 node(s) didn't match pod topology spread constraints (missing required label), "
            f"1 {TAINTED}.",
            id="reasons are sorted as text",
        ),
    ],
)
def test_the_sentence(spread, sentence):
    assert verdict_of(cluster(spread), constraint(select=WEB)).sentence == sentence


def test_codes_are_by_slot():
    index = cluster("z1: a=2 | z2: ~b=0 | z3: c=0")
    index.apply("DELETED", index.nodes.get("c"))
    index.apply("ADDED", replace(cluster("z4: d=0").nodes.get("d")))
    verdict = verdict_of(index, constraint(select=WEB))
    assert [verdict.nodes.names[slot] for slot in range(3)] == ["a", "b", "d"]
    assert codes(verdict) == bytes([1, 2, 0])
    index.apply("DELETED", index.nodes.get("d"))
    assert codes(verdict_of(index, constraint(select=WEB))) == bytes([1, 2, 4])
    assert codes(verdict) == bytes([1, 2, 0])  # a verdict stays what it was


def test_a_problem_does_not_change_with_the_index():
    index = cluster("z1: a=0 | z2: b=0")
    problem = take(index, pod(WEB, constraints=(constraint(select=WEB),)))
    index.apply("ADDED", running("x", "a"))
    index.apply("DELETED", index.nodes.get("b"))
    assert statuses(decide(problem)) == {"a": OK, "b": OK}


@pytest.mark.parametrize(
    ("priority", "feasible"),
    [pytest.param(0, "b", id="of no lower priority"), pytest.param(-1, "a b", id="of lower priority")],
)
def test_room_made_for_a_nominated_pod_is_left_to_it(priority, feasible):
    index = cluster("z1: a=0 b=0", resources={"cpu": "2", "pods": "9"})
    waiting = running("vip", None, "app=x", containers=(container({"cpu": "2"}),), priority=priority)
    index.apply("ADDED", replace(waiting, status=PodStatus(phase="Pending", nominated_node_name="a")))
    found = statuses(verdict_of(index, containers=(container({"cpu": "1"}),)))
    assert " ".join(name for name, status in found.items() if status == OK) == feasible
    index.apply("MODIFIED", replace(waiting, status=PodStatus(phase="Pending")))
    assert set(statuses(verdict_of(index, containers=(container({"cpu": "1"}),))).values()) == {OK}


def test_a_nominated_pod_counts_for_the_empty_selector():
    index = cluster("z1: a=0 | z2: b=0")
    index.apply("ADDED", replace(running("vip", None), status=PodStatus(phase="Pending", nominated_node_name="a")))
    verdict = verdict_of(index, constraint(HOSTNAME, select="{}"))
    assert [verdict.status(name).code for name in "ab"] == ["Unschedulable", "Success"]


def test_one_plugin_alone_knows_nothing_of_the_others():
    cycle = Cycle(take(cluster("z1: ~a=0"), pod(WEB)))
    assert {plugin for plugin in FILTERS if cycle.verdict_of(plugin).feasible == 0} == {"TaintToleration"}
    assert cycle.verdict_of("TaintToleration").status("a") == unresolvable("", TAINTED)
    with pytest.raises(KeyError):
        cycle.verdict_of("Coscheduling")


@pytest.mark.parametrize(
    ("version", "status"),
    [
        pytest.param(
            (1, 33), unresolvable("TaintToleration", "node(s) had untolerated taint {dedicated: }"), id="1.33"
        ),
        pytest.param((1, 34), unresolvable("TaintToleration", TAINTED), id="1.34"),
    ],
)
def test_the_reason_for_taints_was_shortened(version, status):
    index = cluster("z1: ~a=0")
    index.version = KubernetesVersion(*version)
    assert verdict_of(index).status("a") == status
    tolerant = (Toleration(key="dedicated", operator="Exists"),)
    assert verdict_of(index, tolerations=tolerant).status("a") == OK


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        pytest.param((1, 36), "node(s) didn't match the requested node name", id="1.36"),
        pytest.param((1, 37), "node(s) didn't satisfy plugin(s) [NodeName]", id="1.37"),
    ],
)
def test_a_named_node_is_asked_for_before_filters_since_1_37(version, reason):
    index = cluster("z1: a=0 b=0")
    index.version = KubernetesVersion(*version)
    assert verdict_of(index, node_name="a").status("b") == unresolvable("NodeName", reason)


@pytest.mark.parametrize(
    ("spec", "concerns"),
    [
        pytest.param({}, [], id="a plain pod"),
        pytest.param({"scheduling_gates": (SchedulingGate(name="g"),)}, ["SchedulingGates"], id="gated"),
        pytest.param({"scheduling_group": PodSchedulingGroup(pod_group_name="g")}, ["PodGroup"], id="a PodGroup"),
        pytest.param({"resource_claims": (ResourceClaim(name="r"),)}, ["DynamicResources"], id="devices"),
        pytest.param({"containers": (container({"example.com/gpu": "1"}),)}, ["DynamicResources"], id="extended"),
        pytest.param({"host_network": True, "host_users": False}, ["NodeDeclaredFeatures"], id="users of its own"),
        pytest.param(
            {"volumes": (Volume(name="v", persistent_volume_claim=Claimed(claim_name="c")),)},
            ["CSIStorageCapacity", "VolumeAttachment", "CSIDriver"],
            id="storage",
        ),
    ],
)
def test_what_is_not_evaluated(spec, concerns):
    index = cluster("z1: a=0")
    for resource in DRIVER_RESOURCES.values():
        index.mark_missing(resource, "403 Forbidden")
    assert list(not_evaluated(take(index, pod(WEB, **spec)))) == ["SchedulerConfiguration", *concerns]
    assert {*concerns} <= {*NOT_EVALUATED}


def under(profile, state="z1: a=1 | z2: ~b=0", *constraints, **spec):
    """What each node says to a pod of a scheduler with this profile: its reasons, "" where it takes the pod."""
    index = cluster(state)
    problem = take(index, pod(WEB, constraints=constraints or None, **spec), profile=profile)
    verdict = decide(problem)
    return {name: "; ".join(verdict.status(name).reasons) for name in verdict.nodes.slots}


ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
IN_Z1 = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=("z1",)),))
SKEWED = "node(s) didn't match pod topology spread constraints"
NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"


class TestSchedulerProfiles:
    @pytest.mark.parametrize(
        ("profile", "spec", "expected"),
        [
            pytest.param({}, {}, {"a": "", "b": TAINTED}, id="as it comes"),
            pytest.param({"disabled_filters": ("TaintToleration",)}, {}, {"a": "", "b": ""}, id="a filter is off"),
            pytest.param(
                {"added_affinity": NodeAffinity(required=NodeSelector(node_selector_terms=(IN_Z1,)))},
                {"tolerations": (Toleration(operator="Exists"),)},
                {"a": "", "b": ENFORCED},
                id="added affinity",
            ),
            pytest.param(
                {"added_affinity": NodeAffinity(required=NodeSelector(node_selector_terms=(IN_Z1,)))},
                {"tolerations": (Toleration(operator="Exists"),), "node_selector": {ZONE: "z2"}},
                {"a": NOT_SELECTED, "b": ENFORCED},
                id="added affinity is asked first",
            ),
            pytest.param({"added_affinity": NodeAffinity()}, {}, {"a": "", "b": TAINTED}, id="only preferred"),
            pytest.param(
                {"ignored_resources": ("example.com/gpu",)},
                {"containers": (container({"example.com/gpu": "1"}),)},
                {"a": "", "b": TAINTED},
                id="an ignored resource",
            ),
            pytest.param(
                {"ignored_resource_groups": ("example.com",), "ignored_resources": ("cpu",)},
                {"containers": (container({"example.com/gpu": "1", "cpu": "99"}),)},
                {"a": "Insufficient cpu", "b": TAINTED},
                id="an ignored group, and one of Kubernetes' own, which is never ignored",
            ),
            pytest.param(
                {"ignored_resources": ("example.com/gpu",)},
                {"containers": (container({"example.com/tpu": "1"}),)},
                {"a": "Insufficient example.com/tpu", "b": TAINTED},
                id="another resource",
            ),
        ],
    )
    def test_what_a_profile_changes(self, profile, spec, expected):
        assert under(SchedulerProfile(**profile), **spec) == expected

    def test_its_default_constraints(self):
        profile = SchedulerProfile(defaulting_type="List", default_constraints=(constraint(),))
        index = cluster("z1: a=1 | z2: ~b=0")
        index.apply("ADDED", service("web", WEB))
        verdict = decide(take(index, pod(WEB), profile=profile))
        assert verdict.status("a").reasons == (SKEWED,)
        assert decide(take(index, pod(WEB), profile=SchedulerProfile())).feasible

    def test_a_known_profile_leaves_less_open(self):
        index = cluster("z1: a=0")
        assert not_evaluated(take(index, pod())) == ("SchedulerConfiguration",)
        assert not_evaluated(take(index, pod(), profile=SchedulerProfile())) == ("SchedulerExtenders",)

    @pytest.mark.parametrize(
        ("name", "expected"), [(None, "default-scheduler"), ("", "default-scheduler"), ("batch", "batch"), ("x", None)]
    )
    def test_the_profile_of_a_scheduler(self, name, expected):
        policy = Policy(scheduler_profiles=(SchedulerProfile(), SchedulerProfile(name="batch")))
        found = profile_for(policy, name)
        assert (found and found.name) == expected
