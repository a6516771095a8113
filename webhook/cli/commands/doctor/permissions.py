"""Judge the permissions of the webhook's and the controller's accounts, from their cluster roles."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.cli.commands.doctor.api_fields import Object, arguments, at, name_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, items
from webhook.cli.commands.doctor.versions import REPORT_VERBS, report_api
from webhook.cluster.resources import Resource, native, watched
from webhook.core.policy.policy import Policy
from webhook.core.text import together
from webhook.core.workloads.kinds import NATIVE, group_of
from webhook.report.documents import ReportApi

_READ, _LISTED = ("list", "watch"), ("list",)
_REPORTS = {ReportApi.OPEN_REPORTS: "reports", ReportApi.POLICY_REPORTS: "policyreports"}


class _NeededVerbs(NamedTuple):
    """Required verbs on a resource, in all namespaces."""

    group: str
    resource: str
    verbs: tuple[str, ...]


def permissions(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each Deployment, with the missing permissions of its account."""
    if isinstance(facts.deployment, Mapping):
        needs = [_need(resource, _READ) for resource in _watched(facts)]
        degraded = "Rules that depend on these objects are not evaluated"
        yield _judged(facts, facts.deployment, needs, stopped="The pods do not become ready", degraded=degraded)
    if isinstance(facts.controller, Unread):
        where = f"Deployments in namespace {facts.namespace}"
        yield unknown("permissions", where, facts.controller, "whether the controller may scan and report")
    elif facts.controller is not None and "--scan" in arguments(facts.controller):
        needs = [*_scan_needs(facts, facts.controller)]
        degraded = "Scans skip unreadable objects, and reports or events are not written"
        yield _judged(facts, facts.controller, needs, stopped="No scan starts", degraded=degraded)


def _watched(facts: InstallationFacts) -> list[Resource]:
    # Extensions are optional: roles need no permission on an extension without its CRD.
    resources = watched(facts.policy or Policy())
    return [resource for resource in resources if resource.name and not resource.extension]


def _need(resource: Resource, verbs: tuple[str, ...]) -> _NeededVerbs:
    return _NeededVerbs(group_of(resource.api_versions[0]), resource.name, verbs)


def _scan_needs(facts: InstallationFacts, controller: Object) -> Iterator[_NeededVerbs]:
    """Yield the permissions for scans, and for the reports and events turned on by the controller's arguments."""
    known = _watched(facts)
    yield from (_need(resource, _READ) for resource in known)
    names = {resource.name for resource in known}
    yield from (_need(resource, _LISTED) for resource in map(native, NATIVE) if resource.name not in names)
    api = report_api(facts)
    if api is not None and "--no-reports" not in arguments(controller):
        yield _NeededVerbs(group_of(api), _REPORTS[api], REPORT_VERBS)
    if "--no-events" not in arguments(controller):
        yield _NeededVerbs("events.k8s.io", "events", ("create", "patch"))


def _judged(
    facts: InstallationFacts, deployment: Object, needs: Sequence[_NeededVerbs], *, stopped: str, degraded: str
) -> Diagnosis:
    """Judge an account. Without a required resource, the consequence is ``stopped``, else ``degraded``."""
    account = at(deployment, "spec", "template", "spec", "serviceAccountName", default="default")
    where = f"ServiceAccount {facts.namespace}/{account}"
    user = f"system:serviceaccount:{facts.namespace}:{account}"
    for unread in (facts.roles, facts.bindings):
        if isinstance(unread, Unread):
            ask = f"kubectl auth can-i watch pods --all-namespaces --as={user}"
            return unknown("permissions", where, unread, "whether it may read the cluster", ask)
    rules = _rules(facts, account, user)
    missing: dict[tuple[str, ...], list[str]] = {}
    for need in needs:
        if not all(any(_allows(rule, need, verb) for rule in rules) for verb in need.verbs):
            missing.setdefault(need.verbs, []).append(need.resource)
    if not missing:
        return ok("permissions", where, "has all required permissions")
    rights = "; ".join(f"{together(verbs)} {together(names)}" for verbs, names in missing.items())
    required = {resource.name for resource in _watched(facts) if resource.required}
    why = degraded if required.isdisjoint(missing.get(_READ, ())) else stopped
    fix = helm_upgrade(facts, "--set rbac.create=true", "--force-conflicts")
    return problem("permissions", where, f"may not {rights}", why, fix)


def _rules(facts: InstallationFacts, account: str, user: str) -> tuple[Object, ...]:
    """The rules of the ClusterRoles bound to the account by name or by group."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{facts.namespace}", "system:authenticated")

    def is_account(subject: Object) -> bool:
        match at(subject, "kind"):
            case "ServiceAccount":
                return (at(subject, "namespace"), at(subject, "name")) == (facts.namespace, account)
            case "Group":
                return at(subject, "name") in groups
            case _:
                return bool(at(subject, "name") == user)

    roles = {name_of(role): role for role in items(facts.roles)}
    bindings = [
        binding for binding in items(facts.bindings) if any(map(is_account, at(binding, "subjects", default=())))
    ]
    bound = {at(binding, "roleRef", "name") for binding in bindings}
    return tuple(rule for name in sorted(bound & roles.keys()) for rule in at(roles[name], "rules", default=()))


def _allows(rule: Object, need: _NeededVerbs, verb: str) -> bool:
    wanted = (("apiGroups", need.group), ("resources", need.resource), ("verbs", verb))
    allowed = [(at(rule, field, default=()), value) for field, value in wanted]
    return not at(rule, "resourceNames") and all(value in values or "*" in values for values, value in allowed)
