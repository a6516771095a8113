"""Which pods a constraint counts."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from webhook.core.api.selectors import Selector, SelectorError
from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import JOB_LABELS
from webhook.core.api.written_selector import has_conditions
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.pod_groups import Counts
from webhook.core.scheduler.plugins.pod_topology_spread import counting_selector
from webhook.core.workloads.kinds import REVISION_LABELS

# Labels that no two workloads share: a constraint that matches on one counts one revision, or one Job.
OWN_LABELS = REVISION_LABELS | {*JOB_LABELS}
LATE_LABELS = "labels that are added after the template"


def selects(constraint: SpreadConstraint) -> bool:
    """Whether the constraint's selector has conditions; there are rules of their own for null and empty ones."""
    return has_conditions(constraint.selector)


def readable_selector(constraint: SpreadConstraint, labels: Mapping[str, str]) -> Selector | None:
    """The selector by which the constraint counts, for a pod with these labels; None if it is invalid."""
    try:
        return counting_selector(constraint, labels)
    except SelectorError:
        return None


def counts_itself(constraint: SpreadConstraint, labels: Mapping[str, str]) -> bool:
    """Whether the constraint counts the pods that have it, and not by an empty selector."""
    selector = readable_selector(constraint, labels)
    return selector is not None and not selector.empty and selector.matches(labels)


def late_keys(constraint: SpreadConstraint, labels: Mapping[str, str], late: Callable[[str], bool]) -> Iterator[str]:
    """The matchLabelKeys whose labels the pods may get later; one that nobody adds is passed over by Kubernetes."""
    return (key for key in constraint.match_label_keys or () if key not in labels and late(key))


def foreign_pods(namespace: str, selector: Selector, own: Selector, index: ReadOnlyIndex) -> Counts:
    """The pods that the selector matches and the workload's own selector does not."""
    pods = index.count(namespace, selector)
    return counts_without(pods, index.count(namespace, selector.joined(own.requirements))) if pods else pods


def counts_without(counts: Counts, *parts: Counts) -> Counts:
    """The counts less those of the parts; a node without a pod is left out. Unit: pods by slot."""
    if parts == (counts,):  # mostly a workload's pods are all that its selector counts
        return {}
    rest = dict(counts)
    for slot, number in chain.from_iterable(part.items() for part in parts):
        rest[slot] = rest.get(slot, 0) - number
        if rest[slot] <= 0:
            del rest[slot]
    return rest
