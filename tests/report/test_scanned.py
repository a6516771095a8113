"""What a report and an event say of a workload that was scanned."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.test_documents import judged

from webhook.core.scan.scan_results import (
    ActualSkew,
    GuardState,
    Origin,
    PendingCause,
    PendingPod,
    ScaleInState,
    ScannedWorkload,
    SmallestFix,
)
from webhook.report.documents import ReportApi, content_hash, report
from webhook.report.scanned import event, notices, report_content

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def skew(**fields):
    told = {
        "topology_key": ZONE,
        "when_unsatisfiable": "DoNotSchedule",
        "selector": "app=web",
        "max_skew": 1,
        "min_domains": None,
        "domains": {"a": 4, "b": 1, "c": 0},
        "global_minimum": 0,
        "skew": 4,
        "origin": Origin.DECLARED,
        "name": "zone[0]",
        "path": "spec.template.spec.topologySpreadConstraints[0]",
    }
    return ActualSkew(**told | fields)


def scanned(**fields):
    told = {"api_version": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u1"}
    return ScannedWorkload(**told | fields)


def waiting(seconds=120, cause=PendingCause.SPREAD, name="web-1"):
    since = (NOON - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return PendingPod(name, f"uid-{name}", since, cause)


def document(workload):
    made = report_content(workload)
    return made and report(made, ReportApi.OPEN_REPORTS, 1)


def said(workload):
    return [(each.reason, each.note) for each in notices(workload, NOON)]


class TestReport:
    @pytest.mark.parametrize(
        "workload",
        [
            scanned(),
            scanned(uid="", findings=(judged(),)),
            scanned(skews=(skew(skew=1),)),
            scanned(skews=(skew(origin=Origin.DEFAULT),)),
            scanned(pending={PendingCause.CAPACITY: 3}),
            scanned(skews=(skew(skew=1),), scale_in=ScaleInState(worst_skew=1, above=False, guard=GuardState.GUARDED)),
        ],
        ids=[
            "clean",
            "from a manifest",
            "within its limit",
            "the scheduler's own defaults",
            "for another reason",
            "within its limit after any scale-in",
        ],
    )
    def test_none(self, workload):
        assert document(workload) is None

    def test_of_drift(self):
        (result,) = document(scanned(skews=(skew(),)))["results"]
        assert (result["policy"], result["severity"], result["result"]) == ("spread-drift", "medium", "warn")
        assert result["message"] == "zone[0] a 4, b 1, c 0: skew 4 is above maxSkew 1"
        properties = {**result["properties"]}
        properties.pop("resultID")
        assert properties == {
            "path": "spec.template.spec.topologySpreadConstraints[0]",
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "maxSkew": "1",
            "skew": "4",
            "domains": "a 4, b 1, c 0",
            "otherPods": "0",
            "origin": "declared",
        }

    def test_pods_of_other_workloads_are_told(self):
        (result,) = document(scanned(skews=(skew(others={"a": 3}, own={"a": 1, "b": 1}),)))["results"]
        told = "zone[0] a 4, b 1, c 0 (3 of 5 counted pods belong to other workloads): skew 4 is above maxSkew 1"
        assert (result["message"], result["properties"]["otherPods"]) == (told, "3")

    def test_soft_drift_is_less_severe(self):
        (result,) = document(scanned(skews=(skew(when_unsatisfiable="ScheduleAnyway"),)))["results"]
        assert result["severity"] == "low"

    @pytest.mark.parametrize(
        ("worst", "guard", "message"),
        [
            pytest.param(3, "report", "a scale-in can leave skew 3, above maxSkew", id="only reported"),
            pytest.param(
                3,
                "requested",
                "a scale-in can leave skew 3, above maxSkew; the guard is requested, but not known to be active",
                id="unguarded",
            ),
            pytest.param(
                3,
                "waiting",
                "a scale-in can leave skew 3, above maxSkew; not guarded yet, because of the controller's limit of "
                "writes per minute",
                id="waiting",
            ),
            pytest.param(
                2,
                "guarded",
                "a scale-in can leave skew 2, above maxSkew; the guard found no better order of removal",
                id="no order keeps maxSkew",
            ),
            pytest.param(
                3,
                "stopped",
                "a scale-in can leave skew 3, above maxSkew; not guarded, because another program writes "
                "controller.kubernetes.io/pod-deletion-cost of the pods",
                id="another writer",
            ),
            pytest.param(
                1,
                "stopped",
                "a scale-in can leave skew 1; not guarded, because another program writes "
                "controller.kubernetes.io/pod-deletion-cost of the pods",
                id="another writer, and within maxSkew",
            ),
        ],
    )
    def test_a_scale_in_that_can_leave_an_even_workload_uneven(self, worst, guard, message):
        state = ScaleInState(worst_skew=worst, above=worst > 1, guard=GuardState(guard))
        (result,) = document(scanned(skews=(skew(skew=1),), scale_in=state))["results"]
        assert (result["policy"], result["severity"], result["result"]) == ("spread-scale-in", "low", "warn")
        assert result["message"] == message
        properties = {**result["properties"]}
        properties.pop("resultID")
        assert properties == {"scaleInWorstSkew": str(worst), "scaleInGuard": guard}

    def test_the_reason_of_an_inactive_guard(self):
        state = ScaleInState(worst_skew=3, above=True, guard=GuardState.REQUESTED, inactive="it has more than 500 pods")
        (result,) = document(scanned(skews=(skew(skew=1),), scale_in=state))["results"]
        message = "a scale-in can leave skew 3, above maxSkew; the guard is inactive: it has more than 500 pods"
        assert (result["message"], result["properties"]["scaleInInactive"]) == (message, state.inactive)

    @pytest.mark.parametrize("guard", [*GuardState])
    def test_drift_has_the_worst_scale_in_too(self, guard):
        state = ScaleInState(worst_skew=5, above=True, guard=guard)
        (result,) = document(scanned(skews=(skew(),), scale_in=state))["results"]
        assert result["policy"] == "spread-drift"
        assert (result["properties"]["scaleInWorstSkew"], result["properties"]["scaleInGuard"]) == ("5", guard)

    def test_nodes_are_not_named(self):
        nodes = {f"node-{number}": number for number in range(5)}
        many = {f"rack-{number}": 1 for number in range(40)}
        made = document(
            scanned(skews=(skew(topology_key=HOST, domains=nodes), skew(topology_key="rack", domains=many)))
        )
        assert [each["properties"]["domains"] for each in made["results"]] == [
            "0 to 4 in 5 domains",
            "1 to 1 in 40 domains",
        ]

    @pytest.mark.parametrize("key", [HOST, "rack"])
    def test_of_many_domains_the_empty_ones_count(self, key):
        made = document(scanned(skews=(skew(topology_key=key, domains={"n1": 1, "n2": 2}, empty=4998),)))
        assert made["results"][0]["properties"]["domains"] == "0 to 2 in 5,000 domains"

    def test_of_pods_that_wait(self):
        fix = SmallestFix(of="pending", text="nodeTaintsPolicy: Honor")
        pods = (waiting(7200, PendingCause.CAPACITY, "web-0"), waiting(3600), waiting(60, name="web-2"))
        told = {PendingCause.SPREAD: 2, PendingCause.CAPACITY: 1}
        made = document(scanned(pending=told, pending_since=pods[0].since, pending_pods=pods, fix=fix))
        (result,) = made["results"]
        assert (result["policy"], result["result"]) == ("spread-infeasible", "fail")
        assert result["message"] == "2 pods Pending: no node fits because of their own spread constraints"
        assert result["properties"]["since"] == "2026-11-23T11:00:00Z"
        assert result["properties"]["fix"] == "nodeTaintsPolicy: Honor"

    def test_a_fix_of_something_else_and_a_time_that_nobody_knows_are_left_out(self):
        fix = SmallestFix(of="selector-not-self", text="labelSelector: {}")
        (result,) = document(scanned(pending={PendingCause.SPREAD: 2}, fix=fix))["results"]
        assert {"since", "fix"} & result["properties"].keys() == set()

    def test_time_alone_is_no_change(self):
        made = report_content(scanned(findings=(judged(),), skews=(skew(),)))
        first, later = (report(made, ReportApi.OPEN_REPORTS, seconds) for seconds in (1, 2))
        assert first != later
        assert content_hash(first) == content_hash(later)
        stored = {**later, "metadata": {**later["metadata"], "resourceVersion": "7", "managedFields": []}}
        assert content_hash(stored) == content_hash(first)
        other = report_content(scanned(uid="u2", findings=(judged(),), skews=(skew(),)))
        assert content_hash(report(other, ReportApi.OPEN_REPORTS, 1)) != content_hash(first)


class TestNotices:
    @pytest.mark.parametrize(
        "workload",
        [
            scanned(),
            scanned(findings=(judged("audit"), judged("warn", waived="exempted: x"))),
            scanned(skews=(skew(when_unsatisfiable="ScheduleAnyway"), skew(skew=None))),
            scanned(
                pending_pods=(waiting(59), waiting(cause=PendingCause.CAPACITY), PendingPod("x", "u", "?", "spread"))
            ),
        ],
        ids=["clean", "recorded only", "soft, or unknown", "not long, or for another reason"],
    )
    def test_none(self, workload):
        assert said(workload) == []

    def test_violations_are_one(self):
        found = (judged(summary="counts app=x", remedy="use app=web"), judged("deny", rule="max-skew"))
        workload = scanned(findings=found)
        assert said(workload) == [("SpreadViolation", "selector-not-self: counts app=x; use app=web (1 more)")]
        (notice,) = notices(workload, NOON)
        assert notice.keys == {"selector-not-self", "max-skew"}

    def test_one_without_a_remedy(self):
        assert said(scanned(findings=(judged(),))) == [("SpreadViolation", "selector-not-self: 2 of 7")]

    def test_drift(self):
        assert said(scanned(skews=(skew(),))) == [("SpreadDrift", "zone[0] a 4, b 1, c 0: skew 4 is above maxSkew 1")]

    def test_a_pod_that_waits_is_told_of_itself(self):
        workload = scanned(
            pending_pods=(waiting(60), waiting(90, name="web-2")),
            skews=(skew(), skew(when_unsatisfiable="ScheduleAnyway")),
            fix=SmallestFix(of="pending", text="nodeTaintsPolicy: Honor"),
        )
        found = [each for each in notices(workload, NOON) if each.reason == "SpreadInfeasible"]
        assert [each.regarding["name"] for each in found] == ["web-1", "web-2"]
        assert found[0].regarding == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web-1",
            "uid": "uid-web-1",
        }
        assert found[0].note == (
            "no node fits because of the pod's own spread constraints; zone[0] a 4, b 1, c 0 with maxSkew 1; "
            "fix: nodeTaintsPolicy: Honor"
        )

    def test_a_fix_of_something_else_is_no_help_for_a_pod_that_waits(self):
        fix = SmallestFix(of="defaults", text="declare the configured defaults")
        assert said(scanned(pending_pods=(waiting(60),), fix=fix)) == [
            ("SpreadInfeasible", "no node fits because of the pod's own spread constraints")
        ]

    @given(st.text(min_size=1), st.text())
    def test_a_note_fits(self, summary, remedy):
        (notice,) = notices(scanned(findings=(judged(summary=summary * 300, remedy=remedy * 300),)), NOON)
        assert len(notice.note.encode()) <= 1024


class TestEvents:
    def test_a_whole_one(self):
        (notice,) = notices(scanned(skews=(skew(),)), NOON)
        made = event(notice, NOON, "one")
        mark = made["metadata"]["name"].removeprefix("web.")
        assert len(mark) == 16
        assert made == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"web.{mark}", "namespace": "shop"},
            "eventTime": "2026-11-23T12:00:00.000000Z",
            "reportingController": "evenspread.io/controller",
            "reportingInstance": "one",
            "action": "Scan",
            "reason": "SpreadDrift",
            "regarding": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": "shop",
                "name": "web",
                "uid": "u1",
            },
            "note": "zone[0] a 4, b 1, c 0: skew 4 is above maxSkew 1",
            "type": "Warning",
        }

    def test_names_tell_events_apart(self):
        (drift, violation) = notices(scanned(skews=(skew(),), findings=(judged(),)), NOON)
        (other,) = notices(scanned(uid="u2", skews=(skew(),)), NOON)
        made = [event(each, NOON, "one")["metadata"]["name"] for each in (drift, violation, other)]
        assert len({*made}) == 3
        assert event(drift, NOON + timedelta(days=1), "two")["metadata"]["name"] == made[0]

    def test_the_longest_name_fits(self):
        (notice,) = notices(scanned(name="w" * 253, skews=(skew(),)), NOON)
        assert len(event(notice, NOON, "i" * 300)["metadata"]["name"]) <= 253
        assert len(event(notice, NOON, "i" * 300)["reportingInstance"]) == 128
