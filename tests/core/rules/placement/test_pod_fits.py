"""Whether a pod has a place: what is said to whoever creates it, and when nobody is bothered."""

import pytest
from build import ROOMY, cluster, limited, running, service
from manifest import DENY, PLAIN, decide, examined, told, workload
from msgspec.structs import replace

from webhook.core.api.types import Container, NodeStatus, ResourceRequirements, SpreadConstraint
from webhook.core.policy.defaults import DefaultConstraint, Defaults
from webhook.core.policy.policy import Messages, Mode
from webhook.core.review.messages import WARNING_CHARS
from webhook.core.rules.placement.pod_fits import Feasibility

RULE = "replicas-do-not-fit"
ZONE = "zone hard 1 app=web"
HOST = "hostname hard 1 app=web"
TAINTED = "a: n1=1 | b: ~n2"
GATES = [{"name": "example.com/wait"}]
SMALL = {**ROOMY, "cpu": "2"}


def asking(cpu="1", **more):
    return [{"name": "c", "resources": {"requests": {"cpu": cpu}}} | more]


def bare(*constraints, meta=None, **spec):
    return workload("Pod", "app=web", *constraints, meta=meta, **spec)


def tried(state, *constraints, policy=DENY, meta=None, asked=None, **spec):
    """The decision on a pod that is created on these nodes."""
    found = cluster(state) if isinstance(state, str) else state
    return decide(bare(*constraints, meta=meta, **spec), policy=policy, index=found, **(asked or {}))


def modes(decision):
    return [str(each.mode) for each in decision.findings if each.finding.rule == RULE]


@pytest.mark.parametrize(
    ("state", "constraints", "warning"),
    [
        pytest.param(
            TAINTED,
            [ZONE],
            "zone b (1 node, tainted) stays at 0; add nodeTaintsPolicy: Honor",
            id="a tainted zone",
        ),
        pytest.param("a: n1=1 | b: n2", [ZONE], "", id="the same with the zone open"),
        pytest.param(TAINTED, [ZONE + " nodeTaintsPolicy:Honor"], "", id="the same where taints are honoured"),
        pytest.param(
            "a: n1=1 n2=1 | b: ~n3",
            ["zone hard 3 app=web", HOST],
            "1 hostname (1 node, tainted) stays at 0; add nodeTaintsPolicy: Honor in hostname[1]",
            id="of two constraints the one in the way",
        ),
        pytest.param(
            "a: n1=1 n2=1 | b: n3=1 ~n4",
            [HOST],
            "1 hostname (1 node, tainted) stays at 0; add nodeTaintsPolicy: Honor",
            id="names of nodes are not told",
        ),
        pytest.param(
            "a: n1=1 | b: n2=1",
            [ZONE + " minDomains:3"],
            "2 zones, fewer than minDomains 3: the minimum is 0; set minDomains: 2",
            id="too few domains",
        ),
        pytest.param(
            "n1 n2",
            [ZONE],
            "no node has the label zone; set whenUnsatisfiable: ScheduleAnyway",
            id="no key",
        ),
    ],
)
def test_a_pod_that_spread_keeps_away_is_a_warning(state, constraints, warning):
    decision = tried(state, *constraints, policy=replace(PLAIN, rules={"topology-key-unknown": Mode.OFF}))
    assert decision.allowed
    told = [each for each in decision.warnings if RULE in each]
    assert told == ([f"evenspread/{RULE}: {warning}"] if warning else [])
    assert decision.feasibility.verdict == ("does-not-fit" if warning else "fits")


def test_whether_devices_are_free_is_not_known():
    claims = [{"name": "gpu", "resourceClaimName": "gpu-0"}]
    decision = tried("a: n1=1 | b: n2", ZONE, resourceClaims=claims)
    assert decision.feasibility.verdict == "unknown"
    assert ("replicas-do-not-fit", "resource claims (DynamicResources)") in {
        (each.rule, each.missing) for each in decision.not_evaluated
    }
    assert tried(TAINTED, ZONE, resourceClaims=claims).feasibility.verdict == "does-not-fit"


