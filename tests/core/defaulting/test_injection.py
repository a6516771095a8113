import msgspec
import pytest
from build import (
    autoscaler,
    constraint,
    default,
    defaulted,
    index,
    namespace,
    node,
    owner,
    pod,
    policy,
    selector,
    service,
)

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import NodeSpec, Taint, Toleration
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.defaulting.injection import Injection, Skip
from webhook.core.index.owners import Awaited
from webhook.core.policy.defaults import Defaults, DefaultsOverride
from webhook.core.policy.policy import Policy

HASH = "pod-template-hash"
ROLLOUT_HASH = "rollouts-pod-template-hash"
SET = "ReplicaSet/web-7d4"
WEB = f"app=web {HASH}=7d4"
SOFT = "ScheduleAnyway"
DEPLOYMENT = (owner(SET, WEB, replicas=1, above="Deployment/web"), owner("Deployment/web", "app=web", replicas=3))
KARPENTER = node("n1", "a", karpenter__sh__nodepool="x")


def short(injection):
    """One line a constraint: ``zone hard 1 app=web + pod-template-hash``."""
    return [
        " ".join(
            [
                one.topology_key.rpartition("/")[2],
                f"{'hard' if one.hard else 'soft'} {one.max_skew}",
                *(f"{key}={value}" for key, value in (one.selector.match_labels or {}).items()),
                *(f"{part.key}:{part.operator}" for part in one.selector.match_expressions or ()),
                *([f"min {one.min_domains}"] if one.min_domains else []),
                *(["+", *one.match_label_keys] if one.match_label_keys else []),
            ]
        )
        for one in injection.constraints
    ]


