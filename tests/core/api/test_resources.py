"""What pods request and nodes have, and what the API server fills in before."""

import pytest
from build import constraint, pod
from msgspec.structs import replace

from webhook.core.api.pod_requests import existing_request, incoming_request
from webhook.core.api.resources import is_scalar
from webhook.core.api.types import (
    Affinity,
    AzureDisk,
    Container,
    ContainerPort,
    ContainerStatus,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodStatus,
    ResourceRequirements,
    Volume,
)
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index import node_sets


def container(name="c", restart=None, limits=None, **requests):
    wanted = {key.replace("_", "-"): value for key, value in requests.items()}
    return Container(name=name, restart_policy=restart, resources=ResourceRequirements(requests=wanted, limits=limits))


def amounts(request):
    return dict(request.amounts)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"containers": (container(cpu="100m"), container(cpu="0.2"))}, {"cpu": 300}, id="containers add up"
        ),
        pytest.param(
            {"containers": (container(cpu="1"),), "init_containers": (container(cpu="3"), container(cpu="2"))},
            {"cpu": 3000},
            id="init containers run one by one",
        ),
        pytest.param(
            {
                "containers": (container(cpu="1"),),
                "init_containers": (container(restart="Always", cpu="1"), container(cpu="3")),
            },
            {"cpu": 4000},
            id="a sidecar runs beside later ones",
        ),
        pytest.param(
            {
                "containers": (container(cpu="1"),),
                "init_containers": (container(cpu="1"), container(restart="Always", cpu="1")),
            },
            {"cpu": 2000},
            id="and beside the containers",
        ),
        pytest.param({"containers": (container(cpu="1"),), "overhead": {"cpu": "250m"}}, {"cpu": 1250}, id="overhead"),
        pytest.param(
            {
                "containers": (container(cpu="1", memory="1Gi"),),
                "resources": ResourceRequirements(requests={"cpu": "3"}),
            },
            {"cpu": 3000, "memory": 2**30},
            id="a pod-level request replaces",
        ),
        pytest.param(
            {"containers": (container(cpu="1"),), "resources": ResourceRequirements(requests={"example.com/gpu": "3"})},
            {"cpu": 1000},
            id="but not that of a resource it may not name",
        ),
        pytest.param({"containers": (container(cpu="1n"), container(cpu="1n"))}, {"cpu": 1}, id="rounded up once"),
        pytest.param({"containers": (container(memory="1500m"),)}, {"memory": 2}, id="whole bytes"),
        pytest.param({"containers": (container(cpu="broken"),)}, {}, id="no quantity"),
        pytest.param({"containers": (container(cpu="2E"),)}, {}, id="beyond 64 bits as upstream overflows"),
        pytest.param({"containers": (container(cpu="1e999999999"),)}, {}, id="more than any computer has"),
        pytest.param({"containers": (container(memory="25e19"),)}, {}, id="zeros at the end, beyond 64 bits"),
        pytest.param({"containers": (container(unknown="1"),)}, {}, id="a resource that nobody compares"),
    ],
)
def test_what_an_incoming_pod_requests(spec, expected):
    assert amounts(incoming_request(pod(**spec), RECORDED)) == expected


def test_pod_level_requests_count_since_1_34():
    asked = pod(containers=(container(cpu="1"),), resources=ResourceRequirements(requests={"cpu": "3"}))
    assert amounts(incoming_request(asked, KubernetesVersion(1, 33))) == {"cpu": 1000}


def reported(allocated=None, actual=None):
    resources = None if actual is None else ResourceRequirements(requests=actual)
    return (ContainerStatus(name="c", allocated_resources=allocated, resources=resources),)


INFEASIBLE = (PodCondition(type="Ready"), PodCondition(type="PodResizePending", reason="Infeasible"))
DEFERRED = (PodCondition(type="PodResizePending", reason="Deferred"),)


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 1000, id="nothing said"),
        pytest.param({"container_statuses": reported({"cpu": "2"})}, 2000, id="more is allocated"),
        pytest.param({"container_statuses": reported({"cpu": "500m"}, {"cpu": "3"})}, 3000, id="more is in use"),
        pytest.param({"container_statuses": reported({"cpu": "500m"})}, 1000, id="less is allocated"),
        pytest.param({"container_statuses": reported({"cpu": "500m"}), "conditions": INFEASIBLE}, 500, id="infeasible"),
        pytest.param({"container_statuses": reported({"cpu": "500m"}), "conditions": DEFERRED}, 1000, id="deferred"),
        pytest.param(
            {"container_statuses": reported(), "init_container_statuses": reported()},
            1000,
            id="statuses that say nothing",
        ),
        pytest.param({"conditions": INFEASIBLE}, 0, id="infeasible and nothing allocated"),
        pytest.param(
            {"init_container_statuses": reported({"cpu": "2"})}, 2000, id="a status among the init containers"
        ),
        pytest.param(
            {"allocated_resources": {"cpu": "4"}, "resources": ResourceRequirements(requests={"cpu": "2"})},
            4000,
            id="the status of the pod",
        ),
    ],
)
def test_what_a_pod_holds_while_it_is_resized(status, cpu):
    held = replace(pod(containers=(container(cpu="1"),)), status=PodStatus(phase="Running", **status))
    assert amounts(existing_request(held, RECORDED)).get("cpu", 0) == cpu
    assert amounts(existing_request(held, KubernetesVersion(1, 32)))["cpu"] == 1000


