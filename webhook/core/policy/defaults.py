"""The default constraints of the policy, and their overrides."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from webhook.core.policy.options import DefaultsMode, FallbackMode, RevisionKeys
from webhook.core.scheduler.profile import SYSTEM_CONSTRAINTS, DefaultingType


class DefaultConstraint(Struct, frozen=True, kw_only=True, rename="camel"):
    """A default constraint. With ``hard_when_domains``, it is hard if at least this many domains are eligible."""

    constraint: SpreadConstraint
    hard_when_domains: int | None = None


class DefaultsOverride(Struct, frozen=True, kw_only=True, rename="camel"):
    """Default constraints for the selected pods, in place of the general ones. The first match wins.

    ``min_replicas`` is compared with the workload's most replicas, autoscaling included. None matches any number.
    """

    name: str
    namespace_selector: Selector = EVERYTHING
    pod_selector: Selector = EVERYTHING
    min_replicas: int | None = None
    default_constraints: tuple[DefaultConstraint, ...] = ()


class Defaults(Struct, frozen=True, kw_only=True, rename="camel"):
    """The defaults for pods without constraints.

    Attributes:
        owners: Further kinds whose pods get defaults, as pairs of API version and kind.
        accept_node_growth: Whether to inject hostname defaults in clusters with Karpenter, which adds nodes for them.
    """

    mode: DefaultsMode = DefaultsMode.OBSERVE
    defaulting_type: DefaultingType = DefaultingType.LIST
    default_constraints: tuple[DefaultConstraint, ...] = ()
    overrides: tuple[DefaultsOverride, ...] = ()
    match_label_keys: RevisionKeys = RevisionKeys.AUTO
    fill_null_selector: bool = False
    owners: tuple[tuple[str, str], ...] = ()
    fallback: FallbackMode = FallbackMode.ANNOTATION
    accept_node_growth: bool = False

    @property
    def injects(self) -> bool:
        """Whether pods get a patch."""
        return self.mode == DefaultsMode.INJECT


def override_for(
    defaults: Defaults, namespace_labels: Mapping[str, str], pod_labels: Mapping[str, str], replicas: int | None
) -> DefaultsOverride | None:
    """Return the first override that selects this pod. Unknown ``replicas`` match no ``minReplicas``."""
    for override in defaults.overrides:
        if (
            override.namespace_selector.matches(namespace_labels)
            and override.pod_selector.matches(pod_labels)
            and (override.min_replicas is None or (replicas is not None and replicas >= override.min_replicas))
        ):
            return override
    return None


def configured_constraints(defaults: Defaults, override: DefaultsOverride | None) -> tuple[DefaultConstraint, ...]:
    """Return the constraints of an override, or the general ones for None."""
    if override is not None:
        return override.default_constraints
    if defaults.defaulting_type == DefaultingType.SYSTEM:
        return tuple(DefaultConstraint(constraint=constraint) for constraint in SYSTEM_CONSTRAINTS)
    return defaults.default_constraints


def hard_or_soft(
    configured: Sequence[DefaultConstraint], is_hard: Callable[[int, SpreadConstraint], bool]
) -> Iterator[SpreadConstraint]:
    """Yield each default constraint in its hard or soft form.

    If two constraints become equal, only the constraint without ``hardWhenDomains`` is yielded.

    Args:
        configured: The default constraints.
        is_hard: Whether so many domains exist for a constraint with ``hardWhenDomains``.
    """
    written = {default.constraint.identity for default in configured if default.hard_when_domains is None}
    decided: set[tuple[str | None, str | None]] = set()
    for default in configured:
        constraint = default.constraint
        if default.hard_when_domains is not None:
            hard = is_hard(default.hard_when_domains, constraint)
            constraint = replace(
                constraint,
                when_unsatisfiable=DO_NOT_SCHEDULE if hard else SCHEDULE_ANYWAY,
                # kube-apiserver rejects minDomains on a soft constraint.
                min_domains=constraint.min_domains if hard else None,
            )
            if constraint.identity in written | decided:
                continue
        decided.add(constraint.identity)
        yield constraint
