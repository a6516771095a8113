"""Soften the hard constraints of a pod without a fitting node, if its author or the policy allows it.

A softened constraint loses minDomains, because kube-apiserver allows it on hard constraints only. If the pod has a
soft constraint with the same key, the hard one is removed instead. An annotation records the changes. It also keeps a
second pass from changing anything.
"""

from collections.abc import Sequence
from itertools import chain, combinations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import SCHEDULE_ANYWAY, WHEN_UNSATISFIABLE, Pod, PodTemplate, SpreadConstraint
from webhook.core.api.well_known import FALLBACK_ANNOTATION
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.apiserver.validation import validate_constraints
from webhook.core.changes.change import Change, Changes, with_changes
from webhook.core.context import Context, problem_of
from webhook.core.defaulting.injection import Injection, skip_reason
from webhook.core.defaulting.record import Operation, annotation_patch
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.policy.options import FallbackMode
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import Problem, may_preempt, without_limits

_MOST_CHOSEN = 4  # with more hard constraints, there are too many subsets to try, and all become soft
_RECORD = "{"  # the first character of a record; values from the pod's author never start with it


class _FallbackRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The annotation ``evenspread.io/fallback``: topology keys of softened and removed constraints."""

    softened: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Fallback(Struct, frozen=True, kw_only=True):
    """All constraints of a pod after softening. ``patch`` is empty unless the mode is ``inject``."""

    constraints: tuple[SpreadConstraint, ...]
    record: _FallbackRecord
    patch: tuple[Operation, ...] = ()


def may_fall_back(pod: PodTemplate, policy: Policy) -> bool:
    """Whether the policy and the pod's annotation allow softening hard constraints of this pod."""
    allowed, wish = policy.defaults.fallback, (pod.meta.annotations or {}).get(FALLBACK_ANNOTATION, "")
    if allowed == FallbackMode.OFF or wish == "false" or wish.startswith(_RECORD):
        return False
    if not wish and allowed != FallbackMode.ALWAYS:
        return False
    return skip_reason(pod, policy) is None and not pod.pod_spec.scheduling_gates


def fall_back(pod: PodTemplate, namespace: str, context: Context, injected: Injection | None = None) -> Fallback | None:
    """Soften as few hard constraints as possible, until some node admits the pod.

    None if the pod fits, if no softening helps, or if new nodes or preemption can make room. ``pod`` is the pod in the
    create request, without the constraints of ``injected``.
    """
    constraints = pod.pod_spec.constraints if injected is None else injected.constraints
    hard = [place for place, each in enumerate(constraints) if each.hard]
    if not hard or can_add_nodes(context.policy, context.cluster.nodes.view()):
        return None

    def problem_with(those: tuple[SpreadConstraint, ...]) -> Problem:
        spec = replace(pod.pod_spec, topology_spread_constraints=those)
        made = Pod(metadata=replace(pod.meta, namespace=namespace, uid=""), spec=spec)
        return problem_of(as_created(made, context.version), context)

    problem = problem_with(constraints)
    if decide(problem).feasible or (may_preempt(problem.pod) and decide(without_limits(problem)).feasible):
        return None
    sizes = range(1, len(hard) + 1) if len(hard) <= _MOST_CHOSEN else [len(hard)]
    for chosen in chain.from_iterable(combinations(hard, size) for size in sizes):
        changes = tuple(chain.from_iterable(_softened(constraints, place) for place in chosen))
        left = with_changes(constraints, changes)
        if decide(problem_with(left)).feasible:
            return _patched(pod, context, changes, left, constraints, injected)
    return None


def _softened(constraints: Sequence[SpreadConstraint], place: int) -> Changes:
    key, min_domains = constraints[place].topology_key, constraints[place].min_domains
    if any(each.topology_key == key and each.when_unsatisfiable == SCHEDULE_ANYWAY for each in constraints):
        return (Change(place),)
    soft = Change(place, WHEN_UNSATISFIABLE, SCHEDULE_ANYWAY)
    return (soft,) if min_domains is None else (soft, Change(place, "minDomains"))


def _patched(  # noqa: PLR0913, PLR0917 each is a fact of its own
    pod: PodTemplate,
    context: Context,
    changes: Changes,
    left: tuple[SpreadConstraint, ...],
    constraints: Sequence[SpreadConstraint],
    injected: Injection | None,
) -> Fallback | None:
    """Return the softened constraints of a pod, with their annotation and JSON Patch.

    None if kube-apiserver would reject the softened pod.

    Args:
        pod: The pod before the changes.
        context: The policy and the cluster.
        changes: The changes of the constraints.
        left: The constraints after the changes.
        constraints: The constraints before the changes.
        injected: The injection of defaults. Its patch applies before this patch.
    """
    keys = {each: constraints[each.index].topology_key or "" for each in changes}
    record = _FallbackRecord(
        softened=tuple(key for each, key in keys.items() if each.field == WHEN_UNSATISFIABLE),
        removed=tuple(key for each, key in keys.items() if not each.field),
    )
    annotations = pod.meta.annotations
    if annotations is None and injected is not None and injected.patch:
        annotations = {}  # the patch of the injection adds them
    noted = annotation_patch(annotations, FALLBACK_ANNOTATION, msgspec.json.encode(record).decode())
    # kube-apiserver must not reject the pod for a change by evenspread.
    if noted is None or validate_constraints(left, pod.labels, "", context.version):
        return None
    # Last index first, so that a removal does not shift the indices of later operations.
    operations = tuple(map(_operation, sorted(changes, key=lambda each: -each.index)))
    return Fallback(
        constraints=left,
        record=record,
        patch=(*operations, noted) if context.policy.defaults.injects else (),
    )


def _operation(change: Change) -> Operation:
    path = f"/spec/topologySpreadConstraints/{change.index}{f'/{change.field}' if change.field else ''}"
    return {"op": "remove", "path": path} | ({} if change.value is None else {"op": "replace", "value": change.value})
