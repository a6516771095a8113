"""What a scan says of one workload: its pods, why they wait, what would be refused or injected, the smallest fix."""

import json
import time

import msgspec
import pytest
from build import constraint, default, policy
from cli.snapshots import HOSTNAME, ZONE, owned, running, snapshot, waiting
from faults import Raising
from manifest import DENY, PLAIN, TODAY, workload
from msgspec.structs import replace
from scans import context, lines, scanned, snapshot_of

from webhook.answers.scanned import scan_document
from webhook.core.context import Context
from webhook.core.policy.policy import Annotations, Mode
from webhook.core.scan import smallest_fix, waiting_pods, workload_scan
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.scan_results import PendingCause, PendingPod, Stranded
from webhook.core.scan.workload_scan import scan_workload
from webhook.core.scheduler.profile import SchedulerProfile
from webhook.core.workloads.custom_kinds import CONSTRAINTS, EmbeddedKind

HARD = "zone hard 1 app=web"
SINCE = "2026-11-20T10:00:00Z"


def web(*constraints, kind="Deployment", **more):
    return workload(kind, "app=web", *constraints, meta={"uid": "u-web"}, **more)


def one(state, *objects, policy=PLAIN, **more):
    """The one workload of a cluster in the notation of ``snapshot``: the first of the objects."""
    within = scan_context(context(snapshot_of(snapshot(state, *objects, **more)), policy))
    return scan_workload(json.dumps(objects[0]).encode(), within)


def of_web(name, **more):
    """A pod that waits, of ReplicaSet web-1, of Deployment web."""
    return waiting(name, HARD, owner="ReplicaSet/web-1", **more)


def deleted(pod):
    """The pod while it terminates."""
    return pod | {"metadata": pod["metadata"] | {"deletionTimestamp": SINCE}}


IN_ONE_ZONE = scan_context(context(snapshot_of(snapshot("a: a0"))))
WEB_1 = owned("ReplicaSet", "web-1", "Deployment/web", selector={"matchLabels": {"app": "web"}})


@pytest.mark.parametrize(
    ("made", "objects", "expected"),
    [
        pytest.param(web(replicas=5), (), (5, 3), id="a Deployment"),
        pytest.param(web(replicas=None), (), (1, 3), id="the API server's default"),
        pytest.param(web(replicas=5), (WEB_1, of_web("w")), (5, 4), id="and a pod that waits"),
        pytest.param(web(kind="DaemonSet"), (), (3, 3), id="a DaemonSet wants one on each node"),
        pytest.param(web(kind="Job", replicas=2, spec={"suspend": True}), (), (0, None), id="suspended"),
        pytest.param(web(kind="Job", replicas=None), (), (None, None), id="a Job that does not say"),
        pytest.param(web(kind="CronJob"), (), (None, None), id="a CronJob"),
        pytest.param(running("b0-0", "b0"), (), (1, 1), id="a pod"),
        pytest.param(deleted(running("b0-0", "b0")), (), (1, 0), id="a pod that terminates"),
        pytest.param(waiting("alone"), (), (1, 1), id="a pod that waits"),
        pytest.param(waiting("gone") | {"status": {"phase": "Succeeded"}}, (), (1, 0), id="a pod that has ended"),
    ],
)
def test_how_many_pods_there_are(made, objects, expected):
    found = one("a: a0=1 a1 | b: b0=2", made, *objects)
    assert (found.wanted, found.pods) == expected


def test_a_pod_stands_for_those_of_a_controller_that_is_not_there():
    pods = [waiting(name, HARD, owner="ReplicaSet/gone", since=SINCE) for name in ("one", "two")]
    data = snapshot("a: a0=2 | b: b0", *pods)
    found = [each for each in scanned(data).workloads if each.stands_for]
    assert [(each.title, each.stands_for, each.pods, sum(each.pending.values())) for each in found] == [
        ("Pod shop/one", "ReplicaSet shop/gone", None, 2)
    ]
    assert [(each.name, each.skew, str(each.origin)) for each in found[0].skews] == [("zone[0]", 2, "declared")]
    assert scanned(snapshot("a: a0=2", waiting("alone", HARD))).workloads[0].skews == ()


