"""Find workloads that count each other's pods under different constraints."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from webhook.core.api.selectors import Selector
from webhook.core.api.types import HONOR, IGNORE, SpreadConstraint
from webhook.core.api.written_selector import has_conditions
from webhook.core.index.objects import DeclaredTemplate, Owner
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import (
    counted_workloads,
    groups_of,
    have_one_controller,
    is_member,
    workload_name,
)
from webhook.core.rules.frame.own_pods import OWN_LABELS, late_keys
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject, readable_selector
from webhook.core.text import quoted
from webhook.core.workloads.controller_labels import may_be_added, may_be_added_to
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.workload import Template

_OWNERS = ("deployments", "statefulsets")  # Other kinds are rare, and many clusters do not have them.
_KEY_CHARS = 32  # The most characters of a custom key. Two keys then fit into a warning of 120 characters.
_Late = Callable[[str], bool]  # whether the pods may get a label that their template does not have


class _Terms(NamedTuple):
    """The fields of a constraint, without its selector."""

    topology_key: str
    action: str
    max_skew: int
    min_domains: int
    node_affinity_policy: str
    node_taints_policy: str

    @property
    def name(self) -> str:
        """The last segment of the topology key."""
        return quoted(self.topology_key.rpartition("/")[2], _KEY_CHARS)

    def beside(self, other: "_Terms") -> str:
        """Return the first field that differs from ``other``, for the same key: ``maxSkew 1 here, 2 there``."""
        fields = zip(_FIELDS, self[1:], other[1:], strict=True)
        name, here, there = next(each for each in fields if each[1] != each[2])
        return f"{name}{here} here, {there} there"


_FIELDS = ("", "maxSkew ", "minDomains ", "nodeAffinityPolicy ", "nodeTaintsPolicy ")


class _Differing(NamedTuple):
    """A pair of workloads: each counts the other's pods, under different constraints.

    ``ours`` are the constraints of the reviewed workload, ``theirs`` those of ``owner``.
    """

    owner: Owner
    ours: frozenset[_Terms]
    theirs: frozenset[_Terms]


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Yield findings about other workloads with different constraints.

    Each finding is about a template of the subject and one other workload. Both count each other's pods.
    """
    if subject.workload.is_pod or not any(has_conditions(placed.constraint.selector) for placed in subject.placed):
        return ()
    if (missing := subject.lacks()) is not None:
        return (NotEvaluated(DIFFER.id, missing),)
    return _beside(subject)


def _beside(subject: Subject) -> Iterator[RuleAnswer]:
    counting = [placed for placed in subject.placed if has_conditions(placed.constraint.selector)]
    differs = False
    for template in subject.workload.templates:
        mine = [placed for placed in counting if placed.template is template]
        differing = sorted(_group(mine, subject), key=lambda each: each.owner.meta.name) if mine else []
        if differing:
            differs = True
            yield _disagreement(template, differing, subject)
    if not differs and (missing := subject.lacks(*_OWNERS)):
        yield NotEvaluated(DIFFER.id, missing)


DIFFER = Rule(
    id="constraints-differ-in-group",
    title="workloads count each other's pods under different constraints",
    severity=Severity.LOW,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "The scheduler places each pod by its own constraints. If two workloads count each other's pods, the "
        "looser constraint can make the counts more uneven than the stricter one allows."
    ),
    evaluate=evaluate,
    needs=(Need.WORKLOADS,),
)


def _disagreement(template: Template, differing: list[_Differing], subject: Subject) -> Finding:
    first = differing[0]
    others, words = _others(differing, subject), _difference(first.ours - first.theirs, first.theirs - first.ours)
    # The plan of a SpreadGroup has the constraints for its members.
    groups = (each for each in groups_of(subject, template.pod.labels) if is_member(first.owner, each))
    group = next((each.group for each in groups if each.group.caps), None)
    return Finding(
        rule=DIFFER.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=f"constraints differ from {others}: {words}",
        remedy=f"use those of SpreadGroup {quoted(group.name, 32)}" if group else "align them",
        detail=f"this workload and {others} count each other's pods under different constraints: {words}",
        fix="use the same maxSkew, whenUnsatisfiable, minDomains and policies for each shared topologyKey",
        key=f"{template.path} {words}",
    )


def _others(differing: list[_Differing], subject: Subject) -> str:
    messages, more = subject.policy.messages, len(differing) - 1
    if more and not messages.count_others(offline=subject.offline):
        return "other workloads"
    named = messages.name_workloads(offline=subject.offline)
    name = workload_name(differing[0].owner, subject.workload) if named else "another workload"
    return f"{name} and {more} more" if more else name