@pytest.mark.parametrize(
    ("incoming", "cluster", "configured", "given"),
    [
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            policy(),
            ["zone hard 1 app=web + pod-template-hash"],
            id="a Deployment's pod",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            [*DEPLOYMENT, service("web", "app=web"), service("all", "{}")],
            policy(default(), default(HOSTNAME, when=SOFT, max_skew=2)),
            ["zone hard 1 app=web + pod-template-hash", "hostname soft 2 app=web + pod-template-hash"],
            id="every default, services merged",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            policy(match_label_keys="off"),
            ["zone hard 1 app=web pod-template-hash=7d4"],
            id="matchLabelKeys off: the hash stays in the selector",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            policy(default(keys=("app",)), match_label_keys="off"),
            ["zone hard 1 app=web pod-template-hash=7d4"],
            id="matchLabelKeys off: those of a default go too",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            [owner(SET, f"app=web {HASH}!=7d4", above="Deployment/web"), DEPLOYMENT[1]],
            policy(),
            ["zone hard 1 app=web pod-template-hash:NotIn"],
            id="a key stays where the selector asks otherwise of it",
        ),
        pytest.param(
            pod(f"app=web {ROLLOUT_HASH}=5f", owner=SET),
            [owner(SET, f"app=web {ROLLOUT_HASH}=5f", above="Rollout/web")],
            policy(),
            ["zone hard 1 app=web + rollouts-pod-template-hash"],
            id="an Argo Rollout's pod",
        ),
        pytest.param(
            pod("app=db controller-revision-hash=1", owner="StatefulSet/db"),
            [owner("StatefulSet/db", "app=db", replicas=3)],
            policy(),
            ["zone hard 1 app=db"],
            id="a StatefulSet's pod gets no revision key",
        ),
        pytest.param(
            pod("app=db controller-revision-hash=1", owner="StatefulSet/db"),
            [owner("StatefulSet/db", "app=db", replicas=3)],
            policy(default(keys=("controller-revision-hash",))),
            ["zone hard 1 app=db + controller-revision-hash"],
            id="unless a default names it",
        ),
        pytest.param(
            pod("app=rc", owner="ReplicationController/rc"),
            [owner("ReplicationController/rc", "app=rc", replicas=2)],
            policy(),
            ["zone hard 1 app=rc"],
            id="a ReplicationController's pod",
        ),
        pytest.param(
            pod("batch.kubernetes.io/controller-uid=u1 job-name=once", owner="Job/once", uid="u1"),
            [],
            policy(),
            ["zone hard 1 batch.kubernetes.io/controller-uid=u1"],
            id="a Job's pod: the Job's own selector, known from the pod",
        ),
        pytest.param(
            pod("app=web controller-uid=u1", owner="Job/once", uid="u1"),
            [service("web", "app=web")],
            policy(),
            ["zone hard 1 app=web"],
            id="a Job's pod behind a service: what the scheduler deduces",
        ),
        pytest.param(
            pod("app=web"), [service("web", "app=web")], policy(), ["zone hard 1 app=web"], id="a pod that stands alone"
        ),
        pytest.param(
            pod("db=x", owner="Database/x"),
            [owner("Database/x", "db=x", replicas=3)],
            policy(owners=(("example.com/v1", "Database"),)),
            ["zone hard 1 db=x"],
            id="a configured owner's selector",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            policy(defaulting_type="System"),
            ["hostname soft 3 app=web + pod-template-hash", "zone soft 5 app=web + pod-template-hash"],
            id="the scheduler's own defaults",
        ),
        pytest.param(
            pod(WEB, owner=SET, constraints=()),
            DEPLOYMENT,
            policy(),
            ["zone hard 1 app=web + pod-template-hash"],
            id="an empty list",
        ),
        pytest.param(
            pod(f"{HASH}=7d4", owner=SET),
            [owner(SET, f"{HASH}=7d4", replicas=2)],
            policy(),
            ["zone hard 1 pod-template-hash=7d4"],
            id="a selector of nothing but the hash keeps it",
        ),
        pytest.param(
            pod(f"app=web {HASH}=7d4", owner=SET),
            [owner(SET, f"app=web {HASH}=other", replicas=2)],
            policy(),
            ["zone hard 1 app=web pod-template-hash=other"],
            id="an owner that does not select the pod keeps its word",
        ),
        pytest.param(
            pod(f"app=web {HASH}=7d4", owner=SET),
            [owner(SET, f"app=web {HASH}!=old", replicas=2)],
            policy(),
            ["zone hard 1 app=web + pod-template-hash"],
            id="an expression that the hash fulfils goes out as well",
        ),
        pytest.param(
            pod("app=web", owner=SET),
            [owner(SET, "app=web track!=canary", replicas=2)],
            policy(default(keys=("track", "team", "team"))),
            ["zone hard 1 app=web track:NotIn + team"],
            id="a key that the pod lacks stays where it is, and stands once",
        ),
        pytest.param(
            pod(f"app=web {ROLLOUT_HASH}=5f {HASH}=7d4", owner=SET),
            [owner(SET, "app=web", replicas=2)],
            policy(),
            ["zone hard 1 app=web + pod-template-hash"],
            id="one revision key is enough",
        ),
        pytest.param(
            pod("app=web pod-template-hash=7d4"),
            [service("web", "app=web")],
            policy(),
            ["zone hard 1 app=web"],
            id="the hash means nothing without a ReplicaSet",
        ),
    ],
)
def test_pods_that_get_constraints(incoming, cluster, configured, given):
    made = defaulted(incoming, configured, index(namespace(), *cluster))
    assert isinstance(made, Injection)
    assert short(made) == given


