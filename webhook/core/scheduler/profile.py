"""The fields of a KubeSchedulerProfile with an effect on verdicts.

Source: k8s.io/kube-scheduler config/v1/types.go.
"""

from enum import StrEnum

from msgspec import Struct

from webhook.core.api.types import SCHEDULE_ANYWAY, NodeAffinity, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME, ZONE

# The constraints of defaultingType System. Source: podtopologyspread/plugin.go systemDefaultConstraints.
SYSTEM_CONSTRAINTS = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    SpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
DEFAULT_SCHEDULER = "default-scheduler"  # the scheduler of pods without spec.schedulerName


class DefaultingType(StrEnum):
    """Where default constraints come from: the profile's list, or kube-scheduler's built-in list."""

    LIST = "List"
    SYSTEM = "System"


class SchedulerProfile(Struct, frozen=True, kw_only=True):
    """A profile of the cluster's KubeSchedulerConfiguration.

    ``disabled_filters`` are the filters of the default profile that this profile turns off.

    Source: config/v1/types.go ``KubeSchedulerProfile``.
    """

    name: str = DEFAULT_SCHEDULER
    disabled_filters: tuple[str, ...] = ()
    defaulting_type: DefaultingType = DefaultingType.SYSTEM
    default_constraints: tuple[SpreadConstraint, ...] = ()
    added_affinity: NodeAffinity | None = None
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
