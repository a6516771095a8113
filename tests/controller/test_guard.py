"""The scale-in guard beside the fake API server: only the annotation is written, and nothing stays after an opt-out."""

import contextlib
import itertools

import pytest
from cluster.api import refuse
from controller.town import HARD, NOW, Replica, add_workload, figures, owned_by
from msgspec.structs import replace

from webhook.cluster.errors import RefusedError
from webhook.controller import guard
from webhook.controller.bounds import COST_RATES, Allowance, Rate
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Policy

COST = "controller.kubernetes.io/pod-deletion-cost"
GUARD = Policy(scale_in=ScaleIn.GUARD)
NINE = ["n-a", "n-b", "n-c"] * 3
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}]}


@contextlib.contextmanager
def guarding(api, folder, *, reports=False):
    """A replica with the guard, whose limits follow its own clock."""
    with Replica(api, folder, reports=reports, guard=True) as replica:
        limit(replica, *COST_RATES)
        replica.policy = GUARD
        yield replica


def limit(replica, *rates):
    replica.scanner.guard._allowance = Allowance(*rates, lambda: replica.now)


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    with guarding(api, tmp_path) as replica:
        yield replica


def add(api, places, name="web", namespace="shop", **meta):
    """A Deployment with a ReplicaSet, and ready pods on these nodes."""
    constraint = {**HARD, "labelSelector": {"matchLabels": {"app": name}}}
    made = add_workload(api, name, namespace, replicas=len(places), constraint=constraint, app=name)
    made = api.put("deployments", name, namespace, metadata=meta, spec=made["spec"])
    of_set = {"labels": {"app": name}, "ownerReferences": owned_by(made)}
    rs = api.put("replicasets", f"{name}-1", namespace, metadata=of_set, spec=made["spec"])
    for number, node in enumerate(places):
        put_pod(api, f"{name}-{number}", node, rs, app=name, namespace=namespace)


def put_pod(api, pod, node, rs, *, app="web", namespace="shop", **meta):
    spec = {"containers": [{"name": "c", "image": "busybox"}], "nodeName": node}
    meta = {"labels": {"app": app}, "creationTimestamp": NOW, "ownerReferences": owned_by(rs), **meta}
    api.put("pods", pod, namespace, metadata=meta, spec=spec, status=READY)


def scale_ins(api):
    """What reports say of scale-ins: policy, worst skew, state of the guard."""
    found = [one for each in api.objects["reports"].values() for one in each["results"]]
    said = [(each["policy"], each["properties"]) for each in found]
    return [(policy, had["scaleInWorstSkew"], had["scaleInGuard"]) for policy, had in said if "scaleInWorstSkew" in had]


def inactive(api):
    """Why reports call the guard of each workload inactive, and no other entry."""
    found = [one["properties"] for each in api.objects["reports"].values() for one in each["results"]]
    return [each["scaleInInactive"] for each in found if "scaleInInactive" in each]


def costs(api):
    """The cost of each pod with one."""
    pods = api.objects["pods"].items()
    found = {name: (pod["metadata"].get("annotations") or {}).get(COST) for (_, name), pod in pods}
    return {name: int(cost) for name, cost in found.items() if cost is not None}


def settle(replica, turns=6):
    for _ in range(turns):
        replica.turn(10)


def opt_out(replica):
    """Guard no workload, and wait."""
    replica.policy = Policy()
    replica.scans()
    settle(replica)


def test_each_step_of_a_scale_in_keeps_the_zones_even(api, replica):
    add(api, NINE)
    replica.scans()
    settle(replica)
    written = costs(api)
    nodes = [api.objects["pods"]["shop", name]["spec"]["nodeName"] for name in sorted(written, key=written.get)]
    assert [sorted(nodes[begin : begin + 3]) for begin in (0, 3, 6)] == [["n-a", "n-b", "n-c"]] * 3
    measured = figures(replica)
    assert measured["evenspread_scale_in_guarded",] == 1
    assert measured["evenspread_scale_in_worst_skew", "shop", "Deployment", "web"] == 1
    assert measured["evenspread_scale_in_writes_total", "written"] == 9