@pytest.mark.parametrize(
    ("incoming", "cluster", "configured", "reason"),
    [
        pytest.param(pod(WEB, owner=SET), DEPLOYMENT, policy(mode="off"), "defaults-off", id="mode off"),
        pytest.param(
            pod(WEB, owner=SET, constraints=(constraint(HOSTNAME, when=SOFT, select="app=web"),)),
            DEPLOYMENT,
            policy(),
            "own-constraints",
            id="one soft constraint of its own",
        ),
        pytest.param(
            pod(WEB, owner=SET, annotations={"evenspread.io/skip": "true"}),
            DEPLOYMENT,
            policy(),
            "opted-out",
            id="the pod opts out",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            [owner(SET, WEB, replicas=3, annotations={"evenspread.io/skip": ""})],
            policy(),
            "opted-out",
            id="its owner opts out",
        ),
        pytest.param(
            pod(annotations={"kubernetes.io/config.mirror": "x"}),
            [service("web", "app=web")],
            policy(),
            "mirror-pod",
            id="a mirror pod",
        ),
        pytest.param(pod(WEB, owner=SET, node_name="n1"), DEPLOYMENT, policy(), "has-node-name", id="spec.nodeName"),
        pytest.param(
            pod(WEB, owner=SET, scheduler_name="volcano"),
            DEPLOYMENT,
            policy(),
            "other-scheduler",
            id="another scheduler",
        ),
        pytest.param(
            pod(owner="DaemonSet/agent"), [service("web", "app=web")], policy(), "daemon-set", id="a DaemonSet's pod"
        ),
        pytest.param(
            pod(owner="Database/x"),
            [service("web", "app=web")],
            policy(),
            "other-owner-kind",
            id="an operator's own pod",
        ),
        pytest.param(pod(WEB, owner=SET), [owner(SET, WEB, replicas=1)], policy(), "one-replica", id="one replica"),
        pytest.param(
            pod(WEB, owner=SET),
            [*DEPLOYMENT, autoscaler("Deployment/web", 1)],
            policy(),
            "one-replica",
            id="an autoscaler that allows one",
        ),
        pytest.param(
            pod("app=db", owner="StatefulSet/db"),
            [owner("StatefulSet/db", "app=db", replicas=0)],
            policy(),
            "one-replica",
            id="none",
        ),
        pytest.param(pod("app=web"), [], policy(), "no-selector", id="nothing to deduce a selector from"),
        pytest.param(
            pod("app=x controller-uid=u2", owner="Job/once", uid="u1"),
            [],
            policy(),
            "no-selector",
            id="a Job with a manual selector",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            Policy(defaults=Defaults(mode="inject")),
            "no-defaults",
            id="no defaults at all",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            [*DEPLOYMENT, KARPENTER],
            policy(default(HOSTNAME)),
            "no-defaults",
            id="hostname alone, which would add nodes",
        ),
        pytest.param(
            pod(WEB, owner=SET),
            DEPLOYMENT,
            policy(default(max_skew=0)),
            "would-be-refused",
            id="a default nobody checked",
        ),
        pytest.param(
            pod(WEB, owner=SET, annotations={"a": "x" * 262_000}),
            DEPLOYMENT,
            policy(),
            "annotations-full",
            id="no room for the record",
        ),
    ],
)
def test_pods_that_pass_as_they_are(incoming, cluster, configured, reason):
    assert defaulted(incoming, configured, index(namespace(), *cluster)) == Skip(reason)


@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(pod(WEB, owner=SET, annotations={"evenspread.io/skip": "false"}), id="skip: false"),
        pytest.param(pod(WEB, owner=SET, scheduler_name="default-scheduler"), id="the configured scheduler by name"),
        pytest.param(pod(WEB, owner=SET, annotations={"a": "x" * 250_000}), id="room enough for the record"),
    ],
)
def test_the_allowed_twins(incoming):
    assert isinstance(defaulted(incoming, policy(), index(*DEPLOYMENT)), Injection)


def test_a_pod_before_its_owner():
    incoming = pod(WEB, owner=SET)
    awaited = Awaited(api_version="apps/v1", kind="ReplicaSet", namespace="shop", name="web-7d4")
    assert defaulted(incoming, policy(), index(service("web", "app=web"))) == awaited
    assert defaulted(incoming, policy(), index(service("web", "app=web")), waited=True) == Skip("owner-unknown")
    assert isinstance(defaulted(incoming, policy(), index(*DEPLOYMENT)), Injection)


