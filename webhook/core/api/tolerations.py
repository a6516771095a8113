"""Tolerations of taints.

Source: k8s.io/api core/v1/toleration.go; k8s.io/component-helpers scheduling/corev1/helpers.go.
"""

from collections.abc import Iterable, Sequence

from webhook.core.api.types import EXISTS, Taint, Toleration
from webhook.core.api.well_known import NO_EXECUTE


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration tolerates the taint.

    The operators Gt and Lt need the gate TaintTolerationComparisonOperators. It is alpha and off up to 1.37, so they
    tolerate nothing.

    Source: core/v1/toleration.go ``ToleratesTaint``.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    return operator == EXISTS or (operator == "Equal" and (toleration.value or "") == taint.value)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration] | None, effects: Iterable[str]
) -> Taint | None:
    """Find the first taint with one of these effects that no toleration matches.

    Source: corev1/helpers.go ``FindMatchingUntoleratedTaint``.
    """
    wanted = frozenset(effects)
    # In the node's order: messages of older releases name the first.
    for taint in taints:
        if taint.effect in wanted and not any(tolerates(toleration, taint) for toleration in tolerations or ()):
            return taint
    return None


def is_evicted(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether the taint evicts a pod. ``tolerationSeconds`` only delays eviction.

    Source: pkg/controller/tainteviction/taint_eviction.go ``processPodOnNode``.
    """
    lasting = [toleration for toleration in tolerations if toleration.toleration_seconds is None]
    return taint.effect == NO_EXECUTE and first_untolerated((taint,), lasting, (NO_EXECUTE,)) is not None
