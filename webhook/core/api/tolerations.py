"""Tolerations of taints.

Source: k8s.io/api core/v1/toleration.go; k8s.io/component-helpers scheduling/corev1/helpers.go.
"""

import re
from collections.abc import Iterable, Sequence

from webhook.core.api.requirements import is_beyond
from webhook.core.api.types import EXISTS, GREATER, LESS, Taint, Toleration
from webhook.core.api.well_known import NO_EXECUTE

# Gt and Lt of tolerations accept only canonical decimals (content.IsDecimalInteger).
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Whether the toleration tolerates the taint.

    ``compares`` is the gate TaintTolerationComparisonOperators, alpha and off up to 1.37.

    Source: core/v1/toleration.go ``ToleratesTaint``.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Equal":
        return (toleration.value or "") == taint.value
    if operator in {GREATER, LESS}:
        return compares and _compares_taint(operator, taint.value, toleration.value or "")
    return operator == EXISTS


def _compares_taint(operator: str, taint: str, bound: str) -> bool:
    """Source: core/v1/toleration.go ``compareNumericValues``."""
    if not _DECIMAL.fullmatch(taint) or not _DECIMAL.fullmatch(bound):
        return False
    return is_beyond(operator, taint, bound)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration] | None, effects: Iterable[str], *, compares: bool = False
) -> Taint | None:
    """Find the first taint with one of these effects that no toleration matches.

    ``compares`` enables the operators Gt and Lt.

    Source: corev1/helpers.go ``FindMatchingUntoleratedTaint``.
    """
    wanted = frozenset(effects)
    # In the node's order: messages of older releases name the first.
    for taint in taints:
        if taint.effect in wanted and not (
            tolerations and any(tolerates(toleration, taint, compares=compares) for toleration in tolerations)
        ):
            return taint
    return None


def is_evicted(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether the taint evicts a pod. ``tolerationSeconds`` only delays eviction.

    Source: pkg/controller/tainteviction/taint_eviction.go ``processPodOnNode``.
    """
    lasting = [toleration for toleration in tolerations if toleration.toleration_seconds is None]
    return taint.effect == NO_EXECUTE and first_untolerated((taint,), lasting, (NO_EXECUTE,)) is not None
