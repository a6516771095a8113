"""The default constraints of the policy, and their overrides."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.types import SpreadConstraint
from webhook.core.policy.options import DefaultsMode, FallbackMode, RevisionKeys
from webhook.core.scheduler.profile import DefaultingType


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
