"""What a rolling update allows: surge, and how uneven the end can be."""

from webhook.core.workloads.built_in_objects import IntOrText
from webhook.core.workloads.workload import Strategy

# The API server's defaults for a Deployment that says nothing.
DEFAULT_SURGE: IntOrText = "25%"
_DEFAULT = "25%"  # of maxUnavailable too


def surge_of(strategy: Strategy | None, replicas: int) -> int:
    """Pods above ``replicas`` during a rolling update; 0 for Recreate, and where the text is no percentage.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxSurge rounds up.
    """
    if strategy is not None and strategy.type == "Recreate":
        return 0
    hundredths = _hundredths(None if strategy is None else strategy.max_surge, replicas)
    return -(-hundredths // 100)


def unavailable_of(strategy: Strategy | None, replicas: int) -> int:
    """Pods that may be missing during a rolling update; all of them for Recreate.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxUnavailable rounds down, and is
    1 where both are 0.
    """
    if strategy is not None and strategy.type == "Recreate":
        return replicas
    allowed = _hundredths(None if strategy is None else strategy.max_unavailable, replicas) // 100
    return allowed or int(not surge_of(strategy, replicas))


def unavailable_ordinals(strategy: Strategy | None, replicas: int) -> int:
    """Pods of a StatefulSet that may be missing during a rolling update, at least 1.

    Source: statefulset/stateful_set_utils.go ``getStatefulSetMaxUnavailable``.
    """
    written = None if strategy is None else strategy.max_unavailable
    return 1 if written is None else max(1, _hundredths(written, replicas) // 100)


def _hundredths(written: IntOrText | None, replicas: int) -> int:
    """A number of pods or a percentage of the replicas, in hundredths of a pod; 0 for any other text."""
    if isinstance(written, int):
        return max(written, 0) * 100
    percent = (written or _DEFAULT).removesuffix("%")
    # Longer numbers are refused by the API server, and int() would take its time over them.
    return replicas * int(percent) if percent.isdecimal() and percent.isascii() and len(percent) < 6 else 0


def worst_final_skew(domains: int, replicas: int, surge: int, max_skew: int) -> int:
    """Largest difference between two domains that some order of a rolling update leaves behind.

    Shape: ``surge`` is at least 1. Every placement keeps the scheduler's rule over old and new pods together; any old
    pod may be deleted next; the old pods may start in any arrangement that maxSkew allows.
    Unit: pods.
    """
    if domains < 2:
        return 0
    # The worst order: the update ends with as many pods as possible in one domain and as few as possible in another.
    others = domains - 1
    old = min((replicas + others * max_skew) // domains, replicas)
    apart = max_skew + min(surge, old)
    most = min((replicas + surge + others * max_skew) // domains, (replicas + others * apart) // domains, replicas)
    return most - max(replicas - others * most, most - apart, 0)
