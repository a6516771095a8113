"""The next pod of each template of a workload in the cluster, and what injection adds to it."""

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.core.coming_pods.next_pod import ComingPod, PodSource, coming_pod
from webhook.core.defaulting.injection import Injection, inject
from webhook.core.policy.policy import DefaultsMode
from webhook.core.scan.scan_context import ScanContext
from webhook.core.workloads.workload import Workload, namespace_of


def next_pods(workload: Workload, within: ScanContext) -> Iterator[ComingPod]:
    """The next pod of each template; a pod that exists is its own.

    Shape: nothing where nodes or pods are not known, and for objects that do not have whole pods.
    """
    if within.index is None or not workload.whole:
        return
    namespace = namespace_of(workload.meta.namespace, within.context.namespace)
    for template in workload.templates:
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=True)
        yield coming_pod(source, within.context, posted=not workload.is_pod)


def to_inject(of: ComingPod) -> Injection | None:
    """What injection adds to the next pod, or would add if defaults were not only observed; None for nothing."""
    policy = of.within.policy
    defaults = policy.defaults
    if defaults.mode == DefaultsMode.OFF:
        return None
    policy = replace(policy, defaults=replace(defaults, mode=DefaultsMode.INJECT))
    found = inject(of.sent, of.source.namespace, replace(of.within, policy=policy), waited=True)
    return found if isinstance(found, Injection) else None