def grown(name, spec, allocated, actual):
    resources = None if actual is None else ResourceRequirements(requests=actual)
    return container(name=name, **spec), ContainerStatus(name=name, allocated_resources=allocated, resources=resources)


@pytest.mark.parametrize(
    ("version", "cpu"),
    [
        pytest.param((1, 36), 6000, id="container by container"),
        pytest.param((1, 37), 5000, id="the sums"),
        pytest.param((1, 32), 3000, id="the spec"),
    ],
)
def test_the_largest_of_each_container_or_of_the_pod(version, cpu):
    one, of_one = grown("one", {"cpu": "1"}, {"cpu": "4"}, {"cpu": "1"})
    two, of_two = grown("two", {"cpu": "2"}, {"cpu": "1"}, {"cpu": "2"})
    status = PodStatus(phase="Running", container_statuses=(of_one, of_two))
    held = replace(pod(containers=(one, two)), status=status)
    assert amounts(existing_request(held, KubernetesVersion(*version)))["cpu"] == cpu


@pytest.mark.parametrize(("conditions", "cpu"), [(None, 1000), (INFEASIBLE, 1000)])
def test_allocated_resources_counted_beside_actual_ones_alone(conditions, cpu):
    alone = replace(pod(containers=(container(cpu="1"),)), status=PodStatus(container_statuses=reported({"cpu": "2"})))
    alone = replace(alone, status=replace(alone.status, conditions=conditions))
    assert amounts(existing_request(alone, KubernetesVersion(1, 36)))["cpu"] == cpu


def test_init_containers_were_not_resized():
    starts, status = grown("c", {"cpu": "1"}, {"cpu": "4"}, {"cpu": "4"})
    held = replace(pod(init_containers=(starts,)), status=PodStatus(init_container_statuses=(status,)))
    assert amounts(existing_request(held, KubernetesVersion(1, 36)))["cpu"] == 1000


def test_pod_level_resources_that_nobody_reports_were_none():
    level = {"resources": ResourceRequirements(requests={"memory": "4"})}
    status = PodStatus(**level, conditions=INFEASIBLE)
    asked = pod(containers=(container(cpu="1"),), resources=ResourceRequirements(requests={"cpu": "3"}))
    held = amounts(existing_request(replace(asked, status=status), KubernetesVersion(1, 36)))
    assert held == {}
    assert amounts(existing_request(replace(asked, status=status), KubernetesVersion(1, 37))) == {"memory": 4}


def test_a_pod_without_status_holds_what_it_requests():
    assert amounts(existing_request(pod(containers=(container(cpu="1"),)), RECORDED)) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 3000, id="nothing said"),
        pytest.param({"resources": ResourceRequirements(requests={"cpu": "5"})}, 5000, id="more is in use"),
        pytest.param(
            {"resources": ResourceRequirements(requests={"cpu": "2"}), "conditions": INFEASIBLE}, 2000, id="infeasible"
        ),
    ],
)
def test_what_a_pod_with_pod_level_requests_holds(status, cpu):
    asked = pod(containers=(container(cpu="1"),), resources=ResourceRequirements(requests={"cpu": "3"}))
    held = replace(asked, status=PodStatus(phase="Running", **status))
    assert amounts(existing_request(held, RECORDED)) == {"cpu": cpu}


@pytest.mark.parametrize(("version", "cpu"), [((1, 35), 3000), ((1, 36), 5000)])
def test_what_a_pod_as_a_whole_holds_counts_since_1_36(version, cpu):
    asked = pod(containers=(container(cpu="1"),), resources=ResourceRequirements(requests={"cpu": "3"}))
    status = PodStatus(phase="Running", resources=ResourceRequirements(requests={"cpu": "5"}))
    held = existing_request(replace(asked, status=status), KubernetesVersion(*version))
    assert amounts(held) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-x", True),
        ("kubernetes.io/x", True),
        ("gpu", False),
        ("requests.example.com/x", False),
        ("Example.com/x", False),
    ],
)
def test_resources_that_are_compared(name, compared):
    assert is_scalar(name) is compared


