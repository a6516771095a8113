"""Check the controller's Deployment and leader, and the health of all webhook and controller pods."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from webhook.cli.commands.doctor.api_fields import arguments, at, is_ready, name_of, option
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, note, ok, problem, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Replica, Unread, items
from webhook.core.text import listed, plural

# Lines of /readyz: names without a fault in any text, and the faultless texts of all others.
_FREE = frozenset({"leading"})
_FINE = re.compile(
    r"ok|none known|from a snapshot|off: .*"  # the webhook
    r"|not checked yet|[\d,]+ workloads .*|the first scan runs|waiting for the cluster"
    r"|not looked at|the first one"  # texts of older releases
    r"|no API for reports .*|[\w.]+/v\w+"
)
_MAX_FAULTS = 3  # of a pod, and
_MAX_REASONS = 2  # of unready pods: they share one line
_CA_LOST = "the caBundle is not written, and the CA is not replaced before it expires"
_SCAN_LOST = "no scan runs, and reports, events and metrics are not updated"


def controller(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield all lines about the controller and its leader."""
    if not facts.service_name:
        return
    where = f"Deployments in namespace {facts.namespace}"
    if isinstance(facts.controller, Unread):
        yield unknown("controller", where, facts.controller, "whether a controller runs")
    elif facts.controller is None:
        yield _absent(facts)
    elif not at(facts.controller, "spec", "replicas", default=1):
        yield _stopped(facts)
    else:
        yield _running(facts)
        yield _leader(facts)


def _lost(facts: InstallationFacts) -> str:
    """Return a message about the part of the webhook that fails without a controller. Empty if no part fails."""
    if option(facts.deployment, "ca-secret"):
        return _CA_LOST
    if "--leave-audit-to-scan" in arguments(facts.deployment):
        return "audit-only rules are not evaluated, because the webhook leaves them to the scan"
    if "--leave-warnings-to-policies" in arguments(facts.deployment):
        return "the admission policies, whose warnings the webhook leaves out, are not updated"
    return ""


def _absent(facts: InstallationFacts) -> Diagnosis:
    where = f"namespace {facts.namespace}"
    if lost := _lost(facts):
        return problem("controller", where, "has no controller", f"Without it, {lost}", helm_upgrade(facts))
    return ok("controller", where, "has no controller and needs none")


def _stopped(facts: InstallationFacts) -> Diagnosis:
    where, name = _title(facts), name_of(facts.controller)
    lost, fix = _lost(facts), f"kubectl -n {facts.namespace} scale deployment/{name} --replicas=1"
    if lost:
        return problem("controller", where, "has 0 replicas", f"Without a controller, {lost}", fix)
    return note("controller", where, "has 0 replicas", f"Without a controller, {_SCAN_LOST}", fix)


def _title(facts: InstallationFacts) -> str:
    return f"Deployment {facts.namespace}/{name_of(facts.controller)}"


def _running(facts: InstallationFacts) -> Diagnosis:
    where, wanted = _title(facts), at(facts.controller, "spec", "replicas", default=1)
    if isinstance(facts.controller_pods, Unread):
        return unknown("controller", where, facts.controller_pods, "whether its pods are ready")
    ready = sum(map(is_ready, facts.controller_pods))
    if ready >= wanted:
        return ok("controller", where, f"{plural(ready, 'pod')} ready")
    why = f"Without a ready pod, {_lost(facts) or _SCAN_LOST}"
    return problem(
        "controller",
        where,
        f"{ready} of {wanted} pods are ready{reasons(facts.controller_pods)}",
        why,
        _commands(facts, facts.controller),
    )


def _commands(facts: InstallationFacts, deployment: object) -> str:
    """The commands that print the log of a Deployment and restart it."""
    kubectl, target = f"kubectl -n {facts.namespace}", f"deployment/{name_of(deployment)}"
    return f"{kubectl} logs {target} --tail=20\n{kubectl} rollout restart {target}"