def test_the_finding_has_the_sentence_and_offline_every_fix():
    state = cluster("a: n1=1 n2 | b: ~n3")
    [judged] = tried(state, ZONE).findings
    assert judged.finding.fix == "add nodeTaintsPolicy: Honor (fits 2 nodes)"
    [judged] = examined(bare(ZONE), index=state).findings
    finding = judged.finding
    assert finding.path == "spec.topologySpreadConstraints[0]"
    assert finding.detail == (
        "cause: spread; 0/3 nodes are available: 1 node(s) had untolerated taint(s), "
        "2 node(s) didn't match pod topology spread constraints."
    )
    assert finding.fix == (
        "add nodeTaintsPolicy: Honor (fits 2 nodes) | set maxSkew: 2 (fits 2 nodes) | "
        "set whenUnsatisfiable: ScheduleAnyway (fits 2 nodes)"
    )


@pytest.mark.parametrize(
    ("detail", "zone", "host"),
    [
        ("minimal", "1 zone (1 node, tainted) stays at 0", "1 hostname (1 node, tainted) stays at 0"),
        ("own-namespace", "zone b (1 node, tainted) stays at 0", "1 hostname (1 node, tainted) stays at 0"),
        ("full", "zone b (1 node, tainted) stays at 0", "hostname n2 (1 node, tainted) stays at 0"),
    ],
)
def test_names_are_told_as_the_configuration_says(detail, zone, host):
    policy = replace(PLAIN, messages=Messages(detail=detail))
    for constraint, expected in ((ZONE, zone), (HOST, host)):
        [judged] = tried(TAINTED, constraint, policy=policy).findings
        assert judged.finding.summary == f"this pod fits on no node: {expected}"


def test_a_line_that_would_be_too_long_leaves_the_reasons_out():
    index = cluster("europe-central2-1a: n1=2 | europe-central2-production-bb: n2=1 ~n3 n4 n5")
    for name, cpu in (("n2", "1500m"), ("n4", "2"), ("n5", "2")):
        index.apply("MODIFIED", replace(index.nodes.get(name), status=NodeStatus(allocatable=SMALL)))
        asks = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))
        index.apply("ADDED", running(f"x-{name}", name, "app=x", containers=(asks,)))
    [warning] = tried(index, ZONE, containers=asking()).warnings
    assert warning == (f"evenspread/{RULE}: zone europe-central2-production-bb (4 nodes) stays at 1; set maxSkew: 2")
    [judged] = tried(index, ZONE, containers=asking()).findings
    assert (
        judged.finding.summary
        == "this pod fits on no node: zone europe-central2-production-bb (3 short of cpu, 1 tainted) stays at 1"
    )
    assert len(warning) <= WARNING_CHARS


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        pytest.param({"meta": {"ownerReferences": [{"kind": "Thing", "controller": True}]}}, {}, id="a controller"),
        pytest.param({"nodeName": "n1"}, {}, id="a node already"),
        pytest.param({"schedulingGates": GATES}, {}, id="scheduling gates"),
        pytest.param({"schedulerName": "volcano"}, {}, id="another scheduler"),
    ],
)
def test_pods_that_are_not_tried(more, asked):
    decision = tried(TAINTED, ZONE, **more, asked=asked)
    assert (decision.warnings, decision.feasibility, modes(decision)) == ((), None, [])


def test_a_configured_scheduler_is_ours():
    policy = replace(PLAIN, scheduler_names=("default-scheduler", "volcano"))
    assert modes(tried(TAINTED, ZONE, policy=policy, schedulerName="volcano")) == ["warn"]


def test_a_pod_without_hard_constraints_is_not_tried():
    assert tried(TAINTED, "zone soft 1 app=web").feasibility is None
    assert tried(TAINTED).feasibility is None


def test_an_update_is_not_tried():
    assert decide(bare(ZONE), bare(ZONE, "hostname soft 1 app=web"), index=cluster(TAINTED)).feasibility is None


