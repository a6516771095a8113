"""The other workloads with pods counted by a constraint."""

from collections.abc import Iterator, Mapping

from webhook.core.api.selectors import Selector
from webhook.core.budget import Reason
from webhook.core.groups.reading import Membership, memberships
from webhook.core.index.objects import Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.rules.frame.subject import Subject
from webhook.core.text import quoted
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.workload import Workload

NO_SELECTOR = Reason("its own pods (the kind has no selector)")
# Beyond this, a constraint counts half the namespace, and each comparison takes time.
_MAX_COMPARED_WORKLOADS = 16
# Of an operator's workloads: shards are left out later, so all of them have to be seen first.
_MAX_COMPARED_SHARDS = 256
_NAME_CHARS = 32  # The most characters of a workload's name. A warning has 120 characters.


def counted_workloads(workload: Workload, selector: Selector, index: ReadOnlyIndex) -> Iterator[Owner]:
    """Yield other workloads with a template matched by the selector, up to a limit."""
    mine = (*workload.group_kind, workload.meta.name)
    most = _MAX_COMPARED_WORKLOADS if workload.meta.controller is None else _MAX_COMPARED_SHARDS
    for owner in index.owners.matching(workload.meta.namespace, selector, most):
        if (*group_kind(owner.api_version, owner.kind), owner.meta.name) != mine:
            yield owner


def have_one_controller(workload: Workload, owner: Owner) -> bool:
    """Whether the same controller owns both workloads, as for an operator's shards."""
    mine, theirs = workload.meta.controller, owner.meta.controller
    return mine is not None and theirs is not None and (mine.kind, mine.name) == (theirs.kind, theirs.name)


def groups_of(subject: Subject, labels: Mapping[str, str]) -> tuple[Membership, ...]:
    """Return the SpreadGroups selecting pods with these labels. Constraints may count all pods of a group."""
    if subject.index is None:
        return ()
    return tuple(memberships(subject.workload.namespace, labels, subject.index))


def is_member(owner: Owner, of: Membership) -> bool:
    return any(of.selector.matches(each.labels) for each in owner.templates or ())


def workload_name(owner: Owner, workload: Workload) -> str:
    """The name of another workload in messages, with its kind if both workloads have the same name."""
    name = quoted(owner.meta.name, _NAME_CHARS)
    return f"{owner.kind} {name}" if owner.meta.name == workload.meta.name else name
