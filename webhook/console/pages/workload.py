"""The console page of a workload.

It shows the pods in each domain for each constraint, the problems with their causes, and the admission decision.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from webhook.console.pages import pictures
from webhook.console.pages.first_screen import Fact, zone_shorts
from webhook.console.pages.heat_map import limit_of
from webhook.console.pages.listing import pods_of
from webhook.console.pages.summary import summary, wrongs
from webhook.console.shown import Shown
from webhook.console.words import age, instant
from webhook.core.api.well_known import DELETION_COST_ANNOTATION
from webhook.core.policy.policy import Mode
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scan_results import (
    ActualSkew,
    ClusterScan,
    GuardState,
    Origin,
    PendingCause,
    PendingPod,
    ScannedWorkload,
)
from webhook.core.text import constraint_name, one_line, plural

_MOST_DOMAINS = 40  # a table of about a screen
_LONGEST = 2_000  # characters of a text about a finding
_ORIGINS = {
    Origin.DECLARED: "declared in its template",
    Origin.INJECTED: "injected at admission",
    Origin.DEFAULT: "kube-scheduler's own default",
}
_CONSEQUENCES = {
    Mode.DENY: "denied at admission",
    Mode.WARN: "warned about at admission",
    Mode.AUDIT: "recorded only",
    Mode.OFF: "off",
}
_CAUSES = {
    PendingCause.SPREAD: "its spread constraints",
    PendingCause.CAPACITY: "capacity: no node has enough free resources",
    PendingCause.OTHER: "something else",
    PendingCause.FITS: "nothing: it fits a node",
    PendingCause.GATED: "its scheduling gates",
    PendingCause.FOREIGN: "another scheduler",
    PendingCause.UNKNOWN: "not known",
}


_GUARD_TEXTS = {
    GuardState.REPORT: "Not guarded. The ReplicaSet controller ignores constraints when it removes pods.",
    GuardState.REQUESTED: "Not guarded now, for example because of a rollout. The policy asks for the guard.",
    GuardState.WAITING: "Not guarded yet, because of the controller's limit of writes per minute.",
    GuardState.GUARDED: "Guarded. The ReplicaSet controller removes pods of the fullest domains first.",
    GuardState.STOPPED: f"Not guarded, because another program writes the annotation {DELETION_COST_ANNOTATION}.",
}
_GUARD_UNKNOWN = "The policy turns the scale-in guard on. The workload's report says whether it is active."


class DomainRow(Struct, frozen=True):
    """A domain in the picture of a constraint. ``others`` counts pods of other workloads."""

    name: str
    pods: int
    high: bool
    picture: str
    others: int = 0  # those of other workloads


def find(scan: ClusterScan, wanted: Mapping[str, str]) -> ScannedWorkload | None:
    """Return the workload named by a URL's parameters. Without apiVersion, the first match in any API group."""
    version = wanted.get("apiVersion", "")
    for workload in scan.workloads:
        if (
            workload.name == wanted.get("name", "")
            and workload.namespace == wanted.get("namespace", "")
            and workload.kind == wanted.get("kind", "")
            and version in {"", workload.api_version}
        ):
            return workload
    return None


def workload_page(shown: Shown, scan: ClusterScan, workload: ScannedWorkload) -> dict[str, object]:
    """Return the template's values for the page of a workload."""
    moment = instant(shown.moment)
    line = summary(workload, moment, zone_shorts(scan))
    reasons = [*wrongs(workload, moment)]
    hidden = sum(workload.pending.values()) - len(workload.pending_pods)
    return {
        **asdict(line),
        "address": line.address,
        "anchor": line.anchor,
        "pods": f"pods: {pods_of(workload) or 'not known'}",
        "wrongs": reasons,
        "constraints": [_constraint(skew) for skew in workload.skews],
        "pending": [_pending(pending_pod, moment) for pending_pod in workload.pending_pods],
        "pending_rest": f"and {plural(hidden, 'pod')} more" if hidden > 0 else "",
        "losses": workload.losses,
        "scale_in": _scale_in(workload, live=shown.live),
        "findings": workload.findings,
        "consequences": _CONSEQUENCES,
        "facts": [*_facts(workload)],
    }


