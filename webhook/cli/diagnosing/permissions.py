"""Judge whether the webhook's account may read what answers depend on, by the roles that it is given."""

from collections.abc import Iterator

from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import Deployment, Facts, Rule, Subject, Unread
from webhook.cli.diagnosing.registration import release_of
from webhook.cluster.resources import Resource, watched
from webhook.core.policy.policy import Policy
from webhook.core.text import together
from webhook.core.workloads.kinds import group_of

_VERBS = ("list", "watch")


def permissions(facts: Facts) -> Iterator[Diagnosis]:
    """The lines about RBAC: one for all that replicas need to be ready, one for what features need."""
    if not isinstance(facts.deployment, Deployment):
        return
    account = facts.deployment.spec.template.spec.service_account_name
    where = f"ServiceAccount {facts.namespace}/{account}"
    if isinstance(facts.roles, Unread) or isinstance(facts.bindings, Unread):
        unread = facts.roles if isinstance(facts.roles, Unread) else facts.bindings
        yield unknown("permissions", where, unread, "whether the webhook may read the cluster", _ask(facts, account))  # type: ignore[arg-type]
        return
    rules = _rules(facts, account)
    resources = watched(facts.policy or Policy())
    # An extension that is not installed may not be listed either, and nothing says here whether it is.
    lacking = [each for each in resources if each.name and not each.extension and not _allowed(rules, each)]
    if not lacking:
        yield Diagnosis(check="permissions", state=State.OK, where=where, what="may list and watch all that is needed")
        return
    needed = any(each.required for each in lacking)
    yield Diagnosis(
        check="permissions",
        state=State.PROBLEM,
        where=where,
        what=f"may not {' and '.join(_VERBS)} {together(each.name for each in lacking)}",
        why="its pods do not become ready" if needed else "rules that depend on them are not evaluated",
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


def _allowed(rules: tuple[Rule, ...], resource: Resource) -> bool:
    group = group_of(resource.api_versions[0])
    return all(any(_allows(rule, group, resource.name, verb) for rule in rules) for verb in _VERBS)


def _allows(rule: Rule, group: str, resource: str, verb: str) -> bool:
    asked = ((rule.api_groups, group), (rule.resources, resource), (rule.verbs, verb))
    return not rule.resource_names and all(wanted in named or "*" in named for named, wanted in asked)
