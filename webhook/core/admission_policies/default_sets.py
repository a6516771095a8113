"""Which default constraints an admission policy can give, and why not the others.

An admission policy knows the pod and its namespace. It knows no owner, replicas, Services or nodes. So a set of
defaults is compiled only if the webhook's result depends on nothing else.
"""

from collections.abc import Iterator

from msgspec import Struct

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.types import IGNORE, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.policy.defaults import DefaultConstraint, DefaultsOverride, configured_constraints, hard_or_soft
from webhook.core.policy.policy import Policy

MOST_IN_A_SET = 64
"""The most constraints and matchLabelKeys of a set. Their cost grows with the pod's labels."""


class DefaultSet(Struct, frozen=True, kw_only=True):
    """The general defaults, or an override.

    Attributes:
        override: The name of the override. None for the general defaults.
        namespaces: The selector of the namespaces.
        pods: The selector of the pods.
        constraints: The compiled constraints, without selectors. Pods of a set without constraints are left alone.
        any_node: Whether only pods without node selector and node affinity get the constraints.
        why_not: The reason for a set without its constraints, or "".
    """

    override: str | None
    namespaces: Selector = EVERYTHING
    pods: Selector = EVERYTHING
    constraints: tuple[SpreadConstraint, ...] = ()
    any_node: bool = False
    why_not: str = ""


def default_sets(policy: Policy) -> tuple[DefaultSet, ...]:
    """Return the overrides in their order, then the general defaults. The first match wins."""
    return tuple(_default_set(policy, override) for override in (*policy.defaults.overrides, None))


def _default_set(policy: Policy, override: DefaultsOverride | None) -> DefaultSet:
    configured = configured_constraints(policy.defaults, override)
    why_not = "; ".join(dict.fromkeys(_obstacles(policy, override, configured)))
    return DefaultSet(
        override=None if override is None else override.name,
        namespaces=EVERYTHING if override is None else override.namespace_selector,
        pods=EVERYTHING if override is None else override.pod_selector,
        # Enough domains are configured, so a constraint with hardWhenDomains is hard with any nodes.
        constraints=() if why_not else tuple(hard_or_soft(configured, lambda *_: True)),
        # Labels of future nodes are unknown, so configured domains do not count for a pod with a node selector.
        any_node=any(
            each.hard_when_domains is not None and each.constraint.node_affinity_policy != IGNORE for each in configured
        ),
        why_not=why_not,
    )


def _obstacles(
    policy: Policy, override: DefaultsOverride | None, configured: tuple[DefaultConstraint, ...]
) -> Iterator[str]:
    """Yield each unknown fact behind the result of a set, with the setting that decides instead."""
    if not policy.defaults.injects:
        yield f"defaults.mode is {policy.defaults.mode}"
        return
    if override is not None and override.min_replicas is not None:
        yield "minReplicas: replicas and autoscalers are unknown"
    if sum(1 + len(each.constraint.match_label_keys or ()) for each in configured) > MOST_IN_A_SET:
        yield f"more than {MOST_IN_A_SET} constraints and matchLabelKeys: kube-apiserver limits the cost"
    for default in configured:
        key, wanted = default.constraint.topology_key or "", default.hard_when_domains
        if wanted is not None and len({*policy.domains.get(key, ())}) < wanted:
            yield f"hardWhenDomains: nodes are unknown, so list {wanted} values of {key} in domains"
        if key == HOSTNAME and not policy.defaults.accept_node_growth:
            yield f"{key}: nodes of Karpenter are unknown, so set acceptNodeGrowth: true"
