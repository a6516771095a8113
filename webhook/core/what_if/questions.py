"""The pods to explain: those of a manifest, of one object of the cluster, or all pending ones.

An existing pod is explained as it is; for a manifest or a workload, the next pod that would be created.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct, structs

from webhook.core.api.selectors import NOTHING, valid_selector
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.apiserver.decoding import decode
from webhook.core.coming_pods.daemon_pods import for_node, node_of, tolerant, wanted_nodes
from webhook.core.coming_pods.next_pod import ComingPod, PodSource, coming_pod, problem_of, unknown_labels
from webhook.core.context import Context
from webhook.core.decoders import decoder_of
from webhook.core.defaulting.injection import Injection, Skip
from webhook.core.explain.edit_target import EditTarget, object_title, target
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controller_kind, controllers, keeps_revision, maker_of
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.inter_pod_affinity import widened_terms
from webhook.core.text import listed, one_line, plural
from webhook.core.what_if.refused import Refused, refused
from webhook.core.what_if.workloads import introduce
from webhook.core.workloads.kinds import DAEMON_SET
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import Workload, namespace_of

_MAX_NODES_LOOKED_AT = 200  # how many nodes of a DaemonSet are looked at; each needs a verdict of its own
_POD = decoder_of(Pod)


class Question(Struct, frozen=True, kw_only=True):
    """One pod to explain.

    Args:
        path: What precedes ``spec`` in the written object.
        notes: Sentences about how the pod was derived.
        exists: Whether it is in the cluster.
        unknown: As in `AdmissionFacts`.
        refused: Why kube-apiserver rejects it, or its siblings.
        target: The object of the cluster to edit. None for a manifest, which is itself the one.
        settled: Why there is nothing to explain.
        maker: The object that makes such pods, with one template. None if there is none, or if it is not known.
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
        """Whether there is nothing left for the scheduler to decide."""
        return bool(self.settled) or (self.exists and bool(self.pod.pod_spec.node_name))


def of_object(
    raw: bytes | Raw | Mapping[str, object], stated: TypeMeta, within: Context, index: ClusterIndex, *, applied: bool
) -> Iterator[Question]:
    """The questions about one object: the pod itself, or the next pod of each template.

    Args:
        raw: The object.
        stated: Its type. Items of a list do not have it.
        within: Where it is asked.
        index: Gets the owners of its pods.
        applied: Whether the object is in the cluster.

    Raises:
        DecodeError: The object does not fit the API's types.
    """
    value, _ = read_exactly(raw, stated, within.version)
    workload = read_workload(value, within.policy.workloads, api_version=stated.api_version, kind=stated.kind)
    if workload is None or not workload.whole:
        return
    # A pod with a uid exists, and its constraints are those that it has.
    if workload.is_pod and (applied or workload.meta.uid):
        yield of_pod(_pod(value), within, index if applied else None)
        return
    namespace = namespace_of(workload.meta.namespace, within.namespace)
    title = one_line(f"{workload.kind} {namespace}/{workload.meta.name or workload.meta.generate_name or '(unnamed)'}")
    for template in workload.templates:
        kept = applied or keeps_revision(workload, template.template, namespace, index)
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=kept)
        introduce(source, index)
        coming = coming_pod(source, within)
        site = f" ({template.path.rstrip('.')})" if len(workload.templates) > 1 else ""
        question = Question(
            title=title if workload.is_pod else f"the next pod of {title}{site}",
            pod=coming.pod,
            path=template.path,
            notes=(*_made_notes(coming), *_notes(coming.pod, within)),
            exists=False,
            unknown=coming.unknown,
            refused=refused(coming),
            target=target(coming.pod, index) if applied else None,
            maker=workload if len(workload.templates) == 1 and not workload.is_pod else None,
        )
        if workload.group_kind == DAEMON_SET:
            yield from _of_nodes(question, title, workload, within)
        else:
            yield question


def _of_nodes(question: Question, title: str, workload: Workload, within: Context) -> Iterator[Question]:
    """One question for each group of equal nodes that should run the DaemonSet's pod and do not."""
    index = within.cluster
    pod, view = tolerant(question.pod), index.nodes.view()
    wanted = wanted_nodes(pod, view)
    if not wanted:
        note = "no node should run it: its controller makes no pod; here any node is asked"
        yield structs.replace(question, pod=pod, notes=(note, *question.notes))
        return
    namespace = pod.meta.namespace
    made = {node_of(each): each for each in waiting_of(workload.kind, workload.meta.name, namespace, index)}
    running = index.pods.count(namespace, valid_selector(workload.selector) or NOTHING, leaving=True)
    lacking = [
        view.names[slot] for slot in node_sets.to_slots(wanted) if slot not in running or view.names[slot] in made
    ]
    nodes, total = wanted.bit_count(), len(lacking)
    if not lacking:
        has = (
            "the node that should run it has its pod"
            if nodes == 1
            else f"all {plural(nodes, 'node')} that should run it have its pod"
        )
        yield structs.replace(question, title=title, pod=pod, settled=has)
        return
    alike: dict[object, list[str]] = {}
    for name in lacking[:_MAX_NODES_LOOKED_AT]:
        verdict = decide(problem_of(made.get(name) or for_node(pod, name), within))
        # Thousands of nodes mostly have the same answer: one question stands for all of them.
        alike.setdefault((name in made, verdict.status(name)), []).append(name)
    count = (
        f"{total:,} of {plural(nodes, 'node')} that should run it {'has' if total == 1 else 'have'} no pod that runs"
    )
    count += f", of which the first {_MAX_NODES_LOOKED_AT} were asked" * (total > _MAX_NODES_LOOKED_AT)
    for names in alike.values():
        first, others = names[0], len(names) - 1
        note = f"{count}; it is the same with {others} more: {listed(names[1:], 5)}" if others else count
        found = (
            of_pod(made[first], within, index) if first in made else structs.replace(question, pod=for_node(pod, first))
        )
        named = found.title if first in made else one_line(f"the pod of {title} for node {first}")
        yield structs.replace(found, title=named, notes=(note, *found.notes))


