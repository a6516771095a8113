"""Which pods are a workload's own, whatever their revision."""

from webhook.core.api.selectors import Selector, selector_from_labels, valid_selector
from webhook.core.api.types import LabelSelector
from webhook.core.workloads.kinds import REPLICATION_CONTROLLER
from webhook.core.workloads.workload import Workload


def selector_of(workload: Workload) -> Selector | None:
    """The selector of the workload's pods; None if the kind has none, or if it is invalid."""
    written = workload.selector
    if written is None and workload.group_kind == REPLICATION_CONTROLLER and workload.templates:
        return selector_from_labels(workload.templates[0].template.labels)
    return compiled(written)


def compiled(written: LabelSelector | None) -> Selector | None:
    """A workload's selector, compiled; None for an empty or invalid one."""
    selector = valid_selector(written)
    return selector if selector is not None and selector.requirements else None
