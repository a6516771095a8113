"""Select the pods to explain: of a manifest, of an object, or all pending pods.

An existing pod is explained as it is. For a manifest or a workload, the next pod is explained.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct, structs

from webhook.core.api.selectors import NOTHING, valid_selector
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.apiserver.decoding import decode
from webhook.core.context import Context, problem_of
from webhook.core.decoders import decoder_of
from webhook.core.defaulting.injection import Injection, Skip
from webhook.core.explain.edit_target import EditTarget, edit_target
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controller_kind, controllers, has_same_template, topmost_workload
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.daemon_pods import pod_for_node, target_node, wanted_nodes, with_daemon_tolerations
from webhook.core.pods_to_create.next_pod import NextPod, PodSource, next_pod_of, unknown_labels
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.neighbours import widened_terms
from webhook.core.text import agree, listed, object_title, one_line, plural
from webhook.core.what_if.refused import Refused, refused
from webhook.core.what_if.sources import add_owners
from webhook.core.workloads.kinds import DAEMON_SET
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import Workload, namespace_of

_MAX_COMPARED_NODES = 200  # The most nodes of a DaemonSet to compare. Each needs a verdict.
_POD = decoder_of(Pod)


class PodToExplain(Struct, frozen=True, kw_only=True):
    """One pod to explain.

    Attributes:
        path: The path before ``spec`` in the object.
        notes: Sentences about the origin of the pod.
        exists: Whether the cluster has the pod.
        unknown: The kinds of objects that the admission plugins need for the pod and the index lacks.
        refused: Why kube-apiserver rejects this pod or other pods of its workload.
        target: The object of the cluster to edit. None for a manifest.
        settled: Why the pod needs no explanation. Empty if it needs one.
        maker: The workload, if it creates its pods from a single template. None if unknown or absent.
    """

    title: str
    pod: Pod
    path: str = ""
    notes: tuple[str, ...] = ()
    exists: bool = True
    unknown: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    target: EditTarget | None = None
    settled: str = ""
    maker: Workload | None = None

    @property
    def bound(self) -> bool:
        """Whether the scheduler has nothing left to decide about the pod."""
        return bool(self.settled) or (self.exists and bool(self.pod.pod_spec.node_name))


def pods_of_object(
    raw: bytes | Raw | Mapping[str, object], stated: TypeMeta, context: Context, index: ClusterIndex, *, applied: bool
) -> Iterator[PodToExplain]:
    """Yield the pods to explain for an object from a file or from the cluster.

    For an existing pod, yield this pod. Otherwise, yield the next pod of each pod template.

    Args:
        raw: The object.
        stated: The object's apiVersion and kind. ``raw`` lacks these fields if it is an item of a list.
        context: The cluster and the policy.
        index: Receives the owners of the pods.
        applied: Whether the object is in the cluster.

    Raises:
        DecodeError: The object does not fit the API's types.
    """
    value, _ = read_exactly(raw, stated, context.version)
    workload = read_workload(value, context.policy.workloads, api_version=stated.api_version, kind=stated.kind)
    if workload is None or not workload.whole:
        return
    # A pod with a uid exists, with the constraints it has now.
    if workload.is_pod and (applied or workload.meta.uid):
        yield pod_to_explain(_pod(value), context, index if applied else None)
        return
    namespace = namespace_of(workload.meta.namespace, context.namespace)
    name = workload.meta.name or workload.meta.generate_name or "(unnamed)"
    title = one_line(object_title(workload.kind, namespace, name))
    for template in workload.templates:
        kept = applied or has_same_template(workload, template.pod, namespace, index)
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=kept)
        add_owners(source, index)
        next_pod = next_pod_of(source, context)
        site = f" ({template.path.rstrip('.')})" if len(workload.templates) > 1 else ""
        question = PodToExplain(
            title=title if workload.is_pod else f"the next pod of {title}{site}",
            pod=next_pod.pod,
            path=template.path,
            notes=(*_made_notes(next_pod), *_notes(next_pod.pod, context)),
            exists=False,
            unknown=next_pod.unknown,
            refused=refused(next_pod),
            target=edit_target(next_pod.pod, index) if applied else None,
            maker=workload if len(workload.templates) == 1 and not workload.is_pod else None,
        )
        if workload.group_kind == DAEMON_SET:
            yield from _of_nodes(question, title, workload, context)
        else:
            yield question


def _of_nodes(question: PodToExplain, title: str, workload: Workload, context: Context) -> Iterator[PodToExplain]:
    """Yield one pod for each group of nodes with the same scheduling result.

    Only nodes without the DaemonSet's pod count.
    """
    index = context.cluster
    pod, view = with_daemon_tolerations(question.pod), index.nodes.view()
    wanted = wanted_nodes(pod, view)
    if not wanted:
        note = "no node should run a pod of the DaemonSet, so none is created; the explanation covers all nodes"
        yield structs.replace(question, pod=pod, notes=(note, *question.notes))
        return
    namespace = pod.meta.namespace
    made = {target_node(pod): pod for pod in waiting_pods_of(workload.kind, workload.meta.name, namespace, index)}
    running = index.pods.count(namespace, valid_selector(workload.selector) or NOTHING, terminating=True)
    lacking = [
        view.names[slot] for slot in node_sets.to_slots(wanted) if slot not in running or view.names[slot] in made
    ]
    nodes, total = wanted.bit_count(), len(lacking)
    if not lacking:
        has = (
            "the node that should run it already has its pod"
            if nodes == 1
            else f"all {plural(nodes, 'node')} that should run it already have its pod"
        )
        yield structs.replace(question, title=title, pod=pod, settled=has)
        return
    alike: dict[object, list[str]] = {}
    for name in lacking[:_MAX_COMPARED_NODES]:
        verdict = decide(problem_of(made.get(name) or pod_for_node(pod, name), context))
        # Thousands of nodes mostly have the same answer, so a single pod represents them.
        alike.setdefault((name in made, verdict.status(name)), []).append(name)
    count = f"{total:,} of {plural(nodes, 'node')} that should run it {agree(total, 'have')} no running pod"
    count += f"; only the first {_MAX_COMPARED_NODES} were checked" * (total > _MAX_COMPARED_NODES)
    for names in alike.values():
        first, others = names[0], len(names) - 1
        note = f"{count}; same result for {others} more: {listed(names[1:], 5)}" if others else count
        to_explain = (
            pod_to_explain(made[first], context, index)
            if first in made
            else structs.replace(question, pod=pod_for_node(pod, first))
        )
        named = to_explain.title if first in made else one_line(f"the pod of {title} for node {first}")
        yield structs.replace(to_explain, title=named, notes=(note, *to_explain.notes))


def pod_to_explain(pod: Pod, context: Context, index: ReadOnlyIndex | None = None) -> PodToExplain:
    """Describe an existing pod. With an index, include the object to edit."""
    title = one_line(object_title("Pod", pod.meta.namespace, pod.meta.name))
    if controller_kind(pod) == DAEMON_SET and (node := target_node(pod)):
        title = f"{title} for node {one_line(node, 64)}"
    where = None if index is None else edit_target(pod, index)
    maker = None if index is None else topmost_workload(pod, index)
    return PodToExplain(title=title, pod=pod, notes=_notes(pod, context), target=where, maker=maker)


def waiting_pods_of(kind: str, name: str, namespace: str, index: ReadOnlyIndex) -> tuple[Pod, ...]:
    """The pending pods of a workload, oldest first."""
    return tuple(
        pod
        for pod in sorted(index.pods.waiting(namespace), key=_age)
        if (kind, name) in {(owner.kind, owner.name) for owner in controllers(pod, index)}
    )


def waiting_pods(index: ClusterIndex, namespaces: Iterable[str]) -> list[Pod]:
    """The pending pods, oldest first, without terminating pods."""
    pods = [pod for namespace in namespaces for pod in index.pods.waiting(namespace)]
    return sorted((pod for pod in pods if pod.meta.deletion_timestamp is None), key=_age)


def _age(pod: Pod) -> tuple[str, str, str]:
    return pod.meta.creation_timestamp or "", pod.meta.namespace, pod.meta.name


def _pod(value: bytes | Raw | Mapping[str, object]) -> Pod:
    return decode(value if isinstance(value, bytes | Raw) else msgspec.json.encode(value), _POD, "v1.Pod")


def _notes(pod: Pod, context: Context) -> tuple[str, ...]:
    """Return notes if the scheduler ignores the pod or reads a field differently."""
    spec, notes = pod.pod_spec, []
    if spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in spec.scheduling_gates)
        notes.append(f"scheduling gates ({gates}): the scheduler ignores the pod until they are removed")
    if is_foreign(pod, context.policy):
        notes.append(f"{spec.scheduler_name} schedules this pod and may decide differently (see schedulerNames)")
    if spec.node_name:
        notes.append(f"the pod is bound to {spec.node_name}: nothing is left to schedule")
    if pod.meta.deletion_timestamp is not None:
        notes.append("the pod is being deleted: the scheduler ignores it")
    notes += [
        f"{term} matches pods of every namespace: Kubernetes 1.34 to 1.36 ignores a namespaceSelector that would match"
        " a namespace without labels; list the namespaces instead (other releases match only the selected ones)"
        for term in widened_terms(pod, context.version)
    ]
    return tuple(notes)


def is_foreign(pod: Pod, policy: Policy) -> bool:
    """Whether the pod's scheduler is missing from the policy's ``schedulerNames``."""
    name = pod.pod_spec.scheduler_name
    return bool(name) and name not in policy.scheduler_names


def _made_notes(next_pod: NextPod) -> Iterator[str]:
    workload, mode, injected = next_pod.source.workload, next_pod.context.policy.defaults.mode, next_pod.injected
    if isinstance(injected, Injection):
        given = ", ".join(
            f"{constraint.topology_key} {constraint.when_unsatisfiable}" for constraint in injected.constraints
        )
        yield f"with constraints injected by this webhook: {given}"
    elif isinstance(injected, Skip):
        yield f"this webhook injects nothing: {injected.reason}"
    elif not next_pod.pod.pod_spec.constraints:
        yield f"without default constraints of this webhook (defaults.mode is {mode})"
    for label in unknown_labels(next_pod.pod):
        yield f"{label} has no value yet: the pod counts as the first of a new revision"
    if workload.suspended:
        yield "suspended: its controller creates no pods"
    if workload.claims is not None:
        yield "the claims of volumeClaimTemplates are not checked"


def with_siblings(question: PodToExplain, number: int, of: str) -> PodToExplain:
    """Add the number of the workload's pending pods to the title."""
    return structs.replace(question, title=f"{question.title} (1 of {number} pending pods of {one_line(of)})")
