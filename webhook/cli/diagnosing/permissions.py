"""Judge whether the accounts of both roles may do what they have to, by the cluster roles that they are given."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import Deployment, Facts, Rule, Subject, Unread
from webhook.cli.diagnosing.registration import release_of
from webhook.cluster.resources import Resource, native, watched
from webhook.core.policy.policy import Policy
from webhook.core.text import together
from webhook.core.workloads.kinds import NATIVE, group_of

_READ, _LISTED = ("list", "watch"), ("list",)
_REPORTS = {"openreports.io": "reports", "wgpolicyk8s.io": "policyreports"}  # the first that the cluster has is used


class _Need(NamedTuple):
    """What an account has to be allowed in every namespace."""

    group: str
    resource: str
    verbs: tuple[str, ...]


class _Role(NamedTuple):
    """What a role needs, and what comes of it where a resource is lacking: one that all depends on, or another."""

    deployment: Deployment
    needs: Sequence[_Need]
    stands: str
    lost: str


def permissions(facts: Facts) -> Iterator[Diagnosis]:
    """The lines about RBAC: one for each role, with all that its account lacks."""
    if isinstance(facts.deployment, Deployment):
        needs = [_need(each, _READ) for each in _watched(facts)]
        lost = "rules that depend on them are not evaluated"
        yield _judged(facts, _Role(facts.deployment, needs, "its pods do not become ready", lost))
    if isinstance(facts.controller, Unread):
        where = f"Deployments in namespace {facts.namespace}"
        yield unknown("permissions", where, facts.controller, "whether the controller may scan, and tell of it")
    elif facts.controller is not None and "--scan" in facts.controller.container.args:
        needs = [*_of_scans(facts, facts.controller)]
        lost = "scans leave out what cannot be read, and what may not be written is not told"
        yield _judged(facts, _Role(facts.controller, needs, "no scan begins", lost))


def _watched(facts: Facts) -> list[Resource]:
    # An extension that is not installed may not be listed either, and nothing says here whether it is.
    return [each for each in watched(facts.policy or Policy()) if each.name and not each.extension]


def _need(resource: Resource, verbs: tuple[str, ...]) -> _Need:
    return _Need(group_of(resource.api_versions[0]), resource.name, verbs)


def _of_scans(facts: Facts, controller: Deployment) -> Iterator[_Need]:
    """What the controller needs to scan, and to tell of it as its arguments say."""
    known = _watched(facts)
    yield from (_need(each, _READ) for each in known)
    names = {each.name for each in known}
    yield from (_need(each, _LISTED) for each in map(native, NATIVE) if each.name not in names)
    arguments = controller.container.args
    groups = () if isinstance(facts.groups, Unread) else facts.groups
    api = next((each for each in _REPORTS if each in groups), None)
    if api is not None and "--no-reports" not in arguments:
        yield _Need(api, _REPORTS[api], ("list", "create", "patch", "delete"))
    if "--no-events" not in arguments:
        yield _Need("events.k8s.io", "events", ("create", "patch"))


def _judged(facts: Facts, role: _Role) -> Diagnosis:
    """The line about the account of one role."""
    account = role.deployment.spec.template.spec.service_account_name
    where = f"ServiceAccount {facts.namespace}/{account}"
    if isinstance(facts.roles, Unread) or isinstance(facts.bindings, Unread):
        unread = facts.roles if isinstance(facts.roles, Unread) else facts.bindings
        return unknown("permissions", where, unread, "whether it may read the cluster", _ask(facts, account))  # type: ignore[arg-type]
    rules = _rules(facts, account)
    lacking: dict[tuple[str, ...], list[str]] = {}
    for each in role.needs:
        if not _allowed(rules, each):
            lacking.setdefault(each.verbs, []).append(each.resource)
    if not lacking:
        return Diagnosis(check="permissions", state=State.OK, where=where, what="may do all that is needed")
    said = "; ".join(f"{together(verbs)} {together(names)}" for verbs, names in lacking.items())
    needed = {each.name for each in _watched(facts) if each.required}
    return Diagnosis(
        check="permissions",
        state=State.PROBLEM,
        where=where,
        what=f"may not {said}",
        why=role.lost if needed.isdisjoint(lacking.get(_READ, ())) else role.stands,
        fix=helm_upgrade(release_of(facts), facts.namespace, "--set rbac.create=true", "--force-conflicts"),
    )


def _ask(facts: Facts, account: str) -> str:
    user = f"system:serviceaccount:{facts.namespace}:{account}"
    return f"kubectl auth can-i watch pods --all-namespaces --as={user}"


def _rules(facts: Facts, account: str) -> tuple[Rule, ...]:
    """All that the account is given cluster-wide, by its name or by a group that it is in."""
    user = f"system:serviceaccount:{facts.namespace}:{account}"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{facts.namespace}", "system:authenticated")

    def meant(subject: Subject) -> bool:
        match subject.kind:
            case "ServiceAccount":
                return (subject.namespace, subject.name) == (facts.namespace, account)
            case "Group":
                return subject.name in groups
            case _:
                return subject.name == user

    bindings = () if isinstance(facts.bindings, Unread) else facts.bindings
    roles = {each.metadata.name: each for each in (() if isinstance(facts.roles, Unread) else facts.roles)}
    given = {each.role_ref.name for each in bindings if any(map(meant, each.subjects))}
    return tuple(rule for name in sorted(given & roles.keys()) for rule in roles[name].rules)


def _allowed(rules: tuple[Rule, ...], need: _Need) -> bool:
    return all(any(_allows(rule, need, verb) for rule in rules) for verb in need.verbs)


def _allows(rule: Rule, need: _Need, verb: str) -> bool:
    asked = ((rule.api_groups, need.group), (rule.resources, need.resource), (rule.verbs, verb))
    return not rule.resource_names and all(wanted in named or "*" in named for named, wanted in asked)
