import pytest
from build import autoscaler, default, index, node, owner, policy, selector, service
from manifest import workload

from webhook.core.api.selectors import compile_selector
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.defaulting.injection import Skip
from webhook.core.pods_to_create.declared import declarable_constraints
from webhook.core.policy.defaults import DefaultsOverride
from webhook.core.workloads.reading import read_workload

SOFT = "ScheduleAnyway"
ZONES = [node(f"n{zone}", zone) for zone in "abc"]


def given(manifest, cluster=(), configured=None, namespace="shop"):
    """What the template has to declare, one line a constraint, or the reason why nothing."""
    configured = configured or policy()
    read = read_workload(manifest, configured.workloads)
    found = declarable_constraints(read, namespace, Context(policy=configured, version=RECORDED, index=index(*cluster)))
    return str(found.reason) if isinstance(found, Skip) else [short(each) for each in found]


def short(constraint):
    """``zone hard 1 app=web + pod-template-hash``."""
    selected = constraint.selector
    parts = [constraint.topology_key.rpartition("/")[2], "hard" if constraint.hard else "soft", constraint.max_skew]
    parts += [f"{key}={value}" for key, value in (selected.match_labels or {}).items()]
    parts += [f"{part.key}:{part.operator}" for part in selected.match_expressions or ()]
    parts += ["+", *constraint.match_label_keys] if constraint.match_label_keys else []
    return " ".join(map(str, parts))


