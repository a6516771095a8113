"""A scan as JSON values, for the console's API and the command line; their shape is a promise."""

from webhook.core.review.judging import Judged
from webhook.core.scan.scanned import ActualSkew, ClusterScan, ScannedWorkload, Stranded, ZoneLoss
from webhook.core.text import one_line

Json = dict[str, object]
_MOST_CHARS = 4096  # of one text from outside; a field of an object can have megabytes


def cluster_values(scan: ClusterScan) -> Json:
    """The whole scan."""
    return {
        "started": scan.started,
        "ended": scan.ended,
        "nodes": scan.nodes,
        "pods": scan.pods,
        "pending": {str(cause): pods for cause, pods in scan.pending.items()},
        "zones": [loss_values(each) for each in scan.zones],
        "notEvaluated": [
            {"rule": each.rule, "notEvaluated": one_line(each.missing), "objects": each.objects} for each in scan.gaps
        ],
        "lacks": dict(scan.lacks),
        "workloads": [workload_values(each) for each in scan.workloads],
    }


def summary_values(scan: ClusterScan) -> Json:
    """The scan in numbers, as far as they are of pods."""
    above = [skew for each in scan.workloads for skew in each.skews if skew.above]
    return {
        "nodes": scan.nodes,
        "pods": scan.pods,
        "pending": {str(cause): pods for cause, pods in scan.pending.items()},
        "aboveMaxSkew": {"hard": sum(each.hard for each in above), "soft": sum(not each.hard for each in above)},
        "zones": [loss_values(each) for each in scan.zones],
        "wouldDeny": sum(bool(each.would_deny) for each in scan.workloads),
        "wouldInject": sum(bool(each.would_inject) for each in scan.workloads),
        "lacking": sum(each.lacking for each in scan.workloads),
    }


def workload_values(of: ScannedWorkload) -> Json:
    """One workload."""
    fix = of.fix
    return {
        "apiVersion": of.api_version,
        "kind": of.kind,
        "namespace": of.namespace,
        "name": of.name,
        "uid": of.uid,
        "standsFor": of.stands_for,
        "readable": of.readable,
        "wanted": of.wanted,
        "pods": of.pods,
        "zones": dict(of.zones),
        "pending": {str(cause): pods for cause, pods in of.pending.items()},
        "pendingSince": of.pending_since,
        "pendingPods": [
            {"name": each.name, "uid": each.uid, "since": each.since, "cause": str(each.cause)}
            for each in of.pending_pods
        ],
        "findings": [_finding(each) for each in of.findings],
        "notEvaluated": [{"rule": each.rule, "notEvaluated": one_line(each.missing)} for each in of.not_evaluated],
        "failures": [{"part": each.part, "error": type(each.error).__name__} for each in of.failures],
        "skews": [skew_values(each) for each in of.skews],
        "zoneLosses": [loss_values(each) for each in of.losses],
        "wouldDeny": list(of.would_deny),
        "wouldInject": of.would_inject,
        "lacking": of.lacking,
        "fix": None if fix is None else {"of": fix.of, "text": fix.text, "yaml": fix.yaml},
    }


def skew_values(of: ActualSkew) -> Json:
    """How the pods stand by one constraint."""
    return {
        "topologyKey": of.topology_key,
        "whenUnsatisfiable": of.when_unsatisfiable,
        "selector": of.selector,
        "maxSkew": of.max_skew,
        "skew": of.skew,
        "globalMinimum": of.global_minimum,
        "domains": dict(of.domains),
        "origin": str(of.origin),
        "emptyDomains": of.empty,
        "minDomains": of.min_domains,
        "outside": dict(of.outside),
        "others": dict(of.others),
        "own": None if of.own is None else dict(of.own),
        "path": of.path,
    }


def loss_values(of: ZoneLoss) -> Json:
    """What the failure of one zone costs."""
    return {
        "zone": of.zone,
        "pods": of.wanted,
        "pendingIfUnreachable": stranded_values(of.unreachable),
        "pendingIfGone": stranded_values(of.gone),
    }


def stranded_values(of: Stranded) -> Json:
    """How many pods stay Pending."""
    return {"fewest": of.fewest, "most": of.most}


def _finding(judged: Judged) -> Json:
    finding = judged.finding
    return {
        "rule": finding.rule,
        "mode": str(judged.mode),
        "configured": str(judged.configured),
        "severity": str(judged.severity),
        "path": finding.path,
        "message": one_line(finding.summary, _MOST_CHARS),
        "fix": one_line(finding.fix or finding.remedy, _MOST_CHARS),
        "waived": judged.waived,
    }
