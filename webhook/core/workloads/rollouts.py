"""Rolling updates: how many pods they add, how many may be missing, and the skew afterwards."""

from webhook.core.workloads.built_in_objects import IntOrText
from webhook.core.workloads.workload import Strategy

# kube-apiserver's defaults for a Deployment.
DEFAULT_SURGE: IntOrText = "25%"
_MAX_DIGITS = 5  # No sensible percentage is longer, and the author chooses the length.
_DEFAULT = "25%"  # also for maxUnavailable


def surge_of(strategy: Strategy | None, replicas: int) -> int:
    """Return how many pods above ``replicas`` a rolling update may run. Recreate and invalid text count as 0.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxSurge rounds up.
    """
    if strategy is not None and strategy.type == "Recreate":
        return 0
    hundredths = _hundredths(None if strategy is None else strategy.max_surge, replicas)
    return -(-hundredths // 100)


def unavailable_of(strategy: Strategy | None, replicas: int) -> int:
    """Return how many pods may be missing during a rolling update.

    With Recreate, all pods may be missing.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxUnavailable rounds down. If
        maxUnavailable and maxSurge are both 0, maxUnavailable is 1.
    """
    if strategy is not None and strategy.type == "Recreate":
        return replicas
    allowed = _hundredths(None if strategy is None else strategy.max_unavailable, replicas) // 100
    return allowed or int(not surge_of(strategy, replicas))


def unavailable_ordinals(strategy: Strategy | None, replicas: int) -> int:
    """Return how many of a StatefulSet's pods may be missing during an update, at least 1.

    Source: statefulset/stateful_set_utils.go ``getStatefulSetMaxUnavailable``.
    """
    written = None if strategy is None else strategy.max_unavailable
    return 1 if written is None else max(1, _hundredths(written, replicas) // 100)


def _hundredths(written: IntOrText | None, replicas: int) -> int:
    """Convert a number of pods or a percentage to hundredths of a pod. Other text counts as 0."""
    if isinstance(written, int):
        return max(written, 0) * 100
    percent = (written or _DEFAULT).removesuffix("%")
    # kube-apiserver rejects longer numbers, and int() is slow for them.
    return replicas * int(percent) if percent.isdecimal() and percent.isascii() and len(percent) <= _MAX_DIGITS else 0


def worst_final_skew(domains: int, replicas: int, surge: int, max_skew: int) -> int:
    """Return the largest skew in pods that a rolling update can leave behind.

    Every placement obeys maxSkew over old and new pods together. The update may delete any old pod next. Old pods may
    start in any arrangement within maxSkew. ``surge`` is at least 1.
    """
    if domains < 2:
        return 0
    # The worst order ends with most pods in one domain and fewest in another.
    others = domains - 1
    old = min((replicas + others * max_skew) // domains, replicas)
    apart = max_skew + min(surge, old)
    most = min((replicas + surge + others * max_skew) // domains, (replicas + others * apart) // domains, replicas)
    return most - max(replicas - others * most, most - apart, 0)