@pytest.mark.parametrize(
    ("manifest", "cluster", "configured", "constraints"),
    [
        pytest.param(
            workload("Deployment", "app=web tier=front"),
            [],
            policy(default(), default(HOSTNAME, when=SOFT)),
            ["zone hard 1 app=web + pod-template-hash", "hostname soft 1 app=web + pod-template-hash"],
            id="the workload's own selector, the revision as a key",
        ),
        pytest.param(
            workload("Rollout", "app=web"),
            [],
            None,
            ["zone hard 1 app=web + rollouts-pod-template-hash"],
            id="a Rollout",
        ),
        pytest.param(workload("StatefulSet", "app=web"), [], None, ["zone hard 1 app=web"], id="a StatefulSet"),
        pytest.param(workload("ReplicaSet", "app=web"), [], None, ["zone hard 1 app=web"], id="a ReplicaSet"),
        pytest.param(
            workload("ReplicationController", "app=web", spec={"selector": {"app": "web"}}),
            [],
            None,
            ["zone hard 1 app=web"],
            id="a ReplicationController",
        ),
        pytest.param(
            workload("ReplicationController", "app=web tier=front"),
            [],
            None,
            ["zone hard 1 app=web tier=front"],
            id="one that leaves its selector to the API server",
        ),
        pytest.param(
            workload("Deployment", "app=web tier=front"),
            [service("front", "tier=front"), service("other", "tier=back")],
            None,
            ["zone hard 1 app=web tier=front + pod-template-hash"],
            id="joined with the Services that select the pods",
        ),
        pytest.param(
            workload("Pod", "app=web"),
            [service("web", "app=web")],
            None,
            ["zone hard 1 app=web"],
            id="a Pod of a Service",
        ),
        pytest.param(workload("Pod", "app=web"), [], None, "no-selector", id="a Pod without one"),
        pytest.param(workload("Job", "app=web"), [service("web", "app=web")], None, "other-owner-kind", id="a Job"),
        pytest.param(workload("CronJob", "app=web"), [], None, "other-owner-kind", id="a CronJob"),
        pytest.param(workload("DaemonSet", "app=web"), [], None, "daemon-set", id="a DaemonSet"),
        pytest.param(workload("CloneSet", "app=web"), [], None, "other-owner-kind", id="a kind that nobody named"),
        pytest.param(
            workload("CloneSet", "app=web"),
            [],
            policy(owners=(("apps.kruise.io/v1alpha1", "CloneSet"),)),
            ["zone hard 1 app=web"],
            id="one that the configuration names",
        ),
        pytest.param(
            {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {}},
            [],
            None,
            "several-templates",
            id="a kind with a template for each of its Jobs",
        ),
        pytest.param(
            workload(
                "ReplicaSet",
                "app=web",
                meta={"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]},
            ),
            [],
            None,
            "made-by-a-controller",
            id="what another object writes",
        ),
        pytest.param(
            workload("Deployment", "app=web", "zone hard 1 app=web"), [], None, "own-constraints", id="declared"
        ),
        pytest.param(
            workload("Deployment", "app=web", meta={"annotations": {"evenspread.io/skip": "true"}}),
            [],
            None,
            "opted-out",
            id="opted out: the annotation reaches the ReplicaSet",
        ),
        pytest.param(
            workload("Deployment", "app=web", schedulerName="volcano"),
            [],
            None,
            "other-scheduler",
            id="not our scheduler",
        ),
        pytest.param(workload("Deployment", "app=web"), [], policy(mode="off"), "defaults-off", id="off"),
        pytest.param(
            workload("Deployment", "app=web"),
            [],
            policy(match_label_keys="off"),
            "not-declarable",
            id="without matchLabelKeys a template cannot name its own revision",
        ),
        pytest.param(
            workload("StatefulSet", "app=web"),
            [],
            policy(match_label_keys="off"),
            ["zone hard 1 app=web"],
            id="no revision",
        ),
    ],
)
def test_what_a_template_has_to_declare(manifest, cluster, configured, constraints):
    assert given(manifest, cluster, configured) == constraints


LIVE = owner("Deployment/web", "app=web", replicas=3)
SILENT = workload("Deployment", "app=web", spec={"replicas": None})


@pytest.mark.parametrize(
    ("manifest", "cluster", "told"),
    [
        pytest.param(workload("Deployment", "app=web", replicas=1), [LIVE], False, id="1 stated"),
        pytest.param(SILENT, [], False, id="none stated: the API server writes 1"),
        pytest.param(SILENT, [LIVE], True, id="none stated: those that run stay"),
        pytest.param(SILENT, [owner("Deployment/web", "app=web")], False, id="none known of those that run"),
        pytest.param(SILENT, [autoscaler("Deployment/web", 5)], True, id="an autoscaler's maximum"),
        pytest.param(workload("Deployment", "app=web"), [autoscaler("Deployment/web", 1)], False, id="which may be 1"),
    ],
)
def test_one_replica_is_not_spread(manifest, cluster, told):
    expected = ["zone hard 1 app=web + pod-template-hash"] if told else "one-replica"
    assert given(manifest, cluster) == expected


def test_a_custom_resource_that_states_no_replicas_may_have_many():
    thing = workload("CloneSet", "app=web", spec={"replicas": None})
    configured = policy(owners=(("apps.kruise.io/v1alpha1", "CloneSet"),))
    assert given(thing, configured=configured) == ["zone hard 1 app=web"]


COUNTED = default(ZONE, hard_when=3)


@pytest.mark.parametrize(
    ("cluster", "configured", "expected"),
    [
        pytest.param([], policy(COUNTED), "nodes-unknown", id="no nodes"),
        pytest.param(ZONES, policy(COUNTED), ["zone hard 1 app=web"], id="three zones"),
        pytest.param(ZONES[:2], policy(COUNTED), ["zone soft 1 app=web"], id="two zones"),
        pytest.param([], policy(COUNTED, domains={ZONE: ("a", "b", "c")}), ["zone hard 1 app=web"], id="configured"),
        pytest.param(
            [],
            policy(COUNTED, overrides=(DefaultsOverride(name="o", default_constraints=(default(HOSTNAME),)),)),
            ["hostname hard 1 app=web"],
            id="an override that counts nothing",
        ),
        pytest.param(
            [],
            policy(overrides=(DefaultsOverride(name="o", default_constraints=(COUNTED,)),)),
            "nodes-unknown",
            id="an override that does",
        ),
        pytest.param(
            [],
            policy(
                default(HOSTNAME),
                overrides=(
                    DefaultsOverride(
                        name="o", pod_selector=compile_selector(selector("app=db")), default_constraints=(COUNTED,)
                    ),
                ),
            ),
            ["hostname hard 1 app=web"],
            id="an override for others that does",
        ),
    ],
)
def test_hard_by_the_number_of_domains(cluster, configured, expected):
    assert given(workload("StatefulSet", "app=web"), cluster, configured) == expected


def test_without_services_nobody_knows_the_selector():
    known = index(*ZONES)
    known.mark_missing("services", "403")
    assert declarable_constraints(
        read_workload(workload("StatefulSet", "app=web")),
        "shop",
        Context(policy=policy(), version=RECORDED, index=known),
    ) == Skip("services-unknown")


def test_the_index_is_as_before():
    known = index(LIVE, owner("Deployment/db", "app=db"))
    before = known.owners.of_namespace("shop")
    for kind in ("Deployment", "StatefulSet"):
        assert declarable_constraints(
            read_workload(workload(kind, "app=new", replicas=9)),
            "shop",
            Context(policy=policy(), version=RECORDED, index=known),
        )
        assert known.owners.of_namespace("shop") == before
