"""Decide on a mutating request: inject defaults into pods, and soften constraints.

`mutate` never raises. For a workload, `plan_delivery` injects the plan of its SpreadGroup.
"""

from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import OutOfTimeError
from webhook.core.context import Context
from webhook.core.decoders import has_more_values
from webhook.core.defaulting.fallback import Fallback, fall_back, may_fall_back
from webhook.core.defaulting.injection import Injection, Skip, SkipReason, inject
from webhook.core.index.owners import Awaited
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.plan_delivery import deliver_plan, takes_plans
from webhook.core.rules.frame.subject import Subject
from webhook.core.rules.object_cost import MAX_VALUES, is_costly
from webhook.core.text import one_line
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import Workload

_OPTED_OUT = Skip(SkipReason.OPTED_OUT)


def mutate(request: AdmissionRequest, context: Context, *, waited: bool = False) -> Decision:
    """Answer a request of the mutating route. The decision may have a patch, and never denies.

    If not ``waited``, the decision may ask to wait for an object (`awaits`). When the object has arrived, call again.
    To decide without the object, call again with ``waited``.
    """
    if request.object is not None and has_more_values(request.object, MAX_VALUES):
        return Decision(reason="unreadable")
    if takes_plans(request):
        answer = deliver_plan(request, context)
        return replace(answer, delivery=answer.reason or "delivered")
    is_pod = (request.api_version, request.kind) == ("v1", "Pod")
    if request.object is None or request.sub_resource or request.operation != "CREATE" or not is_pod:
        return Decision(reason="nothing to patch" if is_pod else "not a pod")
    try:
        workload = read_workload(request.object, api_version="v1", kind="Pod")
    except DecodeError:
        workload = None  # the API server rejects the pod later, with a better message
    if workload is None or not workload.templates:
        return Decision(reason="unreadable")
    result = inject(workload.templates[0].pod, request.namespace, context, waited=waited)
    if isinstance(result, Awaited):
        return Decision(reason="too-early", awaits=result)
    injection = None if isinstance(result, Skip) else result
    fallback = None if result == _OPTED_OUT else _fallback(workload, request.namespace, context, injection)
    audit = {}
    if injection is not None:
        audit["injected" if injection.patch else "would-inject"] = f"revision {injection.record.revision}"
    if fallback is not None:
        keys = " ".join((*fallback.record.softened, *fallback.record.removed))
        audit["fell-back" if fallback.patch else "would-fall-back"] = one_line(keys)
    return Decision(
        reason=result.reason if isinstance(result, Skip) else "",
        injection=injection,
        fallback=fallback,
        patch=(*(injection.patch if injection else ()), *(fallback.patch if fallback else ())),
        audit=audit,
    )


def _fallback(workload: Workload, namespace: str, context: Context, injection: Injection | None) -> Fallback | None:
    """Return the patch to make hard constraints of a pod soft. None without a patch.

    None if the policy or the pod's annotation forbids a patch, or if `fall_back` finds no useful patch. Also None if
    the cluster data is missing or the computation takes too long.
    """
    pod, index, policy = workload.templates[0].pod, context.index, context.policy
    if index is None or not may_fall_back(pod, policy) or is_costly(workload, len(index.nodes.view())):
        return None
    subject = Subject(workload=workload, placed=(), context=context)
    if subject.lacks("nodes", "pods"):
        return None
    soften = partial(fall_back, pod, namespace, context, injection)
    if not context.budget.may_search:
        return soften()
    with suppress(OutOfTimeError), context.budget.limit_in_a_thread():
        return soften()
    return None
