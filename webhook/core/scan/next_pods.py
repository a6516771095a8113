"""The next pod of each template of a workload, as its controller and admission make it, and what injection adds."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import PodTemplate
from webhook.core.defaulting.injection import Injection, inject
from webhook.core.defaulting.next_pod import after_admission, namespace_of, next_pod, problem_of
from webhook.core.index.overlay import with_owners
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scan.surroundings import Surroundings
from webhook.core.scheduler.problem import Problem
from webhook.core.workloads.workload import Template, Workload


class ScannedTemplate(Struct, frozen=True, kw_only=True):
    """One template and its next pod.

    Shape: ``sent`` is the pod as its controller sends it; ``problem`` is what its scheduler faces, with the constraints
    that are ``injected`` if the configuration says so, and ``index`` the cluster with the pod's owners.
    """

    template: Template
    sent: PodTemplate
    injected: bool
    problem: Problem
    index: ReadOnlyIndex


def next_pods(workload: Workload, within: Surroundings) -> Iterator[ScannedTemplate]:
    """The next pod of each template; a pod that exists is its own.

    Shape: nothing where nodes or pods are not known, and for objects that do not have whole pods.
    """
    index, here = within.index, within.context
    if index is None or not workload.whole:
        return
    namespace = namespace_of(workload.meta.namespace, here.namespace)
    for template in workload.templates:
        made = next_pod(workload, template, namespace, index, applied=True)
        around = with_owners(index, made.owners) if made.owners else index
        posted = not workload.is_pod
        ready = after_admission(made.template, namespace, here.policy, around, here.version, posted=posted)
        yield ScannedTemplate(
            template=template,
            sent=made.template,
            injected=isinstance(ready.injected, Injection),
            problem=problem_of(ready.pod, around, here.policy),
            index=around,
        )


def to_inject(of: ScannedTemplate, namespace: str, within: Surroundings) -> Injection | None:
    """What injection adds to the next pod, or would add if defaults were not only observed; None for nothing."""
    here = within.context
    defaults = here.policy.defaults
    if defaults.mode == "off":
        return None
    policy = replace(here.policy, defaults=replace(defaults, mode="inject"))
    found = inject(of.sent, namespace, policy, of.index, here.version, waited=True)
    return found if isinstance(found, Injection) else None
