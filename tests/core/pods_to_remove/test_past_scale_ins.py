"""Scale-ins as causes of a Deployment's skew, by the events of its cluster."""

import pytest
from build import NAMESPACE, cluster, constraint, owner, pod, running, terminating
from manifest import workload
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.well_known import HOSTNAME
from webhook.core.explain.explanation import balances_of
from webhook.core.pods_to_remove.past_scale_ins import Event, ScaleDown, scale_downs, scale_in_causes
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.problem import take
from webhook.core.workloads.reading import read_workload

WEB, RS = "app=web", "web-7d4"
ZONES, SOFT_ZONES = constraint(select=WEB), constraint(when="ScheduleAnyway", select=WEB)
HOSTS = constraint(HOSTNAME, select=WEB)
EVENLY = "b b b c c c"  # the nodes of the removed pods
LEFT = "left by scale-in from {} to {}"
NINE_TO_THREE = LEFT.format(9, 3)


def at(second):
    return f"2026-11-28T10:{second // 60:02}:{second % 60:02}Z"


def event(reason, of, message="", second=0, **more):
    kind, name = of.split("/")
    told = {"reason": reason, "message": message, "involvedObject": {"kind": kind, "name": name}, **more}
    return convert({"lastTimestamp": at(second)} | told, Event)


def scaled(
    before, after, second=10, *, replica_set=RS, deployment="web", text="Scaled down replica set {} from {} to {}"
):
    return event("ScalingReplicaSet", f"Deployment/{deployment}", text.format(replica_set, before, after), second)


def placed(name, node, second=0):
    """kube-scheduler's event has only an eventTime."""
    message = f"Successfully assigned {NAMESPACE}/{name} to {node}"
    return event("Scheduled", f"Pod/{name}", message, lastTimestamp=None, eventTime=at(second))


def deleted(name, second=10, *, replica_set=RS):
    return event("SuccessfulDelete", f"ReplicaSet/{replica_set}", f"Deleted pod: {name}", second)


def stopped(name, node, second=11, message="Stopping container c"):
    return event("Killing", f"Pod/{name}", message, second, source={"host": node})


def names(nodes, start=0):
    return [(f"{RS}-{start + number}", node) for number, node in enumerate(nodes.split())]


def by_kubelet(nodes=EVENLY, second=11, start=0):
    return [stopped(name, node, second) for name, node in names(nodes, start)]


def by_controllers(nodes=EVENLY, second=10, start=0):
    """The pods were placed within the hour."""
    return [each for name, node in names(nodes, start) for each in (placed(name, node), deleted(name, second))]


def causes(state, events, *constraints, more=(), replica_set=WEB):
    index = cluster(state)
    found = () if replica_set is None else (owner(f"ReplicaSet/{RS}", replica_set, above="Deployment/web"),)
    for each in (*found, *more):
        index.apply("ADDED", each)
    deployment = read_workload(workload("Deployment", WEB, meta={"name": "web", "namespace": NAMESPACE}))
    incoming = pod(WEB, constraints=constraints or (ZONES,))
    domains = [each.domains for each in balances_of(Cycle(take(index, incoming)), soft_defaults=True)]
    found = scale_in_causes(domains, deployment, NAMESPACE, events, index)
    return [each and each.text for each in found]


UNEVEN = "a: a=3 | b: b=0 | c: c=0"