@pytest.mark.parametrize(
    ("index", "asked", "missing"),
    [
        pytest.param(None, {}, "no cluster", id="no cluster"),
        pytest.param("", {}, "no nodes known", id="no nodes"),
        pytest.param(TAINTED, {"age": 61.0}, "the cluster data is older than maxStaleness", id="stale"),
        pytest.param(TAINTED, {"until": 0.001}, "no time left", id="no time"),
    ],
)
def test_what_nobody_knows_is_no_finding(index, asked, missing):
    found = None if index is None else cluster(index)
    decision = decide(bare(ZONE), index=found, **asked)
    assert (decision.allowed, decision.warnings, modes(decision)) == (True, (), [])
    assert (decision.feasibility.verdict, decision.feasibility.cause) == ("unknown", "")
    assert decision.audit["feasibility"] == f"unknown: {missing}"
    assert [each.missing for each in decision.not_evaluated if each.rule == RULE] == [missing]


def test_a_cluster_that_is_just_young_enough():
    assert modes(decide(bare(ZONE), index=cluster(TAINTED), age=60.0)) == ["warn"]
    policy = replace(PLAIN, max_staleness_seconds=5.0)
    assert decide(bare(ZONE), policy=policy, index=cluster(TAINTED), age=6.0).feasibility.verdict == "unknown"


def test_volumes_that_nobody_could_read_are_unknown():
    index = cluster(TAINTED)
    index.mark_missing("persistentvolumes", "403 Forbidden")
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    decision = decide(bare(ZONE, volumes=claims), index=index)
    assert decision.audit["feasibility"] == "unknown: persistentvolumes: 403 Forbidden"
    assert modes(decide(bare(ZONE), index=index)) == ["warn"]


def test_nodes_that_were_not_listed_yet_are_unknown():
    index = cluster(TAINTED)
    index.mark_missing("pods", "not listed")
    assert decide(bare(ZONE), index=index).audit["feasibility"] == "unknown: pods: not listed"


def test_what_is_said_beside_another_finding():
    decision = decide(bare(ZONE, "zone soft 1 app=other"), index=cluster("a: n1"), age=99.0)
    assert decision.warnings
    assert decision.audit["feasibility"].startswith("unknown: the cluster data")


class TestModes:
    @pytest.mark.parametrize(
        ("state", "spec", "cause"),
        [
            pytest.param("a: n1 | b: n2", {"containers": asking("99")}, "capacity", id="no room"),
            pytest.param("a: ~n1 | b: ~n2", {}, "other", id="taints"),
            pytest.param("a: n1=1 | b: ~n2", {"containers": asking("99")}, "other", id="spread and room"),
        ],
    )
    def test_another_cause_is_audit_whatever_is_configured(self, state, spec, cause):
        policy = replace(DENY, rules={RULE: Mode.DENY})
        decision = tried(state, ZONE, policy=policy, **spec)
        assert (decision.warnings, modes(decision)) == ((), ["audit"])
        assert (decision.feasibility.verdict, decision.feasibility.cause) == ("does-not-fit", cause)
        assert decision.audit["finding-1"].startswith(f"{RULE} audit spec: this pod fits on no node: 0/")

    def test_a_pod_is_never_denied_for_it(self):
        policy = replace(DENY, rules={RULE: Mode.DENY})
        decision = tried(TAINTED, ZONE, policy=policy)
        assert (decision.allowed, modes(decision)) == (True, ["warn"])
        offline = examined(bare(ZONE), policy, index=cluster(TAINTED))
        assert modes(offline) == ["warn"]

    def test_it_can_be_turned_off(self):
        decision = tried(TAINTED, ZONE, policy=replace(PLAIN, rules={RULE: Mode.OFF}))
        assert (decision.warnings, modes(decision)) == ((), [])

    def test_where_capacity_grows_nobody_is_warned(self):
        assert modes(tried(TAINTED, ZONE, policy=replace(PLAIN, capacity="growing"))) == ["audit"]
        pools = cluster(TAINTED, labelled="karpenter__sh/nodepool=x")
        assert "karpenter.sh/nodepool" in pools.nodes.get("n1").labels
        assert modes(tried(pools, ZONE)) == ["audit"]
        assert modes(tried(pools, ZONE, policy=replace(PLAIN, capacity="fixed"))) == ["warn"]

    def test_where_preemption_may_make_room_nobody_is_warned(self):
        index = cluster("a: n1=1 | b: n2", resources=SMALL)
        asks = Container(name="c", resources=ResourceRequirements(requests={"cpu": "2"}))
        index.apply("ADDED", running("x", "n2", "app=x", containers=(asks,)))
        assert modes(tried(index, ZONE, containers=asking())) == ["warn"]
        assert modes(tried(index, ZONE, containers=asking(), priority=1000)) == ["audit"]
        assert modes(tried(TAINTED, ZONE, priority=1000)) == ["warn"]

    def test_devices_that_nobody_knows_of_warn_nobody(self):
        assert modes(tried(TAINTED, ZONE, resourceClaims=[{"name": "gpu"}])) == ["audit"]


