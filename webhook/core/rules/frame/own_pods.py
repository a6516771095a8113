"""The pods counted by a constraint, compared with the pods of its own workload."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.selectors import Selector
from webhook.core.api.types import LabelSelector, SpreadConstraint
from webhook.core.api.well_known import APP_COMPONENT, APP_INSTANCE, APP_NAME, JOB_LABELS
from webhook.core.budget import Reason
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.rules.frame.subject import Placed, readable_selector
from webhook.core.workloads.kinds import REVISION_LABELS
from webhook.core.workloads.workload import Workload

# No two workloads share these labels. A constraint with such a label counts a single revision or Job.
OWN_LABELS = REVISION_LABELS | {*JOB_LABELS}
LATE_LABELS = Reason("labels that controllers add to the pods")
IDENTITY = (APP_NAME, APP_INSTANCE, APP_COMPONENT, "app", "k8s-app")


def counts_itself(constraint: SpreadConstraint, labels: Mapping[str, str]) -> bool:
    """Whether the constraint counts pods with these labels. A constraint with an empty selector returns False."""
    selector = readable_selector(constraint, labels)
    return selector is not None and not selector.empty and selector.matches(labels)


def late_keys(constraint: SpreadConstraint, labels: Mapping[str, str], late: Callable[[str], bool]) -> Iterator[str]:
    """Yield the matchLabelKeys absent from ``labels`` if a controller adds them later.

    ``late`` returns whether a controller adds the label.
    """
    return (key for key in constraint.match_label_keys or () if key not in labels and late(key))


def foreign_pods(namespace: str, selector: Selector, own: Selector, index: ReadOnlyIndex) -> Counts:
    """Count the pods that match ``selector`` but not ``own``.

    ``own`` is the workload's selector. The result maps a node's slot to the number of pods on the node.
    """
    pods = index.pods.count(namespace, selector)
    return counts_without(pods, index.pods.count(namespace, selector.joined(own.requirements))) if pods else pods


def counts_without(counts: Counts, *parts: Counts) -> Counts:
    """Subtract ``parts`` from the pod counts, node slot by node slot. The result has no zeros."""
    if parts == (counts,):  # mostly a workload's pods are all that its selector counts
        return {}
    rest = dict(counts)
    for slot, number in chain.from_iterable(part.items() for part in parts):
        rest[slot] = rest.get(slot, 0) - number
        if rest[slot] <= 0:
            del rest[slot]
    return rest


def counts_own_pods_only(selector: LabelSelector | None, own: LabelSelector | None) -> bool:
    """Whether only the workload's pods count, because the constraint's matchLabels include the workload's."""
    if selector is None or own is None or own.match_expressions:
        return False
    wanted: Mapping[str, str] = selector.match_labels or {}
    return bool(own.match_labels) and (own.match_labels or {}).items() <= wanted.items()


def own_labels(placed: Placed, workload: Workload) -> Mapping[str, str] | None:
    """Return matchLabels that select only the workload's own pods.

    The labels come from the workload's selector, else from its usual application labels. Keys of matchLabelKeys are
    left out, because kube-apiserver refuses a key in both matchLabels and matchLabelKeys. None if no label is left.
    """
    labels, keys = placed.template.pod.labels, placed.constraint.match_label_keys or ()
    own = workload.selector.match_labels if workload.selector else None
    if not own or not own.items() <= labels.items():
        own = {key: labels[key] for key in IDENTITY if key in labels}
    if any(key_faults(key) or value_faults(value) for key, value in own.items()):
        return None
    return {key: value for key, value in own.items() if key not in keys} or None
