"""The spread constraints written by a plan: hard constraints over all pods of a group."""

from collections.abc import Iterable

from msgspec.structs import replace

from webhook.core.api.types import DO_NOT_SCHEDULE, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import MAX_SKEW_OF_A_LABEL, MIN_DOMAINS_OF_A_CAP
from webhook.core.groups.group import Group


def group_constraint(group: Group, key: str, max_skew: int) -> SpreadConstraint:
    """Build a hard constraint on all pods of the group."""
    return SpreadConstraint(
        max_skew=max_skew, topology_key=key, when_unsatisfiable=DO_NOT_SCHEDULE, label_selector=group.selector
    )


def exact_cap(group: Group, key: str, most: int) -> SpreadConstraint:
    """Build a constraint with at most ``most`` pods of the group in every domain."""
    return replace(group_constraint(group, key, most), min_domains=MIN_DOMAINS_OF_A_CAP)


def label_constraint(group: Group, key: str) -> SpreadConstraint:
    """Build a constraint whose only effect is to reject nodes without the label."""
    return group_constraint(group, key, MAX_SKEW_OF_A_LABEL)


def is_replaced(group: Group, constraint: SpreadConstraint) -> bool:
    """Whether a plan replaces the constraint: it is hard, over nodes or zones."""
    return constraint.hard and constraint.topology_key in {HOSTNAME, group.zone_key}


def replaced_constraints(group: Group, constraints: Iterable[SpreadConstraint]) -> tuple[SpreadConstraint, ...]:
    """Return the constraints replaced by a plan."""
    return tuple(constraint for constraint in constraints if is_replaced(group, constraint))