@pytest.mark.parametrize(
    ("policy", "places", "expected"),
    [
        pytest.param(Policy(), NINE, None, id="off"),
        pytest.param(Policy(scale_in=ScaleIn.REPORT), NINE, ("spread-scale-in", "3", "report"), id="report"),
        pytest.param(Policy(scale_in=ScaleIn.REPORT), NINE[:3], None, id="no scale-in exceeds maxSkew"),
        pytest.param(GUARD, NINE, None, id="guarded within maxSkew"),
        pytest.param(GUARD, ["n-a"] * 3, ("spread-drift", "2", "guarded"), id="guarded, and uneven today"),
    ],
)
@pytest.mark.sampled
def test_the_report_has_the_worst_scale_in(api, tmp_path, policy, places, expected):
    add(api, places)
    writes = []
    for _ in range(2):  # the next leader writes nothing
        with guarding(api, tmp_path, reports=True) as replica:
            replica.policy = policy
            replica.scans()
            settle(replica)
            replica.scans()
            assert scale_ins(api) == ([expected] if expected else [])
            writes.append(sum(replica.scanner.reports.writes.values()))
            (shown,) = [each for each in replica.scanner.latest.scan.workloads if each.name == "web"]
    assert writes == [1, 0]  # of a report with other findings
    assert (shown.scale_in is None) == (policy == Policy())


def test_the_report_follows_the_guard(api, tmp_path):
    add(api, NINE)
    with guarding(api, tmp_path, reports=True) as replica:
        api.strike("write", refuse(409), resource="pods")
        replica.scans()
        assert scale_ins(api) == []
        api.strike("write", refuse(500), resource="pods")
        settle(replica, 1)
        assert scale_ins(api) == [("spread-scale-in", "3", "requested")]
        assert inactive(api) == ["the last attempt failed (see the controller's log)"]
        settle(replica)
        assert (scale_ins(api), inactive(api)) == ([], [])
        pod = api.objects["pods"]["shop", "web-0"]
        rows = [{"manager": "karpenter", "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{COST}": {}}}}}]
        api.put("pods", "web-0", "shop", **{**pod, "metadata": {**pod["metadata"], "managedFields": rows}})
        replica.scans()
        settle(replica)
        assert (scale_ins(api), inactive(api)) == ([("spread-scale-in", "3", "stopped")], [])
        (shown,) = [each.scale_in.guard for each in replica.scanner.latest.scan.workloads]
        assert shown == "stopped"
        opt_out(replica)
        assert scale_ins(api) == []


def switched_off(replica, *_):
    replica.scanner.guard.enabled = False


def second_replica_set(_replica, api, _monkeypatch):
    rs = api.put("replicasets", "web-2", "shop", metadata={"labels": {"app": "web"}}, spec={})
    put_pod(api, "web-new", "n-a", rs)


def no_time(_replica, _api, monkeypatch):
    monkeypatch.setattr(guard, "_PLAN_SECONDS", 0.05)
    monkeypatch.setattr(guard, "removal_plan", lambda *_: [None for _ in iter(int, 1)])


def refusing(_replica, api, _monkeypatch):
    refused = refuse(403, 'pods "web-0" is forbidden: ValidatingAdmissionPolicy denied request')
    api.strike("write", refused, resource="pods", times=10**6)


def unready(_replica, api, _monkeypatch):
    for number in range(9):
        pod = api.objects["pods"]["shop", f"web-{number}"]
        api.put("pods", f"web-{number}", "shop", **{**pod, "status": {"phase": "Running"}})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda *_: None, None, id="active"),
        pytest.param(switched_off, "controller.scaleIn.guard is false in the chart's values", id="switched off"),
        pytest.param(second_replica_set, "its pods have several ReplicaSets, as in a rollout", id="a rollout"),
        pytest.param(
            lambda _replica, _api, monkeypatch: monkeypatch.setattr(guard, "_MOST_PODS", 5),
            "it has more than 500 pods",
            id="too large",
        ),
        pytest.param(no_time, "the order of removal takes too long to compute", id="too long"),
        pytest.param(refusing, "the API server refuses deletion costs", id="refused writes"),
        pytest.param(unready, "no constraint counts its ready pods", id="no ready pod"),
    ],
)
@pytest.mark.sampled
def test_the_report_has_the_reason_of_an_inactive_guard(api, tmp_path, monkeypatch, change, reason):
    add(api, NINE)
    with guarding(api, tmp_path, reports=True) as replica:
        change(replica, api, monkeypatch)
        replica.scans()
        settle(replica)
        replica.scans()
        assert inactive(api) == ([reason] if reason else [])


def test_a_report_waits_up_to_a_minute_for_a_guard_without_budget(api, tmp_path):
    for name in ("busy", "web"):
        add(api, NINE, name)
    for rate in (COST_RATES[0], Rate(a_minute=0, burst=0)):
        with guarding(api, tmp_path, reports=True) as replica:
            limit(replica, rate, rate)
            replica.scans()
            settle(replica, 5)
            assert scale_ins(api) == []
        api.objects["pods"]["shop", "busy-0"]["metadata"].pop("annotations", None)  # work for the next leader


