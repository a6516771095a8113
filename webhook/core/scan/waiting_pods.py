"""Sort the Pending pods of a workload by cause."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_results import PendingCause, PendingPod
from webhook.core.what_if.pods_to_explain import is_foreign

# Different pods of one workload to explain. Most pods of a template are equal and share one answer.
_MOST_DIFFERENT = 16
_MOST_NAMED = 10  # The most pods of a workload listed by name, the oldest first.


class WaitingPods(Struct, frozen=True, kw_only=True):
    """The Pending pods of a workload.

    Attributes:
        causes: The number of pods by cause.
        since: The creation time of the oldest pod, an ISO time.
        named: The oldest pods.
        spread: Why the oldest pod with cause spread waits.
    """

    causes: Mapping[PendingCause, int] = {}
    since: str = ""
    named: tuple[PendingPod, ...] = ()
    spread: Explanation | None = None


def waiting_pods(pods: Sequence[Pod], context: Context) -> WaitingPods:
    """Explain Pending pods, the oldest first.

    Equal pods share a cause. After `_MOST_DIFFERENT` unequal pods, the cause of further unequal pods is ``unknown``.
    """
    causes, counts, spread = dict[bytes, PendingCause](), Counter[PendingCause](), None
    named = list[PendingPod]()
    for pod in pods:
        alike = _decisive(pod)
        if alike not in causes and len(causes) < _MOST_DIFFERENT:
            explanation = explain_pod(problem_of(pod, context), brief=True)
            causes[alike] = pending_cause(pod, explanation, context.policy)
            if spread is None and causes[alike] is PendingCause.SPREAD:
                spread = explanation
        cause = causes.get(alike, PendingCause.UNKNOWN)
        counts[cause] += 1
        if len(named) < _MOST_NAMED:
            named.append(PendingPod(pod.meta.name, pod.meta.uid, pod.meta.creation_timestamp or "", cause))
    by_cause = {cause: counts[cause] for cause in PendingCause if counts[cause]}
    since = named[0].since if named else ""
    return WaitingPods(causes=by_cause, since=since, named=tuple(named), spread=spread)


def pending_cause(pod: Pod, explanation: Explanation, policy: Policy) -> PendingCause:
    """Return the cause of a Pending pod, given its explanation."""
    if pod.pod_spec.scheduling_gates:
        return PendingCause.GATED
    if is_foreign(pod, policy):
        return PendingCause.FOREIGN
    return PendingCause.FITS if explanation.cause is None else PendingCause(str(explanation.cause))


def _decisive(pod: Pod) -> bytes:
    """Encode the fields of a pod that decide where it fits. The name is left out, unless it names ephemeral claims."""
    volumes, status = pod.pod_spec.volumes or (), pod.status
    name = pod.meta.name if any(volume.ephemeral is not None for volume in volumes) else ""
    nominated = status.nominated_node_name if status is not None else None
    return msgspec.json.encode((pod.pod_spec, pod.labels, pod.meta.owner_references, name, nominated))