@pytest.mark.parametrize(
    ("state", "events", "expected"),
    [
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet()], NINE_TO_THREE, id="nodes by the kubelets"),
        pytest.param(UNEVEN, [scaled(9, 3), *by_controllers()], NINE_TO_THREE, id="nodes by the scheduler"),
        pytest.param(
            UNEVEN,
            [scaled(9, 3, text="Scaled down replica set {0} to {2} from {1}"), *by_kubelet()],
            NINE_TO_THREE,
            id="Kubernetes 1.31",
        ),
        pytest.param(
            UNEVEN,
            [
                scaled(9, 3, text="(combined from similar events): Scaled down replica set {} from {} to {}"),
                *by_kubelet(),
            ],
            NINE_TO_THREE,
            id="an aggregated event",
        ),
        pytest.param(
            UNEVEN,
            [scaled(9, 6), *by_kubelet("b c c"), scaled(6, 3, 20), *by_kubelet("b b c", 21, 3)],
            NINE_TO_THREE,
            id="in two steps",
        ),
        pytest.param(
            "a: a=2 | b: b=0 | c: c=0",
            [scaled(9, 6), *by_kubelet("a b c"), scaled(6, 2, 20), *by_kubelet("b b c c", 21, 3)],
            LEFT.format(6, 2),
            id="the last step alone",
        ),
        pytest.param(
            UNEVEN,
            [
                scaled(9, 3),
                *by_kubelet(),
                stopped(f"{RS}-9", "b", message="Container c failed liveness probe, will be restarted"),
            ],
            NINE_TO_THREE,
            id="a container restarts",
        ),
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet(), stopped("api-1-x", "b")], NINE_TO_THREE, id="another's pod"),
        pytest.param(
            "a: a=3 | b: b=0 | c: c=0 ~d=0", [scaled(9, 3), *by_kubelet()], NINE_TO_THREE, id="a tainted node"
        ),
        # The twins: the skew has another cause, or the events do not prove it.
        pytest.param("a: a=1 | b: b=1 | c: c=1", [scaled(9, 3), *by_kubelet("a a b b c c")], None, id="even"),
        pytest.param(
            "a: a=2 | b: b=1 | c: c=0", [scaled(9, 3), *by_kubelet("a a a b b b")], None, id="uneven before: no zone c"
        ),
        pytest.param(UNEVEN, [], None, id="no events"),
        pytest.param(UNEVEN, by_kubelet(), None, id="no scale-down"),
        pytest.param(
            UNEVEN, [scaled(3, 9, text="Scaled up replica set {} from {} to {}"), *by_kubelet()], None, id="up"
        ),
        pytest.param(UNEVEN, [scaled(9, 3, deployment="api"), *by_kubelet()], None, id="of another Deployment"),
        pytest.param(UNEVEN, [scaled(9, 3, replica_set="web-1"), *by_kubelet()], None, id="of an old ReplicaSet"),
        pytest.param(UNEVEN, [scaled(9, 4), *by_kubelet("b b c c c")], None, id="another number of pods"),
        pytest.param(UNEVEN, [scaled(9, 3)], None, id="no removed pod is known"),
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet("b b c c c")], None, id="an event is missing"),
        pytest.param(UNEVEN, [scaled(9, 3), *map(deleted, "abcdef")], None, id="pods on unknown nodes"),
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet("b b b c c gone")], None, id="a deleted node"),
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet(second=9)], None, id="removed before"),
        pytest.param(
            UNEVEN, [scaled(9, 3), *by_kubelet("b b b c c c b")], None, id="a pod more, such as an evicted one"
        ),
        pytest.param(UNEVEN, [scaled(9, 3), *by_kubelet(), placed(f"{RS}-x", "a", 12)], None, id="placed since"),
    ],
)
def test_the_cause_of_a_skew(state, events, expected):
    assert causes(state, events) == [expected]


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param([SOFT_ZONES, HOSTS], [NINE_TO_THREE, NINE_TO_THREE], id="soft and hard"),
        pytest.param([constraint(select=WEB, max_skew=3)], [None], id="within maxSkew"),
        pytest.param(
            [constraint(select=WEB, min_domains=4), ZONES], [None, NINE_TO_THREE], id="minDomains: 9 were too many"
        ),
        pytest.param([constraint(select="app=api")], [None], id="it does not count the pods"),
        pytest.param([constraint("rack", select=WEB)], [None], id="no node has the key"),
    ],
)
def test_each_constraint_has_its_cause(constraints, expected):
    assert causes(UNEVEN, [scaled(9, 3), *by_kubelet()], *constraints) == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [pytest.param("b b b c c d", NINE_TO_THREE, id="5 counted"), pytest.param("b b c d d d", None, id="3 counted")],
)
def test_a_removed_pod_counts_only_on_a_counted_node(nodes, expected):
    honored, state = constraint(select=WEB, node_taints_policy="Honor"), "a: a=3 | b: b=0 | c: c=0 ~d=0"
    assert causes(state, [scaled(9, 3), *by_kubelet(nodes)], honored) == [expected]


WAITING = replace(running("x", "", "app=web revision=2"), status=None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, NINE_TO_THREE, id="one ReplicaSet"),
        pytest.param({"replica_set": None}, None, id="an unknown ReplicaSet"),
        pytest.param({"replica_set": ""}, None, id="a ReplicaSet without a selector"),
        pytest.param({"replica_set": "app=web revision=1"}, None, id="pods of another ReplicaSet"),
        pytest.param({"more": [terminating("x", "b")]}, NINE_TO_THREE, id="a removed pod terminates"),
        pytest.param(
            {"more": [replace(WAITING, metadata=running("x", "").metadata)]}, NINE_TO_THREE, id="a Pending pod"
        ),
        pytest.param(
            {"more": [WAITING], "replica_set": "app=web !revision"}, None, id="a rollout whose new pods are Pending"
        ),
    ],
)
def test_pods_of_several_revisions_are_a_rollout(changes, expected):
    assert causes(UNEVEN, [scaled(9, 3), *by_kubelet()], **changes) == [expected]


def test_a_series_has_no_gap():
    events = [scaled(12, 9, 1), scaled(9, 6, 2), scaled(5, 3, 3), scaled(6, 5, 2, replica_set="web-1")]
    assert [(down.before, down.after) for down in scale_downs(events, "web")] == [(5, 3)]
    assert scale_downs([scaled(9, 3)], "web") == [ScaleDown(1795860010 * 10**9, RS, 9, 3)]