def test_a_report_names_a_wait_of_a_minute_for_the_budget(api, tmp_path):
    for name in ("one", "two"):
        add(api, NINE, name)
    reports, one_a_turn = [], Rate(a_minute=6, burst=1)
    with guarding(api, tmp_path, reports=True) as replica:
        limit(replica, one_a_turn, one_a_turn)
        replica.scans()
        for _ in range(20):
            settle(replica, 1)
            reports.append(scale_ins(api))
    waiting = ("spread-scale-in", "3", "waiting")
    assert [entries for entries, _ in itertools.groupby(reports)] == [[], [waiting] * 2, [waiting], []]
    assert reports.index([waiting] * 2) >= 5  # turns of 10 seconds


def test_an_unchanged_workload_is_not_written_again(api, replica):
    add(api, NINE)
    replica.scans()
    settle(replica)
    replica.scans()
    settle(replica)
    assert len(api.pod_writes) == 9


def test_only_the_annotation_is_sent(api, replica):
    add(api, NINE[:1])
    replica.scans()
    settle(replica)
    (sent,) = api.pod_writes
    uid = api.objects["pods"]["shop", "web-0"]["metadata"]["uid"]
    meta = {"name": "web-0", "namespace": "shop", "uid": uid, "annotations": {COST: str(costs(api)["web-0"])}}
    assert sent == {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    assert api.objects["pods"]["shop", "web-0"]["status"] == READY


@pytest.mark.parametrize(
    ("policy", "meta"),
    [
        pytest.param(Policy(), {}, id="off"),
        pytest.param(Policy(scale_in=ScaleIn.REPORT), {}, id="report"),
        pytest.param(GUARD, {"annotations": {"evenspread.io/scale-in": "off"}}, id="the workload opts out"),
    ],
)
def test_without_opt_in_no_pod_is_written(api, replica, policy, meta):
    replica.policy = policy
    add(api, NINE, **meta)
    replica.scans()
    settle(replica)
    assert api.pod_writes == []


def test_a_reported_workload_has_the_worst_skew_of_any_order(api, replica):
    replica.policy = Policy(scale_in=ScaleIn.REPORT)
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert figures(replica)["evenspread_scale_in_worst_skew", "shop", "Deployment", "web"] == 3


def test_without_the_option_nothing_is_written(api, tmp_path):
    with Replica(api, tmp_path, reports=False) as replica:
        replica.policy = GUARD
        add(api, NINE)
        replica.scans()
        settle(replica)
        assert api.pod_writes == []
        assert figures(replica)["evenspread_scale_in_worst_skew", "shop", "Deployment", "web"] == 3


def test_an_opt_out_removes_all_costs(api, replica):
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert len(costs(api)) == 9
    opt_out(replica)
    assert costs(api) == {}
    assert figures(replica)["evenspread_scale_in_guarded",] == 0


def test_the_next_leader_removes_the_costs_of_the_last(api, tmp_path):
    add(api, NINE)
    for policy, expected in ((GUARD, 9), (Policy(), 0)):
        with guarding(api, tmp_path) as replica:
            replica.policy = policy
            replica.scans()
            settle(replica)
            assert len(costs(api)) == expected


def test_a_replica_without_the_lease_writes_nothing(api, replica):
    add(api, NINE)
    replica.scans()
    before = len(api.pod_writes)
    replica.leads = False
    settle(replica)
    assert len(api.pod_writes) == before


@pytest.mark.parametrize("manager", ["karpenter", "kube-controller-manager"])
def test_another_writer_stops_the_guard_of_the_workload(api, replica, manager):
    add(api, NINE)
    add(api, NINE, "other")
    replica.scans()
    settle(replica)
    pod = api.objects["pods"]["shop", "web-0"]
    rows = [{"manager": manager, "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{COST}": {}}}}}]
    meta = {**pod["metadata"], "annotations": {COST: "5"}, "managedFields": rows}
    api.put("pods", "web-0", "shop", **{**pod, "metadata": meta})
    replica.scans()
    settle(replica)
    kept = costs(api)
    assert {name for name in kept if name.startswith("web")} == {"web-0"}
    assert (kept["web-0"], len(kept)) == (5, 10)
    measured = figures(replica)
    assert (measured["evenspread_scale_in_guarded",], measured["evenspread_scale_in_stopped",]) == (1, 1)
    reasons = [made["reason"] for made in api.objects["events"].values()]
    assert reasons.count("ScaleInUnguarded") == 1