def _difference(here: frozenset[_Terms], there: frozenset[_Terms]) -> str:
    """Describe how two workloads' constraints over a common key differ.

    Name the first differing field. If no key is common, describe the keys that only one workload uses.
    """
    for mine in sorted(here):
        for other in sorted(there, key=lambda each: (each.action != mine.action, each)):
            if other.topology_key == mine.topology_key:
                return f"{mine.name} {mine.beside(other)}"
    # Two keys with the same short name are written out.
    whole = not {each.name for each in here}.isdisjoint(each.name for each in there)
    only_here, only_there = _names(here, whole=whole), _names(there, whole=whole)
    if only_here and only_there:
        return f"{only_here} here, {only_there} there"
    return f"{only_here} only here" if only_here else f"{only_there} only there"


def _names(terms: frozenset[_Terms], *, whole: bool) -> str:
    return " and ".join(sorted({quoted(each.topology_key, _KEY_CHARS) if whole else each.name for each in terms}))


def _terms(constraint: SpreadConstraint) -> _Terms:
    return _Terms(
        constraint.topology_key or "",
        "hard" if constraint.hard else "soft",
        constraint.max_skew or 0,
        constraint.min_domains or 1,
        constraint.node_affinity_policy or HONOR,
        constraint.node_taints_policy or IGNORE,
    )


def _group(mine: list[Placed], subject: Subject) -> Iterator[_Differing]:
    """Yield each workload with constraints other than ``mine``, if both workloads count each other's pods."""
    labels, late = mine[0].template.pod.labels, partial(may_be_added, subject.workload, in_template=False)
    # None if a label added later decides.
    selectors = {
        placed.index: None if any(late_keys(placed.constraint, labels, late)) else placed.selector for placed in mine
    }
    others = [*_counted_owners(selectors.values(), subject)]
    if not others:
        return
    terms = {placed.index: _terms(placed.constraint) for placed in mine}
    all_of_ours, unsure = frozenset(terms.values()), _unsure((placed.constraint for placed in mine), labels, late)
    for owner in subject.while_time_is_left(others):
        for other in owner.templates or ():
            if frozenset(map(_terms, other.constraints)) == all_of_ours:
                continue  # in nearly all groups, and no selector needs to be read for it
            counting = (number for number, each in selectors.items() if each is not None and each.matches(other.labels))
            ours = frozenset(terms[number] for number in counting)
            theirs_late = partial(may_be_added_to, group_kind(owner.api_version, owner.kind))
            theirs = frozenset(_terms(each) for each in other.constraints if _counts(each, other, labels, theirs_late))
            both = unsure | _unsure(other.constraints, other.labels, theirs_late)
            ours, theirs = _but(ours, both), _but(theirs, both)
            if ours and theirs and ours != theirs:
                yield _Differing(owner, ours, theirs)
                break


def _counted_owners(selectors: Iterable[Selector | None], subject: Subject) -> Iterator[Owner]:
    workload, seen = subject.workload, set()
    for selector in subject.while_time_is_left(selectors):
        for owner in () if selector is None else counted_workloads(workload, selector, subject.context.cluster):
            key = (owner.kind, owner.meta.name)
            # An operator chose the constraints of its own workloads.
            if key in seen or have_one_controller(workload, owner):
                continue
            seen.add(key)
            # Equal selectors mean the same pods under two names, such as a Rollout and its Deployment.
            if owner.selector is None or owner.selector != workload.selector:
                yield owner


def _counts(constraint: SpreadConstraint, other: DeclaredTemplate, labels: Mapping[str, str], late: _Late) -> bool:
    if not has_conditions(constraint.selector) or any(late_keys(constraint, other.labels, late)):
        return False
    selector = readable_selector(constraint, other.labels)
    return selector is not None and selector.matches(labels)


def _unsure(constraints: Iterable[SpreadConstraint], labels: Mapping[str, str], late: _Late) -> frozenset[str]:
    """Return the topologyKeys of constraints with incomplete matchLabelKeys.

    Such a constraint names a label in matchLabelKeys, but ``labels`` lacks the label. A controller may add the label to
    the pods later. Constraints with a missing revision or Job label are left out.

    Args:
        constraints: The constraints of a pod template.
        labels: The labels of the template.
        late: Returns whether a controller may add the label.
    """
    found = ((each.topology_key or "", {*late_keys(each, labels, late)}) for each in constraints)
    return frozenset(key for key, keys in found if keys and OWN_LABELS.isdisjoint(keys))


def _but(terms: frozenset[_Terms], keys: frozenset[str]) -> frozenset[_Terms]:
    return frozenset(each for each in terms if each.topology_key not in keys) if keys else terms