class TestOffline:
    INJECTS = replace(
        PLAIN,
        defaults=Defaults(
            mode="inject",
            default_constraints=(
                DefaultConstraint(
                    constraint=SpreadConstraint(
                        max_skew=1, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="DoNotSchedule"
                    )
                ),
            ),
        ),
    )

    def index(self):
        found = cluster(TAINTED)
        found.apply("ADDED", service("web", "app=web"))
        return found

    def test_what_would_be_injected_counts(self):
        [judged] = examined(bare(), self.INJECTS, index=self.index()).findings
        assert (judged.finding.path, judged.finding.key) == ("spec", "spec")
        assert judged.finding.summary == "this pod fits on no node: zone b (1 node, tainted) stays at 0"

    def test_not_for_a_request_that_has_passed_the_webhook(self):
        assert decide(bare(), policy=self.INJECTS, index=self.index()).feasibility is None

    def test_nothing_hard_is_injected(self):
        assert examined(bare(), self.INJECTS, index=cluster(TAINTED)).findings == ()

    def test_a_workload_needs_a_cluster(self):
        found = examined(workload("Deployment", "app=web", ZONE), index=None).not_evaluated
        assert [each.missing for each in found if each.rule == RULE] == ["no cluster"]
        soft = examined(workload("Deployment", "app=web", "zone soft 1 app=web"), index=None).not_evaluated
        assert RULE not in {each.rule for each in soft}


def test_an_unreadable_selector_is_told_to_nobody():
    decision = tried(
        TAINTED,
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a b"}},
        },
    )
    assert modes(decision) == ["audit"]
    assert decision.feasibility == Feasibility("does-not-fit", "spread", decision.feasibility.answer)


class TestEphemeralVolumes:
    """Their claims do not exist yet when a pod or its workload is created."""

    SCRATCH = ({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}},)

    def known(self, most=1, **more):
        return limited("a: n1 | b: n2", most, **more)

    @pytest.mark.parametrize("uid", ["", "as validating webhooks see it"])
    def test_do_not_keep_a_pod_from_its_node(self, uid):
        decision = tried(self.known(), ZONE, meta={"uid": uid}, volumes=self.SCRATCH)
        assert (decision.feasibility.verdict, modes(decision)) == ("fits", [])

    def test_may_not_be_attached(self):
        decision = tried(self.known(most=0), ZONE, volumes=self.SCRATCH)
        assert (decision.feasibility.verdict, decision.feasibility.cause) == ("does-not-fit", "capacity")

    def test_made_before_the_pod_has_a_node_are_unknown(self):
        decision = tried(self.known(mode="Immediate"), ZONE, volumes=self.SCRATCH)
        assert decision.audit["feasibility"] == "unknown: the nodes of the pod's future volumes"

    @pytest.mark.parametrize(
        ("replicas", "expected"),
        [
            pytest.param(2, [], id="one on each node"),
            pytest.param(3, ["audit 2 of 3 fit: no node admits another of these pods"], id="one more"),
        ],
    )
    def test_of_all_replicas_count_for_the_attach_limit(self, replicas, expected):
        made = workload("Deployment", "app=web", HOST, replicas=replicas, volumes=self.SCRATCH)
        assert told(RULE, made, self.known()) == expected

    def test_of_replicas_are_unknown_if_made_at_once(self):
        made = workload("Deployment", "app=web", HOST, replicas=2, volumes=self.SCRATCH)
        decision = decide(made, index=self.known(mode="Immediate"))
        missing = [each.missing for each in decision.not_evaluated if each.rule == RULE]
        assert missing == ["whether all replicas fit is unknown: the nodes of the pods' future volumes"]
