"""Judge the pods of both roles by what they answer, and the controller's Deployment and leader."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, note, ok, problem, unknown
from webhook.cli.commands.doctor.facts import Facts, Replica, Unread, arguments, at, is_ready, items, name_of, option
from webhook.core.text import listed

# Of /readyz: lines that are fine whatever they say, and what the others say if all is well.
_FREE = frozenset({"leading"})
_FINE = re.compile(
    r"ok|none known|from a snapshot|off: .*"  # the webhook
    r"|not checked yet|[\d,]+ workloads .*|the first scan runs|waiting for the cluster"
    r"|not looked at|the first one"  # texts of older releases
    r"|no API for reports .*|[\w.]+/v\w+"
)
_CA_LOST = "nobody writes the caBundle or replaces the CA before it ends"
_SCAN_LOST = "no scan runs: reports, events and metrics stay as they are"


def controller(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about the controller and its leader."""
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


def _lost(facts: Facts) -> str:
    """What stays undone without a controller; empty where that is nothing."""
    if option(facts.deployment, "ca-secret"):
        return _CA_LOST
    if "--leave-audit-to-scan" in arguments(facts.deployment):
        return "rules that are only audited are not evaluated: the webhook leaves them to the scan"
    return ""


def _absent(facts: Facts) -> Diagnosis:
    where = f"namespace {facts.namespace}"
    if lost := _lost(facts):
        return problem("controller", where, "has no controller", lost, helm_upgrade(facts))
    return ok("controller", where, "has no controller, and needs none")


def _stopped(facts: Facts) -> Diagnosis:
    where, name = _title(facts), name_of(facts.controller)
    lost, fix = _lost(facts), f"kubectl -n {facts.namespace} scale deployment/{name} --replicas=1"
    if lost:
        return problem("controller", where, "has 0 replicas", lost, fix)
    return note("controller", where, "has 0 replicas", _SCAN_LOST, fix)


def _title(facts: Facts) -> str:
    return f"Deployment {facts.namespace}/{name_of(facts.controller)}"


def _running(facts: Facts) -> Diagnosis:
    where, wanted = _title(facts), at(facts.controller, "spec", "replicas", default=1)
    if isinstance(facts.controller_pods, Unread):
        return unknown("controller", where, facts.controller_pods, "whether its pods are ready")
    ready = sum(map(is_ready, facts.controller_pods))
    if ready >= wanted:
        return ok("controller", where, f"{ready} ready")
    why = f"without a ready pod no controller acts: {_lost(facts) or _SCAN_LOST}"
    return problem(
        "controller", where, f"{ready} of {wanted} pods are ready{reasons(facts.controller_pods)}", why, _look(facts)
    )


def _look(facts: Facts) -> str:
    return _commands(facts.namespace, name_of(facts.controller))


def _commands(namespace: str, deployment: str) -> str:
    which = f"deployment/{deployment}"
    return f"kubectl -n {namespace} logs {which} --tail=20\nkubectl -n {namespace} rollout restart {which}"


def _leader(facts: Facts) -> Diagnosis:
    """The line about the Lease: somebody has to hold it now."""
    title, lost = option(facts.controller, "lease"), f"no controller acts: {_lost(facts) or _SCAN_LOST}"
    where = f"Lease {title}"
    if isinstance(facts.lease, Unread):
        return unknown("leader", where, facts.lease, "whether a controller leads")
    if facts.lease is None:
        return problem("leader", where, "is not there", lost, helm_upgrade(facts))
    holder, renewed = at(facts.lease, "spec", "holderIdentity"), _time(at(facts.lease, "spec", "renewTime"))
    if not holder or renewed is None:
        return problem("leader", where, "no controller holds it", lost, _look(facts))
    seconds = at(facts.lease, "spec", "leaseDurationSeconds", default=0)
    pod = str(holder).rpartition("_")[0] or holder
    if facts.now > renewed + timedelta(seconds=seconds):
        return problem("leader", where, f"{pod} held it until {renewed:%Y-%m-%d %H:%M:%S} UTC", lost, _look(facts))
    return ok("leader", where, f"{pod} leads")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def health(facts: Facts) -> Iterator[Diagnosis]:
    """A line for each pod of both roles that names a fault, and one for each role without faults."""
    for deployment, replicas in ((facts.deployment, facts.replicas), (facts.controller, facts.controllers)):
        if not isinstance(deployment, Mapping) or not replicas:
            continue
        lines = [*_faults(facts, name_of(deployment), replicas)]
        yield from lines
        unread = next((each.readyz for each in replicas if isinstance(each.readyz, Unread)), None)
        where = f"Deployment {facts.namespace}/{name_of(deployment)}"
        if unread is not None:
            yield unknown("health", f"pods of {where}", unread, "what they report about themselves")
        elif not lines:
            yield ok("health", where, "its pods report no fault")


def _faults(facts: Facts, deployment: str, replicas: tuple[Replica, ...]) -> Iterator[Diagnosis]:
    fix = _commands(facts.namespace, deployment)
    for each in replicas:
        if isinstance(each.readyz, Unread):
            continue
        status, lines = each.readyz
        wrong = [f"{name}: {text}" for name, text in lines.items() if name not in _FREE and not _FINE.fullmatch(text)]
        if status != HTTPStatus.OK:
            told = wrong or [f"{name}: {text}" for name, text in lines.items()]
            why = "Kubernetes takes an unready pod out of its Service"
            what = f"readyz {status}: {listed(told, 3)}"
            yield problem("health", f"Pod {facts.namespace}/{each.name}", what, why, fix)
        elif wrong:
            why = "the pod goes on with what it last knew"
            yield problem("health", f"Pod {facts.namespace}/{each.name}", listed(wrong, 3), why, fix)


def reasons(pods: object) -> str:
    """Why pods are not ready, in their own words."""
    if isinstance(pods, Unread):
        return f"; pods: {pods.reason}"
    told = [f"{name_of(each)}: {_reason(each)}" for each in items(pods) if not is_ready(each)]  # type: ignore[arg-type]
    return f"; {listed(told, 2)}" if told else ""


def _reason(pod: object) -> str:
    for status in at(pod, "status", "containerStatuses", default=()):
        if waiting := at(status, "state", "waiting", default={}):
            ended = at(status, "lastState", "terminated", default={})
            code = f"; the last one ended with exit code {at(ended, 'exitCode')}" if ended else ""
            return f"{at(waiting, 'reason')} {at(waiting, 'message')}".strip() + code
    conditions = at(pod, "status", "conditions", default=())
    unmet = [at(each, "message") for each in conditions if at(each, "status") != "True" and at(each, "message")]
    return unmet[0] if unmet else (at(pod, "status", "phase") or "not ready")