def test_a_created_pod_has_what_the_api_server_fills_in():
    port = ContainerPort(container_port=80)
    asked = pod(
        containers=(
            replace(container(limits={"cpu": "1", "memory": "1n"}, cpu="500m"), ports=(port,)),
            Container(name="d"),
        ),
        host_network=True,
        volumes=(Volume(name="v", azure_disk=AzureDisk(disk_uri="u")), Volume(name="w")),
    )
    made = as_created(replace(asked, metadata=replace(asked.metadata, namespace="")), RECORDED)
    first = made.spec.containers[0]
    assert made.meta.namespace == "default"
    assert first.resources.requests == {"cpu": "500m", "memory": "1m"}
    assert first.ports[0].host_port == 80
    assert made.spec.volumes[0].azure_disk.kind == "Shared"
    assert as_created(made, RECORDED) == made


@pytest.mark.parametrize(
    ("pod_level", "version", "expected"),
    [
        pytest.param(ResourceRequirements(limits={"cpu": "2"}), (1, 37), {"cpu": 1000}, id="containers say it"),
        pytest.param(
            ResourceRequirements(limits={"memory": "1Gi"}), (1, 37), {"cpu": 1000, "memory": 2**30}, id="the limit"
        ),
        pytest.param(
            ResourceRequirements(requests={"memory": "1Gi"}), (1, 37), {"cpu": 1000, "memory": 2**30}, id="1.37"
        ),
        pytest.param(ResourceRequirements(requests={"cpu": "3"}), (1, 36), {"cpu": 3000}, id="1.36"),
        pytest.param(ResourceRequirements(limits={"memory": "1Gi"}), (1, 33), {"cpu": 1000}, id="1.33"),
        pytest.param(ResourceRequirements(), (1, 37), {"cpu": 1000}, id="empty"),
    ],
)
def test_pod_level_requests_are_filled_in(pod_level, version, expected):
    version = KubernetesVersion(*version)
    made = as_created(pod(containers=(container(cpu="1"),), resources=pod_level), version)
    assert amounts(incoming_request(made, version)) == expected


def test_huge_pages_of_containers_become_a_limit_of_the_pod():
    paged = container(limits={"hugepages-2Mi": "4Mi"}, hugepages_2Mi="4Mi")
    asked = pod(containers=(paged,), resources=ResourceRequirements(requests={"cpu": "1"}))
    for version in (KubernetesVersion(1, 34), RECORDED):
        made = as_created(asked, version)
        assert amounts(incoming_request(made, version)) == {"cpu": 1000, "hugepages-2Mi": 2**22}
    made = as_created(pod(containers=(paged,), resources=ResourceRequirements(limits={"cpu": "1"})), RECORDED)
    assert amounts(incoming_request(made, RECORDED)) == {"cpu": 1000, "hugepages-2Mi": 2**22}


def test_other_limits_stay_where_they_are():
    limited = container(limits={"cpu": "2"}, cpu="1")
    asked = ResourceRequirements(limits={"cpu": "2", "example.com/gpu": "1"})
    made = as_created(pod(containers=(limited,), resources=asked), RECORDED)
    assert made.spec.resources.limits == {"cpu": "2", "example.com/gpu": "1"}
    assert amounts(incoming_request(made, RECORDED)) == {"cpu": 1000}


def test_keys_are_merged_into_selectors():
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "web"}),
        match_label_keys=("rev", "absent"),
        mismatch_label_keys=("tier",),
    )
    null = PodAffinityTerm(match_label_keys=("rev",))
    plain = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "web"}))
    asked = pod(
        "app=web rev=1 tier=x",
        constraints=(constraint(select="app=web", keys=("rev",)),),
        affinity=Affinity(pod_affinity=PodAffinity(required=(term, null, plain))),
    )
    merged = (
        LabelSelectorRequirement(key="rev", operator="In", values=("1",)),
        LabelSelectorRequirement(key="tier", operator="NotIn", values=("x",)),
    )
    made = as_created(asked, RECORDED)
    assert made.spec.affinity.pod_affinity.required[0].label_selector.match_expressions == merged
    assert made.spec.affinity.pod_affinity.required[1:] == (null, plain)
    assert made.spec.constraints[0].selector.match_expressions == merged[:1]
    before = as_created(asked, KubernetesVersion(1, 33))
    assert before.spec.affinity == made.spec.affinity
    assert before.spec.constraints == asked.spec.constraints


@pytest.mark.parametrize(
    "slots",
    [(), (0,), (3, 64), tuple(range(40)), tuple(range(0, 300, 7))],
    ids=["none", "the first", "two words", "a run", "every seventh"],
)
def test_sets_of_slots(slots):
    nodes = node_sets.from_slots(iter(slots), 300)
    assert nodes == sum(1 << slot for slot in slots)
    assert node_sets.to_slots(nodes) == list(slots)
    assert node_sets.from_flags(node_sets.flags(nodes, 300)) == nodes
    assert node_sets.flags(0, 0) == b""
    assert node_sets.from_flags(b"") == 0
