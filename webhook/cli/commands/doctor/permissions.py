"""Judge whether the accounts of both roles may do what they have to, by the cluster roles that they are given."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unknown
from webhook.cli.commands.doctor.facts import Facts, Object, Unread, arguments, at, items, name_of
from webhook.cli.commands.doctor.versions import REPORT_VERBS, report_api
from webhook.cluster.resources import Resource, native, watched
from webhook.core.policy.policy import Policy
from webhook.core.text import together
from webhook.core.workloads.kinds import NATIVE, group_of
from webhook.report.documents import ReportApi

_READ, _LISTED = ("list", "watch"), ("list",)
_REPORTS = {ReportApi.OPEN_REPORTS: "reports", ReportApi.POLICY_REPORTS: "policyreports"}


class _Need(NamedTuple):
    """What an account has to be allowed in every namespace."""

    group: str
    resource: str
    verbs: tuple[str, ...]


class _Role(NamedTuple):
    """The rights of a role, and the loss without a required or an optional resource."""

    deployment: Object
    needs: Sequence[_Need]
    stands: str
    lost: str


def permissions(facts: Facts) -> Iterator[Diagnosis]:
    """The lines about RBAC: one for each role, with all that its account lacks."""
    if isinstance(facts.deployment, Mapping):
        needs = [_need(each, _READ) for each in _watched(facts)]
        lost = "rules that depend on them are not evaluated"
        yield _judged(facts, _Role(facts.deployment, needs, "its pods do not become ready", lost))
    if isinstance(facts.controller, Unread):
        where = f"Deployments in namespace {facts.namespace}"
        yield unknown("permissions", where, facts.controller, "whether the controller may scan and report")
    elif facts.controller is not None and "--scan" in arguments(facts.controller):
        needs = [*_of_scans(facts, facts.controller)]
        lost = "scans leave out what they may not read, and reports or events are not written"
        yield _judged(facts, _Role(facts.controller, needs, "no scan begins", lost))


def _watched(facts: Facts) -> list[Resource]:
    # An extension that is not installed may not be listed either, and nothing says here whether it is.
    return [each for each in watched(facts.policy or Policy()) if each.name and not each.extension]


def _need(resource: Resource, verbs: tuple[str, ...]) -> _Need:
    return _Need(group_of(resource.api_versions[0]), resource.name, verbs)


def _of_scans(facts: Facts, controller: Object) -> Iterator[_Need]:
    """What the controller needs to scan, and to report as its arguments say."""
    known = _watched(facts)
    yield from (_need(each, _READ) for each in known)
    names = {each.name for each in known}
    yield from (_need(each, _LISTED) for each in map(native, NATIVE) if each.name not in names)
    api = report_api(facts)
    if api is not None and "--no-reports" not in arguments(controller):
        yield _Need(group_of(api), _REPORTS[api], REPORT_VERBS)
    if "--no-events" not in arguments(controller):
        yield _Need("events.k8s.io", "events", ("create", "patch"))


def _judged(facts: Facts, role: _Role) -> Diagnosis:
    """The line about the account of one role."""
    account = at(role.deployment, "spec", "template", "spec", "serviceAccountName", default="default")
    where = f"ServiceAccount {facts.namespace}/{account}"
    user = f"system:serviceaccount:{facts.namespace}:{account}"
    for unread in (facts.roles, facts.bindings):
        if isinstance(unread, Unread):
            ask = f"kubectl auth can-i watch pods --all-namespaces --as={user}"
            return unknown("permissions", where, unread, "whether it may read the cluster", ask)
    rules = _rules(facts, account, user)
    lacking: dict[tuple[str, ...], list[str]] = {}
    for each in role.needs:
        if not all(any(_allows(rule, each, verb) for rule in rules) for verb in each.verbs):
            lacking.setdefault(each.verbs, []).append(each.resource)
    if not lacking:
        return ok("permissions", where, "may do all that is needed")
    told = "; ".join(f"{together(verbs)} {together(names)}" for verbs, names in lacking.items())
    needed = {each.name for each in _watched(facts) if each.required}
    why = role.lost if needed.isdisjoint(lacking.get(_READ, ())) else role.stands
    fix = helm_upgrade(facts, "--set rbac.create=true", "--force-conflicts")
    return problem("permissions", where, f"may not {told}", why, fix)


def _rules(facts: Facts, account: str, user: str) -> tuple[Object, ...]:
    """All that the account is given cluster-wide, by its name or by a group that it is in."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{facts.namespace}", "system:authenticated")

    def meant(subject: Object) -> bool:
        match at(subject, "kind"):
            case "ServiceAccount":
                return (at(subject, "namespace"), at(subject, "name")) == (facts.namespace, account)
            case "Group":
                return at(subject, "name") in groups
            case _:
                return bool(at(subject, "name") == user)

    roles = {name_of(each): each for each in items(facts.roles)}
    bindings = [each for each in items(facts.bindings) if any(map(meant, at(each, "subjects", default=())))]
    given = {at(each, "roleRef", "name") for each in bindings}
    return tuple(rule for name in sorted(given & roles.keys()) for rule in at(roles[name], "rules", default=()))


def _allows(rule: Object, need: _Need, verb: str) -> bool:
    asked = (("apiGroups", need.group), ("resources", need.resource), ("verbs", verb))
    named = [(at(rule, field, default=()), wanted) for field, wanted in asked]
    return not at(rule, "resourceNames") and all(wanted in names or "*" in names for names, wanted in named)