def of_pod(pod: Pod, within: Context, index: ReadOnlyIndex | None = None) -> Question:
    """The question about an existing pod; with an index, it includes the object to edit."""
    title = one_line(object_title("Pod", pod.meta.namespace, pod.meta.name))
    if controller_kind(pod) == DAEMON_SET and (node := node_of(pod)):
        title = f"{title} for node {one_line(node, 64)}"
    where = None if index is None else target(pod, index)
    maker = None if index is None else maker_of(pod, index)
    return Question(title=title, pod=pod, notes=_notes(pod, within), target=where, maker=maker)


def waiting_of(kind: str, name: str, namespace: str, index: ReadOnlyIndex) -> tuple[Pod, ...]:
    """The Pending pods of a workload, oldest first."""
    return tuple(
        pod
        for pod in sorted(index.pods.waiting(namespace), key=_age)
        if (kind, name) in {(each.kind, each.name) for each in controllers(pod, index)}
    )


def waiting(index: ClusterIndex, namespaces: Iterable[str]) -> list[Pod]:
    """The pods that wait for a node, oldest first, without terminating ones."""
    found = [pod for namespace in namespaces for pod in index.pods.waiting(namespace)]
    return sorted((pod for pod in found if pod.meta.deletion_timestamp is None), key=_age)


def _age(pod: Pod) -> tuple[str, str, str]:
    return pod.meta.creation_timestamp or "", pod.meta.namespace, pod.meta.name


def _pod(value: bytes | Raw | Mapping[str, object]) -> Pod:
    return decode(value if isinstance(value, bytes | Raw) else msgspec.json.encode(value), _POD, "v1.Pod")


def _notes(pod: Pod, within: Context) -> tuple[str, ...]:
    """Notes about why the scheduler does not try the pod at all, or reads it otherwise than it was meant."""
    spec, found = pod.pod_spec, []
    if spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in spec.scheduling_gates)
        found.append(f"scheduling gates ({gates}): the scheduler does not try it until they are gone")
    if is_foreign(pod, within.policy):
        found.append(f"{spec.scheduler_name} schedules it, which may decide otherwise (schedulerNames)")
    if spec.node_name:
        found.append(f"it is bound to {spec.node_name}: the scheduler has nothing to decide any more")
    if pod.meta.deletion_timestamp is not None:
        found.append("it is being deleted: the scheduler does not try it")
    found += [
        f"{term} looks at pods of every namespace: so does Kubernetes 1.34 to 1.36 where a namespace without labels"
        " would meet the namespaceSelector; 1.33 and 1.37 look at the namespaces that it selects"
        for term in widened_terms(pod, within.version)
    ]
    return tuple(found)


def is_foreign(pod: Pod, policy: Policy) -> bool:
    """Whether a scheduler that is not configured places the pod."""
    name = pod.pod_spec.scheduler_name
    return bool(name) and name not in policy.scheduler_names


def _made_notes(coming: ComingPod) -> Iterator[str]:
    workload, mode, injected = coming.source.workload, coming.within.policy.defaults.mode, coming.injected
    if isinstance(injected, Injection):
        given = ", ".join(f"{each.topology_key} {each.when_unsatisfiable}" for each in injected.constraints)
        yield f"with the constraints that this webhook injects: {given}"
    elif isinstance(injected, Skip):
        yield f"this webhook injects nothing: {injected.reason}"
    elif not coming.pod.pod_spec.constraints:
        yield f"judged without default constraints of this webhook (defaults.mode is {mode})"
    for label in unknown_labels(coming.pod):
        yield f"{label} is not known yet: the pod is taken for the first of a new revision"
    if workload.suspended:
        yield "suspended: its controller makes no pod now"
    if workload.claims is not None:
        yield "the claims of volumeClaimTemplates are not looked at"


def with_siblings(question: Question, number: int, of: str) -> Question:
    """The question about one of several Pending pods of a workload."""
    return structs.replace(question, title=f"{question.title} (1 of {number} Pending of {one_line(of)})")
