"""Scans for tests, in a notation that shows how pods stand."""

from webhook.console.shown import Health, Shown
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.scan.scan_results import (
    ActualSkew,
    ClusterScan,
    Origin,
    PendingCause,
    PendingPod,
    ScannedWorkload,
    SmallestFix,
    Stranded,
    ZoneLoss,
)

NOW = "2026-11-20T09:00:00Z"
HEALTH = Health(ceiling="warn", defaults_mode="observe")


def spread(state, *, max_skew=1, key=ZONE, when="DoNotSchedule", origin=Origin.DECLARED, min_domains=None, **more):
    """``a=3 b=1``: pods of a workload in each domain."""
    domains = {name: int(pods) for name, _, pods in (part.partition("=") for part in state.split())}
    least = min(domains.values(), default=None)
    told = {
        "topology_key": key,
        "when_unsatisfiable": when,
        "selector": "app=web",
        "max_skew": max_skew,
        "min_domains": min_domains,
        "domains": domains,
        "own": domains,
        "global_minimum": least,
        "skew": None if least is None else max(domains.values()) - least,
        "origin": origin,
        "name": f"{key.rpartition('/')[2]}[0]",
        "path": "",
    }
    return ActualSkew(**{**told, **more})


def loss(zone, unreachable=(0, 0), gone=(0, 0), wanted=9):
    return ZoneLoss(zone=zone, wanted=wanted, unreachable=Stranded(*unreachable), gone=Stranded(*gone))


def finding(
    summary="zone[0] counts no pod", *, severity=Severity.HIGH, mode=Mode.WARN, rule="selector-not-self", **more
):
    made = Finding(rule=rule, path="spec.template", summary=summary, fix="labelSelector: {}")
    return JudgedFinding(finding=made, severity=severity, mode=mode, configured=mode, **more)


def workload(name="web", *skews, namespace="shop", kind="Deployment", waiting=0, since="2026-11-20T08:17:00Z", **more):
    """``waiting`` pods are Pending because of spread."""
    told = {"api_version": "apps/v1", "kind": kind, "namespace": namespace, "name": name, "uid": f"uid-{name}"}
    if waiting:
        pods = (PendingPod(f"{name}-1", f"uid-{name}-1", since, PendingCause.SPREAD),)
        told |= {"pending": {PendingCause.SPREAD: waiting}, "pending_since": since, "pending_pods": pods}
    zones = next((each.domains for each in skews if each.topology_key == ZONE), {})
    return ScannedWorkload(**{**told, "skews": skews, "pods": 3, "wanted": 3, "zones": zones, **more})


def scan(*workloads, zones=(), **more):
    pending = {}
    for each in workloads:
        for cause, pods in each.pending.items():
            pending[cause] = pending.get(cause, 0) + pods
    return ClusterScan(
        started=NOW, ended=NOW, workloads=workloads, zones=zones, pending=pending, nodes=6, pods=9, **more
    )


def shown(*workloads, **more):
    return Shown(scan=scan(*workloads, **more), source="snapshot prod.jsonl", health=HEALTH, moment=NOW)


LEDGER = workload(
    "ledger",
    spread("eu-1a=2 eu-1b=2 eu-1c=1"),
    namespace="payments",
    waiting=2,
    wanted=7,
    pods=7,
    losses=(loss("eu-1b", (2, 5), (0, 0)), loss("eu-1c", (1, None), (None, None))),
    fix=SmallestFix(of="pending", text="set maxSkew: 2", yaml="spec:\n  maxSkew: 2\n"),
)
CATALOG = workload("catalog", spread("eu-1a=0 eu-1b=3 eu-1c=0", when="ScheduleAnyway", origin=Origin.DEFAULT))
SEARCH = workload("search", kind="StatefulSet", findings=(finding(), finding("waived", waived="an exemption")))
FINE = workload("checkout", spread("eu-1a=2 eu-1b=1 eu-1c=2"), spread("n1=1 n2=0", key=HOSTNAME))
ZONES = (loss("eu-1a"), loss("eu-1b", (2, 5), (0, 0)), loss("eu-1c", (6, 6), (4, 4)))
EVERYTHING = shown(LEDGER, CATALOG, SEARCH, FINE, zones=ZONES)