def test_a_controller_without_an_object_of_its_own_may_tell_its_pods():
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "import", "uid": "u-1", "controller": True}
    pods = [running(f"import-{number}", "a0") for number in range(3)]
    for each in pods:
        each["metadata"] |= {"ownerReferences": [job], "labels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    (found,) = scanned(snapshot("a: a0", *pods)).workloads
    assert (found.stands_for, found.pods) == ("Job shop/import", 3)


def test_constraints_that_the_pods_say_were_injected():
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    record = json.dumps({"revision": "1", "constraints": [constraint]})
    pod = waiting("one", HARD, "hostname soft 1 app=web", owner="ReplicaSet/gone")
    pod["metadata"]["annotations"] = {"evenspread.io/injected": record}
    found = one("a: a0=2 | b: b0", pod)
    assert [(each.name, str(each.origin), each.path) for each in found.skews] == [
        ("zone[0]", "injected", "spec.topologySpreadConstraints[0]"),
        ("hostname[1]", "declared", "spec.topologySpreadConstraints[1]"),
    ]
    pod["metadata"]["annotations"] = {"evenspread.io/injected": "?"}
    assert {str(each.origin) for each in one("a: a0=2 | b: b0", pod).skews} == {"declared"}


def test_pods_on_nodes_that_do_not_count():
    honoring = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor"}
    made = web(honoring | {"labelSelector": {"matchLabels": {"app": "web"}}})
    (skew,) = one("a: a0=1 | b: b0=1 ~b1=3 | c: ~c0=2", made, running("lost", "n9")).skews
    assert (dict(skew.domains), dict(skew.outside), skew.skew) == ({"a": 1, "b": 1}, {"": 1, "b": 3, "c": 2}, 0)


@pytest.mark.parametrize(
    ("state", "pod", "cause"),
    [
        pytest.param("a: a0=1 | b: -b0", of_web("w"), "spread", id="spread"),
        pytest.param("a: a0 | b: b0", of_web("w", cpu="9"), "capacity", id="capacity"),
        pytest.param("a: ~a0", of_web("w"), "other", id="a taint"),
        pytest.param("a: a0 | b: b0", of_web("w"), "fits", id="the scheduler will come"),
        pytest.param("a: a0", of_web("w", schedulingGates=[{"name": "wait"}]), "gated", id="a gate"),
        pytest.param("a: a0", of_web("w", schedulerName="batch"), "other scheduler", id="of another scheduler"),
    ],
)
def test_why_a_pod_waits(state, pod, cause):
    found = one(state, web(HARD), WEB_1, pod)
    assert dict(found.pending) == {cause: 1}
    assert [(each.name, each.uid, each.cause) for each in found.pending_pods] == [("w", "uid-w", cause)]


def test_one_answer_for_equal_pods_and_none_beyond_a_number_of_different_ones(monkeypatch):
    monkeypatch.setattr(waiting_pods, "_MOST_DIFFERENT", 2)
    pods = [of_web(f"w{number:02}", cpu=f"{number % 3 + 1}", since=SINCE) for number in range(12)]
    asked, explain = [], waiting_pods.explain_pod
    monkeypatch.setattr(waiting_pods, "explain_pod", lambda *of, **more: asked.append(of) or explain(*of, **more))
    found = one("a: a0=1 | b: -b0", web(HARD), WEB_1, *pods)
    assert (dict(found.pending), len(asked)) == ({PendingCause.SPREAD: 8, PendingCause.UNKNOWN: 4}, 2)
    assert [each.name for each in found.pending_pods] == [f"w{number:02}" for number in range(10)]
    assert found.pending_since == SINCE


def test_claims_that_are_made_for_a_pod_are_its_own(monkeypatch):
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
    pods = [of_web(name, volumes=[volume]) for name in ("one", "two")]
    pods[0]["status"]["nominatedNodeName"] = "a0"
    monkeypatch.setattr(waiting_pods, "_MOST_DIFFERENT", 1)
    assert one("a: a0", web(HARD), WEB_1, *pods).pending[PendingCause.UNKNOWN] == 1


def test_the_oldest_that_waits_because_of_spread_may_not_be_the_oldest():
    pods = (
        PendingPod("w0", "uid-w0", "2026-11-01T00:00:00Z", PendingCause.CAPACITY),
        PendingPod("w1", "uid-w1", "", PendingCause.SPREAD),
        PendingPod("w2", "uid-w2", "2026-11-03T00:00:00Z", PendingCause.SPREAD),
        PendingPod("w3", "uid-w3", "2026-11-02T00:00:00Z", PendingCause.SPREAD),
    )
    found = one("a: a0=1", web(HARD), WEB_1)
    assert (found.oldest_for_spread, found.pending_fix) == (None, "")
    assert replace(found, pending_pods=pods).oldest_for_spread is pods[3]


def test_pods_that_are_deleted_wait_for_nothing():
    leaving = of_web("w")
    leaving["metadata"]["deletionTimestamp"] = SINCE
    assert one("a: a0=1 | b: -b0", web(HARD), WEB_1, leaving).pending == {}


def test_what_would_be_refused():
    strict = replace(
        PLAIN, ceiling=Mode.AUDIT, rules={"selector-not-self": Mode.DENY, "system-defaults-lost": Mode.OFF}
    )
    found = one("a: a0 | b: b0", web("zone hard 1 app=other"), policy=strict)
    assert found.would_deny == ("selector-not-self",)
    assert {str(each.mode) for each in found.findings} == {"audit"}
    exempted = web("zone hard 1 app=other")
    exempted["metadata"]["annotations"] = {"evenspread.io/exempt": "selector-not-self"}
    silent = replace(strict, annotations=Annotations(exempt="denials"))
    assert one("a: a0 | b: b0", exempted, policy=silent).would_deny == ()


OBSERVED = policy(default(when="ScheduleAnyway"), default(HOSTNAME, when="ScheduleAnyway"), mode="observe")


@pytest.mark.parametrize(
    ("made", "given", "expected"),
    [
        pytest.param(web(kind="StatefulSet"), OBSERVED, (2, 3), id="observed"),
        pytest.param(web(kind="StatefulSet"), policy(default(), mode="inject"), (1, 3), id="injected"),
        pytest.param(web(kind="StatefulSet"), policy(default(), mode="off"), (0, 0), id="off"),
        pytest.param(web(HARD, kind="StatefulSet"), OBSERVED, (0, 0), id="constraints of its own"),
        pytest.param(web(kind="StatefulSet", replicas=1), OBSERVED, (0, 0), id="one replica"),
        pytest.param(running("a0-0", "a0"), OBSERVED, (0, 0), id="a pod"),
        pytest.param(
            web("zone hard 1 null", kind="StatefulSet"),
            policy(default(), mode="observe", fill_null_selector=True),
            (1, 0),
            id="a selector",
        ),
    ],
)
def test_what_would_be_injected_and_what_runs_without(made, given, expected):
    spread = running("spread", "a0")
    spread["spec"]["topologySpreadConstraints"] = [
        {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ]
    leaving = running("leaving", "a0")
    leaving["metadata"]["deletionTimestamp"] = SINCE
    found = one("a: a0=1 | b: b0=2", made, spread, leaving, policy=given)
    assert (found.would_inject, found.lacking) == expected


def test_the_smallest_fix_of_pods_that_wait():
    found = one("a: a0=1 | b: -b0", web(HARD), WEB_1, of_web("w"))
    assert (found.fix.of, found.fix.text, found.pending_fix) == ("pending", "set maxSkew: 2", "set maxSkew: 2")
    assert found.fix.yaml == (
        "spec:\n  template:\n    spec:\n      topologySpreadConstraints:\n      - maxSkew: 2\n"
        "        topologyKey: topology.kubernetes.io/zone\n        whenUnsatisfiable: DoNotSchedule\n"
        "        labelSelector:\n          matchLabels:\n            app: web\n"
    )


def test_a_fix_of_pods_whose_template_is_elsewhere_is_words():
    found = one("a: a0=1 | b: -b0", waiting("w", HARD))
    assert (found.fix.of, found.fix.text, found.fix.yaml) == ("pending", "set maxSkew: 2", "")
    # Somebody else put the constraint into the pod.
    found = one("a: a0=1 | b: -b0", web(), WEB_1, of_web("w"))
    assert (found.fix.of, found.fix.yaml) == ("pending", "")


def test_pods_that_no_change_of_their_constraints_helps_have_no_fix_of_their_own():
    """The cluster's own default constraint is in the way."""
    hard = SchedulerProfile(defaulting_type="List", default_constraints=(constraint(),))
    given = replace(PLAIN, scheduler_profiles=(hard,))
    pod = waiting("w", owner="ReplicaSet/web-1")
    found = one("a: a0=1 | b: -b0", web(), WEB_1, pod, policy=given)
    assert (dict(found.pending), found.fix and found.fix.of) == ({"spread": 1}, None)


def test_of_several_templates_none_is_told_what_to_declare():
    template = web()["spec"]["template"]
    named = {"name": "t", "namespace": "shop", "uid": "u-t"}
    tree = {"apiVersion": "example.com/v1", "kind": "Tree", "metadata": named}
    tree["spec"] = {"pods": [{"replicas": 2, "template": template}, {"replicas": 2, "template": template}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": {"selector": {"app": "web"}}}
    of = ("example.com/v1", "Tree")
    kind = EmbeddedKind(api_version=of[0], kind=of[1], template_path="spec.pods[*].template", replicas_path="replicas")
    given = replace(OBSERVED, workloads=(kind,), defaults=replace(OBSERVED.defaults, owners=(of,)))
    found = one("a: a0 | b: b0", tree, service, policy=given)
    assert (found.wanted, found.would_inject, found.fix) == (4, 2, None)


def test_an_operators_object_has_no_pods_that_are_known():
    made = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "db", "namespace": "shop"}}
    made["spec"] = {"instances": 3, "topologySpreadConstraints": web(HARD)["spec"]["template"]["spec"][CONSTRAINTS]}
    found = one("a: a0 | b: b0", made)
    assert (found.wanted, found.skews, found.losses, found.would_inject) == (None, (), (), 0)


def test_a_fix_that_cannot_be_written_is_words(monkeypatch):
    def unwritable(*_of):
        raise LookupError

    monkeypatch.setattr(smallest_fix, "applied", unwritable)
    found = one("a: a0=1 | b: -b0", web(HARD), WEB_1, of_web("w"))
    assert (found.fix.text, found.fix.yaml) == ("set maxSkew: 2", "")


def test_a_field_that_goes_cannot_be_shown():
    found = one("a: a0 | b: b0", web("zone soft 1 app=web minDomains:2"))
    assert (found.fix.of, found.fix.text) == ("min-domains", "remove minDomains")
    assert "minDomains" not in found.fix.yaml


def test_the_smallest_fix_of_a_finding():
    found = one("a: a0 | b: b0", web("zone hard 1 app=other"), policy=DENY)
    assert (found.fix.of, found.fix.text, found.pending_fix) == ("selector-not-self", "use app=web", "")
    assert found.fix.yaml.endswith("matchLabels:\n            app: web\n")


def test_declaring_the_defaults_is_the_fix_of_who_has_none():
    found = one("a: a0=1 | b: b0=1", web(kind="StatefulSet"), policy=OBSERVED)
    assert (found.fix.of, found.fix.text) == ("defaults", "declare the configured defaults")
    assert found.fix.yaml.startswith("spec:\n  template:\n    spec:\n      topologySpreadConstraints:\n      - ")


def test_what_a_zone_costs_is_not_known_of_volumes_that_are_to_come():
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    made = web(HARD, kind="StatefulSet", spec=spec)
    found = one("a: a0=1 | b: b0=1", made)
    assert {(each.gone, each.costs) for each in found.losses} == {(Stranded(None, None), True)}
    other = workload("Deployment", "app=web", HARD, meta={"name": "other"}, replicas=4)
    known = next(each for each in scanned(snapshot("a: a0=1 | b: b0=1", made, other)).workloads if each.name == "other")
    totals = scanned(snapshot("a: a0=1 | b: b0=1", made, other)).zones
    assert [each.gone for each in totals] == [Stranded(each.gone.fewest, None) for each in known.losses]


def test_of_very_many_domains_those_with_pods_are_listed():
    hosts = " ".join(f"n{number:03}={number // 100}" for number in range(102))
    (skew,) = one(f"a: {hosts}", web("hostname hard 1 app=web")).skews
    assert (dict(skew.domains), skew.empty, skew.skew) == ({"n100": 1, "n101": 1}, 100, 1)
    assert (skew.eligible, skew.fewest, skew.most) == (102, 0, 1)


def test_without_nodes_nothing_is_said_of_pods():
    data = lines({"kind": "Snapshot", "missing": {"nodes": "403 Forbidden"}}, web(HARD), running("w", "a0"))
    scan = scanned(data)
    of_web_ = next(each for each in scan.workloads if each.kind == "Deployment")
    assert (of_web_.wanted, of_web_.pods, of_web_.skews, of_web_.losses) == (3, None, (), ())
    assert scan.lacks["nodes"] == "403 Forbidden"
    assert any(each.missing == "nodes: 403 Forbidden" for each in scan.gaps)
    alone = cluster_scan((), scan_context(Context(policy=PLAIN, version=(1, 37), now=TODAY)))
    assert (alone.nodes, alone.pods, alone.zones) == (0, 0, ())


def test_an_object_without_pods_is_no_workload():
    assert scan_workload(b'{"apiVersion": "v1", "kind": "Node"}', IN_ONE_ZONE) is None


def test_an_object_that_cannot_be_read():
    broken = web()
    broken["spec"]["replicas"] = "three"
    found = scan_workload(json.dumps(broken).encode(), IN_ONE_ZONE)
    assert (found.readable, [each.finding.rule for each in found.findings]) == (False, ["wrong-type"])


@pytest.mark.parametrize(
    ("constraints", "looked_at"),
    [
        pytest.param([f"rack-{each} soft 1 app=other" for each in range(16)], True, id="as many as rules look at"),
        pytest.param([f"rack-{each} soft 1 app=other" for each in range(200)], False, id="more"),
    ],
)
def test_a_workload_that_says_more_than_people_do_is_not_looked_at(constraints, looked_at):
    """Rules compare constraints with each other, and with what a fix would make of them: for minutes."""
    began = time.process_time()
    found = one("a: a0=1", web(*constraints, replicas=3))
    assert time.process_time() - began < 3
    assert (found.name, found.wanted, bool(found.findings)) == ("web", 3, looked_at)
    told = {each.missing for each in found.not_evaluated}
    assert ("more than 128 constraints" in told) is not looked_at


def test_what_raises_on_one_workload_keeps_no_answer_back(monkeypatch):
    broken = replace(PLAIN, messages=Raising())
    made = workload("Deployment", "app=web part=shop", "zone hard 0 part=shop", meta={"uid": "u-web"})
    pods = [running(name, "a0") for name in ("one", "two")]
    for each in pods:
        each["metadata"]["labels"] = {"app": "pay", "part": "shop"}
    pay = workload("Deployment", "app=pay part=shop", selector="app=pay", meta={"name": "pay"})
    found = one("a: a0 | b: b0", made, pay, *pods, policy=broken)
    assert [each.part for each in found.failures] == ["selector-too-wide"]
    assert "max-skew" in {each.finding.rule for each in found.findings}

    def raising(*_of, **_more):
        raise RuntimeError

    for name in ("zone_losses", "waiting_pods", "to_inject", "actual_skews", "fix_for_findings", "next_pods"):
        with monkeypatch.context() as patched:
            patched.setattr(workload_scan, name, raising)
            found = one("a: a0=1 | b: b0", web("zone hard 1 app=other", kind="StatefulSet"))
            assert len(found.failures) == 1, name
            assert found.findings, name
    monkeypatch.setattr(workload_scan, "examine", raising)
    found = one("a: a0=1 | b: b0", web(HARD))
    assert ([each.part for each in found.failures], found.findings) == (["review"], ())


def test_the_worst_comes_first():
    stuck, calm = web(HARD), workload("Deployment", "app=calm", selector="app=calm", meta={"name": "calm"})
    skewed = workload("Deployment", "app=far", "zone hard 1 app=far", selector="app=far", meta={"name": "far"})
    far = [running(f"far-{number}", "a0") for number in range(3)]
    for each in far:
        each["metadata"]["labels"] = {"app": "far"}
    scan = scanned(snapshot("a: a0=1 | b: -b0", calm, skewed, stuck, WEB_1, of_web("w"), *far))
    assert [each.name for each in scan.workloads if each.kind == "Deployment"] == ["web", "far", "calm"]
    assert (scan.nodes, scan.pods, dict(scan.pending)) == (2, 5, {"spread": 1})


def test_as_json():
    scan = scanned(snapshot("a: a0=1 | b: -b0", web(HARD), WEB_1, of_web("w", since=SINCE)))
    values = json.loads(msgspec.json.encode(scan_document(scan, scan.workloads)))
    found = values["workloads"][0]
    assert values["pending"] == {"spread": 1}
    assert found["pendingPods"] == [{"name": "w", "uid": "uid-w", "since": SINCE, "cause": "spread"}]
    assert found["fix"] == {"of": "pending", "text": "set maxSkew: 2", "yaml": scan.workloads[0].fix.yaml}
    assert [each["zone"] for each in values["zones"]] == ["a", "b"]
    assert [each.zone for each in scan.workloads[0].losses if each.costs] == ["a", "b"]
    assert found["zoneLosses"][0]["pendingIfGone"] == {"fewest": 3, "most": 3}