def test_observing_awaits_nothing():
    assert defaulted(pod(WEB, owner=SET), policy(mode="observe"), index()) == Skip("owner-unknown")


@pytest.mark.parametrize(
    ("select", "cluster", "awaits"),
    [
        pytest.param("tier=gold", DEPLOYMENT, True, id="its labels choose the override, and it is not known yet"),
        pytest.param("tier=gold", (*DEPLOYMENT, namespace()), False, id="it is known"),
        pytest.param("kubernetes.io/metadata.name=shop", DEPLOYMENT, False, id="its name is enough"),
    ],
)
def test_a_pod_before_its_namespace(select, cluster, awaits):
    override = DefaultsOverride(
        name="some", namespace_selector=compile_selector(selector(select)), default_constraints=(default(max_skew=4),)
    )
    incoming, configured = pod(WEB, owner=SET), policy(overrides=(override,))
    made = defaulted(incoming, configured, index(*cluster))
    if awaits:
        assert made == Awaited(api_version="v1", kind="Namespace", namespace="", name="shop")
    else:
        assert isinstance(made, Injection)
    assert isinstance(defaulted(incoming, configured, index(*cluster), waited=True), Injection)


def test_nothing_is_awaited_for_pods_that_get_nothing_anyway():
    assert defaulted(pod(WEB, owner=SET, node_name="n"), policy(), index()) == Skip("has-node-name")


def test_without_a_cluster():
    assert defaulted(pod(WEB, owner=SET), policy(), None) == Skip("cluster-unknown")


OVERRIDES = (
    DefaultsOverride(
        name="critical",
        namespace_selector=compile_selector(selector("tier=gold")),
        min_replicas=3,
        default_constraints=(default(max_skew=1), default(HOSTNAME, max_skew=1)),
    ),
    DefaultsOverride(name="quiet", pod_selector=compile_selector(selector("app=cron"))),
    DefaultsOverride(
        name="gold",
        namespace_selector=compile_selector(selector("tier=gold")),
        default_constraints=(default(max_skew=2),),
    ),
)


@pytest.mark.parametrize(
    ("labelled", "replicas", "tier", "given", "override"),
    [
        pytest.param(
            "app=web", 3, "gold", ["zone hard 1 app=web", "hostname hard 1 app=web"], "critical", id="first match"
        ),
        pytest.param("app=web", 2, "gold", ["zone hard 2 app=web"], "gold", id="too few replicas for the first"),
        pytest.param("app=web", 3, "none", ["zone soft 5 app=web"], None, id="none matches"),
    ],
)
def test_overrides(labelled, replicas, tier, given, override):
    cluster = index(namespace("shop", f"tier={tier}"), owner("StatefulSet/s", labelled, replicas=replicas))
    configured = policy(default(when=SOFT, max_skew=5), overrides=OVERRIDES)
    made = defaulted(pod(labelled, owner="StatefulSet/s"), configured, cluster)
    assert (short(made), made.record.override) == (given, override)


def test_an_override_without_constraints_exempts():
    cluster = index(namespace("shop"), owner("StatefulSet/s", "app=cron", replicas=3))
    configured = policy(overrides=OVERRIDES)
    assert defaulted(pod("app=cron", owner="StatefulSet/s"), configured, cluster) == Skip("no-defaults")


def test_an_unknown_namespace_still_has_its_name():
    by_name = DefaultsOverride(
        name="shop",
        namespace_selector=compile_selector(selector("kubernetes.io/metadata.name=shop")),
        default_constraints=(default(max_skew=4),),
    )
    made = defaulted(pod(WEB, owner=SET), policy(overrides=(by_name,)), index(*DEPLOYMENT))
    assert made.record.override == "shop"