def _leader(facts: InstallationFacts) -> Diagnosis:
    """The line about the Lease: whether a controller holds it now."""
    title, lost = option(facts.controller, "lease"), f"Without a leader, {_lost(facts) or _SCAN_LOST}"
    where = f"Lease {title}"
    if isinstance(facts.lease, Unread):
        return unknown("leader", where, facts.lease, "whether a controller leads")
    if facts.lease is None:
        return problem("leader", where, "does not exist", lost, helm_upgrade(facts))
    holder, renewed = at(facts.lease, "spec", "holderIdentity"), _time(at(facts.lease, "spec", "renewTime"))
    if not holder or renewed is None:
        return problem("leader", where, "no controller holds it", lost, _commands(facts, facts.controller))
    seconds = at(facts.lease, "spec", "leaseDurationSeconds", default=0)
    pod = str(holder).rpartition("_")[0] or holder
    if facts.now > renewed + timedelta(seconds=seconds):
        held = f"{pod} held it until {renewed:%Y-%m-%d %H:%M:%S} UTC"
        return problem("leader", where, held, lost, _commands(facts, facts.controller))
    return ok("leader", where, f"{pod} leads")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def health(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each pod with a fault, and one for each Deployment without faulty pods."""
    for deployment, replicas in ((facts.deployment, facts.replicas), (facts.controller, facts.controllers)):
        if not isinstance(deployment, Mapping) or not replicas:
            continue
        lines = [*_faults(facts, deployment, replicas)]
        yield from lines
        unread = next((replica.readyz for replica in replicas if isinstance(replica.readyz, Unread)), None)
        where = f"Deployment {facts.namespace}/{name_of(deployment)}"
        if unread is not None:
            yield unknown("health", f"pods of {where}", unread, "whether the pods report faults")
        elif not lines:
            yield ok("health", where, "its pods report no faults")


def _faults(facts: InstallationFacts, deployment: object, replicas: tuple[Replica, ...]) -> Iterator[Diagnosis]:
    fix = _commands(facts, deployment)
    for replica in replicas:
        if isinstance(replica.readyz, Unread):
            continue
        where, (status, lines) = f"Pod {facts.namespace}/{replica.name}", replica.readyz
        wrong = [f"{name}: {text}" for name, text in lines.items() if name not in _FREE and not _FINE.fullmatch(text)]
        if status != HTTPStatus.OK:
            texts = wrong or [f"{name}: {text}" for name, text in lines.items()]
            why = "Kubernetes removes an unready pod from its Service"
            yield problem("health", where, f"readyz {status}: {listed(texts, _MAX_FAULTS)}", why, fix)
        elif wrong:
            why = "The pod continues with its last known state"
            yield problem("health", where, listed(wrong, _MAX_FAULTS), why, fix)


def reasons(pods: object) -> str:
    """Why pods are not ready, from their status."""
    if isinstance(pods, Unread):
        return f"; pods: {pods.reason}"
    texts = [f"{name_of(pod)}: {_reason(pod)}" for pod in items(pods) if not is_ready(pod)]  # type: ignore[arg-type]
    return f"; {listed(texts, _MAX_REASONS)}" if texts else ""


def _reason(pod: object) -> str:
    for status in at(pod, "status", "containerStatuses", default=()):
        if waiting := at(status, "state", "waiting", default={}):
            ended = at(status, "lastState", "terminated", default={})
            code = f"; the last container exited with code {at(ended, 'exitCode')}" if ended else ""
            return f"{at(waiting, 'reason')} {at(waiting, 'message')}".strip() + code
    conditions = at(pod, "status", "conditions", default=())
    unmet = [
        at(condition, "message")
        for condition in conditions
        if at(condition, "status") != "True" and at(condition, "message")
    ]
    return unmet[0] if unmet else (at(pod, "status", "phase") or "not ready")