def test_a_conflict_is_tried_again(api, replica):
    add(api, NINE)
    api.strike("write", refuse(409), resource="pods")
    replica.scans()
    settle(replica)
    assert len(costs(api)) == 9
    assert replica.scanner.guard.writes["conflict"] == 1


def test_a_throttled_guard_waits(api, replica):
    add(api, NINE)
    api.strike("write", refuse(429, "Too many requests", Retry_After="20"), resource="pods")
    replica.scans()
    settle(replica, 1)
    assert "scale-in guard: " in replica.scanner.guard.fault
    assert costs(api) == {}
    settle(replica)
    assert (len(costs(api)), replica.scanner.guard.fault) == (9, "")


def test_a_rollout_is_left_alone(api, replica):
    add(api, NINE[:3])
    rs = api.put("replicasets", "web-2", "shop", metadata={"labels": {"app": "web"}}, spec={})
    put_pod(api, "web-new", "n-a", rs)
    replica.scans()
    settle(replica)
    assert api.pod_writes == []


def test_pods_that_are_not_ready_or_not_counted_are_left_to_upstream(api, replica):
    add(api, NINE)
    for name, change in (("web-0", {"status": {"phase": "Running"}}), ("web-4", {"spec": {"nodeName": "n-gone"}})):
        api.put("pods", name, "shop", **{**api.objects["pods"]["shop", name], **change})
    replica.scans()
    settle(replica)
    assert {*costs(api)} == {f"web-{number}" for number in range(1, 9)}


def test_pods_that_the_index_does_not_know_yet_are_waited_for(api, replica, monkeypatch):
    def listed(*place):
        for pod in costed_pods(*place):
            yield pod
            if len(place) > 1 and early:
                active = [replace(pod.active, name=f"{pod.name}-{number}") for number in range(9)]
                yield from (replace(pod, active=each) for each in active)

    costed_pods, early = guard.costed_pods, [True]
    monkeypatch.setattr(guard, "costed_pods", listed)
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert api.pod_writes == []
    early.clear()
    settle(replica)
    assert len(costs(api)) == 9


def test_the_default_constraints_of_the_scheduler_are_guarded_too(api, replica):
    add(api, NINE)
    for (_, name), pod in [*api.objects["pods"].items()]:
        labels = {**pod["metadata"]["labels"], "pod-template-hash": "1"}
        api.put("pods", name, "shop", **{**pod, "metadata": {**pod["metadata"], "labels": labels}})
    rs = api.objects["replicasets"]["shop", "web-1"]
    labels = {"app": "web", "pod-template-hash": "1"}
    selecting = {**rs["spec"], "selector": {"matchLabels": labels}}
    api.put(
        "replicasets", "web-1", "shop", **{**rs, "metadata": {**rs["metadata"], "labels": labels}, "spec": selecting}
    )
    deployment = api.objects["deployments"]["shop", "web"]
    deployment["spec"]["template"]["spec"].pop("topologySpreadConstraints")
    api.put("deployments", "web", "shop", **deployment)
    replica.scans()
    settle(replica)
    assert len(costs(api)) == 9


def test_a_workload_that_always_fails_delays_no_other(api, replica):
    def fault(handler, write):
        return write.name.startswith("bad") and refuse(500, "failed calling webhook")(handler, write)

    api.strike("write", fault, resource="pods", times=10**6)
    add(api, NINE, "bad")
    add(api, NINE)
    replica.scans()
    settle(replica, 20)
    assert {name.partition("-")[0] for name in costs(api)} == {"web"}
    assert "500" in replica.scanner.guard.fault


def test_refused_writes_guard_nothing(api, replica, monkeypatch):
    refusing(replica, api, monkeypatch)
    add(api, NINE)
    replica.scans()
    settle(replica)
    measured = figures(replica)
    assert measured["evenspread_scale_in_guarded",] == 0
    assert measured["evenspread_scale_in_worst_skew", "shop", "Deployment", "web"] == 3
    assert measured["evenspread_scale_in_writes_total", "refused"] == 9


def listing(monkeypatch, change):
    """Change what a list of pods of all namespaces yields."""
    costed_pods = guard.costed_pods
    listed = lambda *place: costed_pods(*place) if len(place) > 1 else change(costed_pods(*place))  # noqa: E731
    monkeypatch.setattr(guard, "costed_pods", listed)


