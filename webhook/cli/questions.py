"""Which pods are asked about: those of a manifest, one object of the cluster, or all that wait.

    manifest, KIND/NAME, --pending -> Question -> core.explain

A pod that exists is taken as it is; of a manifest or a workload the next pod is, as it would be created.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct, structs

from webhook.cli.looking import Frame
from webhook.cli.refused import Refused, refused
from webhook.core.decoding import decode
from webhook.core.defaulting import Injection, Skip
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Workload, read_exactly, read_workload, stated_type
from webhook.core.model import OwnerReference, Pod
from webhook.core.policy import Policy, profile_for
from webhook.core.rules.finding import one_line
from webhook.core.verdict import Problem, take
from webhook.core.workload import Posted, made_from, namespace_of, posted, unknown_labels

_POD = msgspec.json.Decoder(Pod)
_CHAIN = 3  # Pod, Job, CronJob: no chain of controllers is longer


class Question(Struct, frozen=True, kw_only=True):
    """One pod to judge.

    Shape: ``title`` is what people call it. ``path`` stands before ``spec`` in the object that was written. ``notes``
    are sentences about how the pod came to be what it is. ``exists`` is false for one that is yet to be created.
    ``refused`` is why kube-apiserver refuses it, or the pods that are to come beside it.
    """

    title: str
    pod: Pod
    path: str = ""
    notes: tuple[str, ...] = ()
    exists: bool = True
    refused: tuple[Refused, ...] = ()

    @property
    def bound(self) -> bool:
        """Whether the scheduler has nothing to decide any more."""
        return self.exists and bool(self.pod.pod_spec.node_name)


def of_object(
    raw: bytes | Raw | Mapping[str, object], frame: Frame, index: ClusterIndex, *, applied: bool
) -> Iterator[Question]:
    """The questions about one object: itself if it is a pod, else the next pod of each of its templates.

    Shape: ``applied`` says that the object stands in the cluster. What has to exist for its pods is put into the index.
    Errors: DecodeError for an object that the API's types do not fit.
    """
    stated = stated_type(raw)
    value, _ = read_exactly(raw, stated)
    workload = read_workload(value, frame.policy.workloads)
    if workload is None or not workload.whole:
        return
    if workload.kind == "Pod" and (applied or workload.meta.uid):
        yield of_pod(_pod(value), frame.policy)
        return
    namespace = namespace_of(workload, frame.namespace)
    title = one_line(f"{workload.kind} {namespace}/{workload.meta.name or workload.meta.generate_name or '(unnamed)'}")
    for template in workload.templates:
        made = made_from(workload, template, namespace, index, applied=applied)
        for owner in made.owners:
            if index.owner(owner.api_version, owner.kind, namespace, owner.meta.name) is None:
                index.apply("ADDED", owner)
        ready = posted(made.template, namespace, frame.policy, index, frame.version)
        site = f" ({template.path.rstrip('.')})" if len(workload.templates) > 1 else ""
        yield Question(
            title=title if workload.kind == "Pod" else f"the next pod of {title}{site}",
            pod=ready.pod,
            path=template.path,
            notes=(*_made_notes(value, workload, ready, frame.policy), *_notes(ready.pod, frame.policy)),
            exists=False,
            refused=refused(workload, template, frame),
        )


def of_pod(pod: Pod, policy: Policy) -> Question:
    """The question about a pod that exists."""
    return Question(title=one_line(f"Pod {pod.meta.namespace}/{pod.meta.name}"), pod=pod, notes=_notes(pod, policy))


def waiting_of(kind: str, name: str, namespace: str, index: ClusterIndex) -> tuple[Pod, ...]:
    """The Pending pods of a workload, oldest first."""
    return tuple(
        pod
        for pod in sorted(index.waiting_pods(namespace), key=_age)
        if (kind, name) in {(each.kind, each.name) for each in controllers(pod, index)}
    )


def controllers(pod: Pod, index: ClusterIndex) -> list[OwnerReference]:
    """Who controls the pod, who controls that, and so on, as far as it is known."""
    found: list[OwnerReference] = []
    reference = pod.meta.controller
    while reference is not None and len(found) < _CHAIN:
        found.append(reference)
        owner = index.owner(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        reference = owner.meta.controller if owner is not None else None
    return found


def waiting(index: ClusterIndex, namespaces: Iterable[str]) -> list[Pod]:
    """The pods that wait for a node, oldest first; those on their way out are none of them."""
    found = [pod for namespace in namespaces for pod in index.waiting_pods(namespace)]
    return sorted((pod for pod in found if pod.meta.deletion_timestamp is None), key=_age)


def _age(pod: Pod) -> tuple[str, str, str]:
    return pod.meta.creation_timestamp or "", pod.meta.namespace, pod.meta.name


def _pod(value: bytes | Raw | Mapping[str, object]) -> Pod:
    """Errors: DecodeError."""
    return decode(value if isinstance(value, bytes | Raw) else msgspec.json.encode(value), _POD, "v1.Pod")


def is_foreign(pod: Pod, policy: Policy) -> bool:
    """Whether another scheduler than the configured ones places it."""
    name = pod.pod_spec.scheduler_name
    return bool(name) and name not in policy.scheduler_names


def _notes(pod: Pod, policy: Policy) -> tuple[str, ...]:
    """What about the pod keeps the scheduler from trying it at all."""
    spec, found = pod.pod_spec, []
    if spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in spec.scheduling_gates)
        found.append(f"scheduling gates ({gates}): the scheduler does not try it until they are gone")
    if is_foreign(pod, policy):
        found.append(f"{spec.scheduler_name} schedules it, which may decide otherwise (schedulerNames)")
    if spec.node_name:
        found.append(f"it is bound to {spec.node_name}: the scheduler has nothing to decide any more")
    if pod.meta.deletion_timestamp is not None:
        found.append("it is being deleted: the scheduler does not try it")
    return tuple(found)


def _made_notes(
    value: bytes | Raw | Mapping[str, object], workload: Workload, ready: Posted, policy: Policy
) -> Iterator[str]:
    """How a pod that does not exist yet was made up."""
    mode, injected = policy.defaults.mode, ready.injected
    if isinstance(injected, Injection):
        given = ", ".join(f"{each.topology_key} {each.when_unsatisfiable}" for each in injected.constraints)
        yield f"with the constraints that this webhook injects: {given}"
    elif isinstance(injected, Skip):
        yield f"this webhook injects nothing: {injected.reason}"
    elif not ready.pod.pod_spec.constraints:
        yield f"judged without default constraints of this webhook (defaults.mode is {mode})"
    for label in unknown_labels(ready.pod):
        yield f"{label} is not known yet: the pod is taken for the first of a new revision"
    if workload.suspended:
        yield "suspended: its controller makes no pod now"
    if workload.kind == "DaemonSet":
        yield "a DaemonSet binds each pod to a node of its own; here any node is asked"
    if workload.kind == "StatefulSet" and _claims_of(value):
        yield "the claims of volumeClaimTemplates are not looked at"


class _Claims(Struct, rename="camel"):
    volume_claim_templates: tuple[Raw, ...] | None = None


class _Spec(Struct):
    spec: _Claims | None = None


def _claims_of(value: bytes | Raw | Mapping[str, object]) -> bool:
    try:
        read = msgspec.json.decode(value if isinstance(value, bytes | Raw) else msgspec.json.encode(value), type=_Spec)
    except msgspec.ValidationError:
        return False
    return read.spec is not None and bool(read.spec.volume_claim_templates)


def problem_of(pod: Pod, index: ClusterIndex, policy: Policy) -> Problem:
    """What its scheduler looks at."""
    return take(index, pod, profile=profile_for(policy, pod.pod_spec.scheduler_name))


def with_siblings(question: Question, number: int, of: str) -> Question:
    """The question about one of several Pending pods of a workload."""
    return structs.replace(question, title=f"{question.title} (1 of {number} Pending of {one_line(of)})")