def _scale_in(workload: ScannedWorkload, *, live: bool) -> dict[str, object] | None:
    """Return the worst scale-in, and whether it is guarded. None if not measured."""
    state = workload.scale_in
    if state is None or not workload.skews:
        return None
    text = _GUARD_TEXTS[state.guard]
    if state.guard is GuardState.REQUESTED and not live:
        text = _GUARD_UNKNOWN
    elif state.inactive:
        text = f"The policy asks for the guard. It is not active: {state.inactive}."
    return {"worst": state.worst_skew, "above": state.above, "text": text}


def _constraint(skew: ActualSkew) -> dict[str, object]:
    limit = limit_of(skew)
    listed = sorted(skew.domains.items())
    if len(listed) > _MOST_DOMAINS:
        listed = sorted(skew.domains.items(), key=lambda item: (-item[1], item[0]))[:_MOST_DOMAINS]
    counted = f"counts pods with {one_line(skew.selector)}" if skew.selector else "counts no pods"
    terms = (skew.when_unsatisfiable, f"maxSkew {skew.max_skew}", _ORIGINS[skew.origin], counted)
    return {
        "title": f"Spread by {constraint_name(skew.topology_key, None)}",
        "terms": " · ".join(terms),
        "skew": "not known" if skew.skew is None else skew.skew,
        "max_skew": skew.max_skew,
        "above": skew.above,
        "domains": [*_domains(skew, listed, limit)],
        "rest": _rest(skew, listed),
        "whose": f"{whose[0].upper()}{whose[1:]}." if (whose := ownership_text(skew)) else "",
        "meaning": _meaning(skew, limit),
    }


def _rest(skew: ActualSkew, listed: Sequence[tuple[str, int]]) -> str:
    """Return the text about domains left out of the list of the fullest domains."""
    rest = skew.eligible - len(listed)
    if not rest:
        return ""
    has_pods = sum(skew.domains.values()) > sum(pods for _, pods in listed)
    return f"{'and ' if listed else ''}{plural(rest, 'domain')} {'with fewer' if has_pods else 'without'} pods"


def _domains(skew: ActualSkew, listed: Sequence[tuple[str, int]], limit: int | None) -> Iterator[DomainRow]:
    most = max(skew.most, limit or 0)
    full = most + max(1, most // 8)  # so that the limit is no edge of the picture
    for name, count in listed:
        high = skew.above and limit is not None and count > limit
        others = skew.others.get(name, 0)
        drawn = pictures.bar(count, full=full, least=skew.global_minimum, limit=limit, others=others)
        yield DomainRow(one_line(name), count, high, drawn, others)


def _meaning(skew: ActualSkew, limit: int | None) -> str:
    """Return a sentence about the possible domains of the next pod."""
    key = one_line(skew.topology_key)
    if not skew.eligible:
        return f"No eligible node has the label {key}."
    if limit is None or skew.global_minimum is None:
        return "The current distribution is unknown."
    least = f"the emptiest domain has {plural(skew.global_minimum, 'pod')}"
    if skew.min_domains is not None and skew.eligible < skew.min_domains:
        least = f"there are {skew.eligible:,} domains and minDomains asks for {skew.min_domains:,}, so 0 is the minimum"
    line = f"{least[0].upper()}{least[1:]}"
    if skew.hard:
        return f"{line}, so a domain takes at most {plural(limit, 'pod')} (the red line). Further pods stay Pending."
    return f"{line}. kube-scheduler prefers emptier domains, but also places pods above {limit:,} (the red line)."


def _pending(pod: PendingPod, moment: datetime | None) -> dict[str, object]:
    return {"name": one_line(pod.name), "cause": _CAUSES[pod.cause], "age": age(pod.since, moment) or "not known"}


def _facts(workload: ScannedWorkload) -> Iterator[Fact]:
    """Yield facts about admission: refusals under ceiling deny, added defaults, and rules not evaluated."""
    if workload.would_deny:
        yield Fact("Under ceiling deny", f"it would be refused: {', '.join(workload.would_deny)}")
    if workload.would_inject:
        yield Fact("Defaults", f"its next pod would get {plural(workload.would_inject, 'constraint')}")
    if workload.lacking:
        yield Fact("Pods without the defaults", f"{workload.lacking:,}; restart the workload to give them to all pods")
    for gap in workload.not_evaluated:
        yield Fact(f"{gap.rule} not evaluated", one_line(gap.missing, _LONGEST))