@pytest.mark.parametrize(
    ("zones", "domains", "defaults", "given"),
    [
        pytest.param("a b c", {}, [default(hard_when=3, min_domains=3)], ["zone hard 1 app=web min 3"], id="enough"),
        pytest.param(
            "a b", {}, [default(hard_when=3, min_domains=3)], ["zone soft 1 app=web"], id="too few: soft, no minDomains"
        ),
        pytest.param(
            "a b", {ZONE: ("b", "c")}, [default(hard_when=3)], ["zone hard 1 app=web"], id="a zone without nodes"
        ),
        pytest.param("", {}, [default(hard_when=1)], ["zone soft 1 app=web"], id="no nodes known"),
        pytest.param(
            "a b",
            {},
            [default(hard_when=3), default(when=SOFT, max_skew=5)],
            ["zone soft 5 app=web"],
            id="its soft twin is already there",
        ),
        pytest.param(
            "a b c",
            {},
            [default(hard_when=3), default(when=SOFT, max_skew=5)],
            ["zone hard 1 app=web", "zone soft 5 app=web"],
            id="hard beside its soft twin",
        ),
        pytest.param(
            "a b",
            {},
            [default(hard_when=3), default(hard_when=4, max_skew=2)],
            ["zone soft 1 app=web"],
            id="two that became the same",
        ),
    ],
)
def test_hard_when_domains(zones, domains, defaults, given):
    cluster = index(owner("StatefulSet/s", "app=web", replicas=3), *(node(zone, zone) for zone in zones.split()))
    made = defaulted(pod(owner="StatefulSet/s"), policy(*defaults, domains=domains), cluster)
    assert short(made) == given


PINNED = {"node_selector": {ZONE: "a"}}
TAINTED = (Taint(key="dedicated", value="gpu", effect="NoSchedule"),)
TOLERATES = {"tolerations": (Toleration(operator="Exists"),)}


@pytest.mark.parametrize(
    ("spec", "fields", "domains", "hard"),
    [
        pytest.param({}, {}, {}, True, id="a tainted node's zone counts, as in the scheduler"),
        pytest.param({}, {"node_taints_policy": "Honor"}, {}, False, id="unless taints are honoured"),
        pytest.param(TOLERATES, {"node_taints_policy": "Honor"}, {}, True, id="and not tolerated"),
        pytest.param(PINNED, {}, {}, False, id="zones that the pod may not use do not count"),
        pytest.param(PINNED, {"node_affinity_policy": "Ignore"}, {}, True, id="unless affinity is ignored"),
        pytest.param(PINNED, {}, {ZONE: ("a", "b", "c")}, False, id="nor zones without nodes, for a pod that chooses"),
        pytest.param({}, {"node_taints_policy": "Honor"}, {ZONE: ("c",)}, True, id="which count for others"),
    ],
)
def test_which_domains_exist_for_a_pod(spec, fields, domains, hard):
    tainted = msgspec.structs.replace(node("n3", "c"), spec=NodeSpec(taints=TAINTED))
    cluster = index(owner("StatefulSet/s", "app=web", replicas=3), node("n1", "a"), node("n2", "b"), tainted)
    incoming = pod(owner="StatefulSet/s", **spec)
    made = defaulted(incoming, policy(default(hard_when=3, **fields), domains=domains), cluster)
    assert made.constraints[0].hard is hard


@pytest.mark.parametrize(
    ("nodes", "accepts", "given"),
    [
        pytest.param([node("n1", "a")], False, ["zone hard 1 app=web", "hostname hard 1 app=web"], id="fixed nodes"),
        pytest.param([KARPENTER], False, ["zone hard 1 app=web"], id="Karpenter would add nodes"),
        pytest.param([KARPENTER], True, ["zone hard 1 app=web", "hostname hard 1 app=web"], id="which is accepted"),
    ],
)
def test_hostname_defaults_where_nodes_grow(nodes, accepts, given):
    cluster = index(owner("StatefulSet/s", "app=web", replicas=3), *nodes)
    configured = policy(default(), default(HOSTNAME), accept_node_growth=accepts)
    made = defaulted(pod(owner="StatefulSet/s"), configured, cluster)
    assert short(made) == given
