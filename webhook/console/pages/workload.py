"""One workload: pods in each domain for each constraint, its problems with causes, and admission's answer."""

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
from webhook.core.constraint_names import constraint_name
from webhook.core.policy.policy import Mode
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scanned import ActualSkew, ClusterScan, Origin, PendingCause, PendingPod, ScannedWorkload
from webhook.core.text import one_line, plural

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
    PendingCause.CAPACITY: "room: no node has enough free resources",
    PendingCause.OTHER: "something else",
    PendingCause.FITS: "nothing: it fits a node",
    PendingCause.GATED: "its scheduling gates",
    PendingCause.FOREIGN: "another scheduler",
    PendingCause.UNKNOWN: "not known",
}


class DomainRow(Struct, frozen=True):
    """A domain in the picture of a constraint."""

    name: str
    pods: int
    high: bool
    picture: str
    others: int = 0  # those of other workloads


def find(scan: ClusterScan, wanted: Mapping[str, str]) -> ScannedWorkload | None:
    """The workload named by a URL. Without an apiVersion, the first of its kind."""
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


def workload_page(shown: Shown, scan: ClusterScan, of: ScannedWorkload) -> dict[str, object]:
    """The values of a workload's page."""
    moment = instant(shown.moment)
    line = summary(of, moment, zone_shorts(scan))
    reasons = [*wrongs(of, moment)]
    hidden = sum(of.pending.values()) - len(of.pending_pods)
    return {
        **asdict(line),
        "address": line.address,
        "anchor": line.anchor,
        "pods": f"pods: {pods_of(of) or 'not known'}",
        "wrongs": reasons,
        "constraints": [_constraint(skew) for skew in of.skews],
        "pending": [_pending(pending_pod, moment) for pending_pod in of.pending_pods],
        "pending_rest": f"and {plural(hidden, 'pod')} more" if hidden > 0 else "",
        "losses": of.losses,
        "findings": of.findings,
        "consequences": _CONSEQUENCES,
        "facts": [*_facts(of)],
    }


def _constraint(of: ActualSkew) -> dict[str, object]:
    limit = limit_of(of)
    listed = sorted(of.domains.items())
    if len(listed) > _MOST_DOMAINS:
        listed = sorted(of.domains.items(), key=lambda item: (-item[1], item[0]))[:_MOST_DOMAINS]
    counted = f"counts pods with {one_line(of.selector)}" if of.selector else "counts no pods"
    terms = (of.when_unsatisfiable, f"maxSkew {of.max_skew}", _ORIGINS[of.origin], counted)
    return {
        "title": f"Spread by {constraint_name(of.topology_key, None)}",
        "terms": " · ".join(terms),
        "skew": "not known" if of.skew is None else of.skew,
        "max_skew": of.max_skew,
        "above": of.above,
        "domains": [*_domains(of, listed, limit)],
        "rest": _rest(of, listed),
        "whose": f"{whose[0].upper()}{whose[1:]}." if (whose := ownership_text(of)) else "",
        "meaning": _meaning(of, limit),
    }


def _rest(of: ActualSkew, listed: Sequence[tuple[str, int]]) -> str:
    """The domains left out of the list. It shows the fullest."""
    rest = of.eligible - len(listed)
    if not rest:
        return ""
    has_pods = sum(of.domains.values()) > sum(pods for _, pods in listed)
    return f"{'and ' if listed else ''}{plural(rest, 'domain')} {'with fewer' if has_pods else 'without'} pods"


def _domains(of: ActualSkew, listed: Sequence[tuple[str, int]], limit: int | None) -> Iterator[DomainRow]:
    most = max(of.most, limit or 0)
    full = most + max(1, most // 8)  # so that the limit is no edge of the picture
    for name, count in listed:
        high = of.above and limit is not None and count > limit
        others = of.others.get(name, 0)
        drawn = pictures.bar(count, full=full, least=of.global_minimum, limit=limit, others=others)
        yield DomainRow(one_line(name), count, high, drawn, others)


def _meaning(of: ActualSkew, limit: int | None) -> str:
    """The consequence of the numbers for the next pod."""
    key = one_line(of.topology_key)
    if not of.eligible:
        return f"No eligible node has the label {key}."
    if limit is None or of.global_minimum is None:
        return "The current distribution is unknown."
    least = f"the emptiest domain has {of.global_minimum:,}"
    if of.min_domains is not None and of.eligible < of.min_domains:
        least = f"there are {of.eligible:,} domains and minDomains asks for {of.min_domains:,}, so 0 is the minimum"
    line = f"{least[0].upper()}{least[1:]}"
    if of.hard:
        return f"{line}, so a domain takes at most {plural(limit, 'pod')} (the red line). Further pods stay Pending."
    return f"{line}. kube-scheduler prefers emptier domains, but also places pods above {limit:,} (the red line)."


def _pending(pod: PendingPod, moment: datetime | None) -> dict[str, object]:
    return {
        "name": one_line(pod.name),
        "cause": _CAUSES[pod.cause],
        "age": age(pod.since, moment) or "not known",
    }


def _facts(of: ScannedWorkload) -> Iterator[Fact]:
    """Admission's decision about the workload."""
    if of.would_deny:
        yield Fact("Under ceiling deny", f"it would be refused: {', '.join(of.would_deny)}")
    if of.would_inject:
        yield Fact("Defaults", f"its next pod would get {plural(of.would_inject, 'constraint')}")
    if of.lacking:
        yield Fact("Pods without the defaults", f"{of.lacking:,}; restart the workload to give them to all pods")
    for gap in of.not_evaluated:
        yield Fact(f"{gap.rule} not evaluated", one_line(gap.missing, _LONGEST))
