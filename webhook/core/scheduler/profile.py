"""A scheduler's profile, as far as a verdict depends on it."""

from msgspec import Struct

from webhook.core.api.types import NodeAffinity, SpreadConstraint

DEFAULT_SCHEDULER = "default-scheduler"  # the scheduler of pods without spec.schedulerName


class SchedulerProfile(Struct, frozen=True, kw_only=True):
    """One profile of the cluster's KubeSchedulerConfiguration.

    Shape: ``disabled_filters`` are the filter plugins of the default profile that this one does not run.
    """

    name: str = DEFAULT_SCHEDULER
    disabled_filters: tuple[str, ...] = ()
    defaulting_type: str = "System"  # System | List
    default_constraints: tuple[SpreadConstraint, ...] = ()
    added_affinity: NodeAffinity | None = None
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