def test_pods_that_are_gone_meanwhile_do_not_keep_the_costs_of_others(api, replica, monkeypatch):
    def with_a_gone_pod(pods):
        first, *others = pods
        return [replace(first, name="gone", uid="gone"), first, *others]

    listing(monkeypatch, with_a_gone_pod)
    add(api, NINE)
    replica.scans()
    settle(replica)
    opt_out(replica)
    assert (costs(api), replica.scanner.guard.writes["conflict"]) == ({}, 0)


def test_a_broken_list_of_pods_is_repeated_whole(api, replica, monkeypatch):
    def breaks_once(pods):
        for number, pod in enumerate([*pods]):
            if number == 3 and not broken:
                broken.append(pod)
                raise RefusedError(503, "unavailable")
            yield pod

    broken = []
    listing(monkeypatch, breaks_once)
    add(api, NINE)
    replica.scans()
    settle(replica)
    opt_out(replica)
    assert (costs(api), len(broken)) == ({}, 1)


def test_an_opt_out_removes_the_costs_of_pods_that_left_their_workload(api, replica):
    add(api, NINE)
    replica.scans()
    settle(replica)
    pod = api.objects["pods"]["shop", "web-0"]
    meta = {**pod["metadata"], "labels": {"app": "isolated"}, "ownerReferences": []}
    api.put("pods", "web-0", "shop", **{**pod, "metadata": meta})
    opt_out(replica)
    assert costs(api) == {}


@pytest.mark.parametrize("most", [5, 500])
def test_no_cost_stays_on_a_workload_that_grows_too_large(api, replica, monkeypatch, most):
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert len(costs(api)) == 9
    monkeypatch.setattr(guard, "_MOST_PODS", most)
    api.put("deployments", "web", "shop", **{**api.objects["deployments"]["shop", "web"], "status": {"replicas": 9}})
    replica.scans()
    settle(replica)
    assert len(costs(api)) == (9 if most > 9 else 0)


def test_an_order_that_takes_too_long_is_given_up(api, replica, monkeypatch):
    no_time(replica, api, monkeypatch)
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert (costs(api), figures(replica)["evenspread_scale_in_guarded",]) == ({}, 0)


def test_pods_without_the_replica_set_do_not_disable_the_guard(api, replica):
    add(api, NINE)
    spec = {"containers": [{"name": "c", "image": "busybox"}], "nodeName": "n-a"}
    api.put("pods", "stray", "shop", metadata={"labels": {"app": "web"}}, spec=spec, status=READY)
    replica.scans()
    settle(replica)
    assert {*costs(api)} == {f"web-{number}" for number in range(9)}


def test_the_writes_stay_within_the_budget(api, replica):
    for number in range(8):
        add(api, NINE, f"web{number}")
    few = Rate(a_minute=0, burst=20)
    limit(replica, few, few)
    replica.scans()
    settle(replica)
    assert len(api.pod_writes) == 20
    assert replica.scanner.guard.writes["postponed"] > 0


def test_a_new_leader_begins_without_a_burst(api, replica):
    limit(replica, Rate(a_minute=0, burst=20), Rate(a_minute=0, burst=20))
    add(api, NINE)
    replica.leads = False
    replica.turn()
    replica.leads = True
    replica.scans()
    settle(replica)
    assert api.pod_writes == []


SLOW = Rate(a_minute=30, burst=5)  # 5 costs in each turn


@pytest.mark.parametrize(
    "rates",
    [pytest.param((SLOW, COST_RATES[1]), id="cluster"), pytest.param((COST_RATES[0], SLOW), id="namespace")],
)
def test_a_workload_beyond_a_limit_is_completed_before_others_are_read(api, replica, rates):
    names = [f"web{number}" for number in range(3)]
    for name in names:
        add(api, NINE, name)
    limit(replica, *rates)
    replica.scans()
    writes, incomplete, postponed = replica.scanner.guard.writes, [], []
    for _ in range(6):
        before = writes["postponed"]
        settle(replica, 1)
        postponed.append(writes["postponed"] - before)
        written = [name.partition("-")[0] for name in costs(api)]
        incomplete.append(sum(0 < written.count(name) < 9 for name in names))
    assert (max(incomplete), max(postponed), len(costs(api))) == (1, 1, 27)


def test_a_bug_stops_one_workload_only(api, replica, monkeypatch):
    def plan(ready, limits):
        if any(pod.name.startswith("bad") for pod in ready):
            raise ZeroDivisionError
        return removal_plan(ready, limits)

    removal_plan = guard.removal_plan
    monkeypatch.setattr(guard, "removal_plan", plan)
    add(api, NINE, "bad")
    add(api, NINE)
    replica.scans()
    settle(replica)
    assert {name.partition("-")[0] for name in costs(api)} == {"web"}
