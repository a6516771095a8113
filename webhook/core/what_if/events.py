"""What can happen to a cluster, as options state it, and its effect on an index that belongs to nobody else.

    parse -> WhatIf -> apply_events(what_if, index, pods) -> Event    the index changes, one event after the other

A lost zone is two events: first its nodes are unreachable, later they are gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import first_untolerated
from webhook.core.api.types import Node, NodeSpec, ObjectMeta, Pod, Taint, Toleration
from webhook.core.api.well_known import (
    CORDON_TAINT,
    FILTERING_EFFECTS,
    HOSTNAME,
    MIRROR_ANNOTATION,
    NO_EXECUTE,
    PREFER_NO_SCHEDULE,
)
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.lost_nodes import UNREACHABLE, unreachable_nodes
from webhook.core.index.owners import controller_kind
from webhook.core.text import did_you_mean, listed, quoted
from webhook.core.workloads.kinds import traits

_NOW = "1970-01-01T00:00:00Z"  # any time: what counts is that the pod is being deleted


class NotInClusterError(Exception):
    """A node or a part that an event names, and the cluster does not have."""


class Part(Struct, frozen=True):
    """All nodes with a value of a label: ``zone=b``. The key may be the last part of a longer one."""

    key: str
    value: str


class WhatIf(Struct, frozen=True, kw_only=True):
    """What happens to the cluster: ``taints`` by node, ``added`` with the number of nodes of each part."""

    drain: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    lose: tuple[Part, ...] = ()
    taints: tuple[tuple[str, Taint], ...] = ()
    added: tuple[tuple[Part, int], ...] = ()

    def moves(self, node: str) -> bool:
        """Whether pods on the node may lose it."""
        return bool(self.lose) or node in (*self.drain, *self.delete, *(name for name, _ in self.taints))


class Event(Struct, frozen=True):
    """What has happened, in words (empty for nothing), and the pods that lost their node by it."""

    text: str
    evicted: tuple[Pod, ...] = ()


def part(text: str) -> Part:
    """Read ``zone=b``. Errors: ValueError."""
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise ValueError(f"{text[:64]!r} is not KEY=VALUE, as zone=b")
    return Part(key, value)


def taint(text: str) -> tuple[str, Taint]:
    """Read ``NODE=key=value:Effect``. Errors: ValueError."""
    node, sign, rest = text.partition("=")
    written, colon, effect = rest.rpartition(":")
    key, _, value = written.partition("=")
    if not (node and sign and key and colon and effect in (*FILTERING_EFFECTS, PREFER_NO_SCHEDULE)):
        raise ValueError(f"{text[:64]!r} is not NODE=KEY=VALUE:EFFECT, as worker-1=disk=broken:NoSchedule")
    return node, Taint(key=key, value=value, effect=effect)


def added(text: str) -> tuple[Part, int]:
    """Read ``zone=b:3``. Errors: ValueError."""
    where, colon, number = text.rpartition(":")
    if not (colon and number.isascii() and number.isdecimal() and 0 < len(number) < 5 and int(number)):
        raise ValueError(f"{text[:64]!r} is not KEY=VALUE:NUMBER, as zone=b:3")
    return part(where), int(number)


def apply_events(what_if: WhatIf, index: ClusterIndex, pods: Mapping[str, Sequence[Pod]]) -> Iterator[Event]:
    """Apply each event to the index and yield it. Query the index after each step.

    Args:
        what_if: The events.
        index: The cluster.
        pods: The pods of each node that `WhatIf.moves`.

    Raises:
        NotInClusterError: The cluster does not have a named node or part.
    """
    texts, evicted = list[str](), list[Pod]()
    for where, number in what_if.added:
        texts.append(_add(where, number, index))
    for name, each in what_if.taints:
        node = _node(name, index)
        _put(node, index, each)
        texts.append(f"node {name} is tainted {each.text}")
        evicted += _evict(_intolerant(pods.get(name, ()), each), index)
    for name in what_if.drain:
        node = _node(name, index)
        index.change("MODIFIED", replace(node, spec=replace(node.spec or NodeSpec(), unschedulable=True)))
        _put(_node(name, index), index, CORDON_TAINT)
        texts.append(f"node {name} is drained")
        evicted += _evict(_movable(pods.get(name, ())), index)
    for name in what_if.delete:
        index.change("DELETED", _node(name, index))
        texts.append(f"node {name} is deleted")
        evicted += _evict(pods.get(name, ()), index)
    if not what_if.lose:
        yield Event(", ".join(texts), tuple(evicted))
        return
    lost = {node.name: node for where in what_if.lose for node in _nodes(where, index)}
    what = " and ".join([*texts, *(f"{each.key} {each.value}" for each in what_if.lose)])
    for node in lost.values():
        _put(node, index, *UNREACHABLE)
    leaving = [pod for name in lost for pod in _intolerant(_movable(pods.get(name, ())), UNREACHABLE[-1])]
    for pod in leaving:
        index.change("MODIFIED", replace(pod, metadata=replace(pod.meta, deletion_timestamp=_NOW)))
    replaced = [pod for pod in leaving if is_made_anew(pod) and not traits(controller_kind(pod) or ("", "")).ordered]
    yield Event(f"{what} cannot be reached", (*evicted, *replaced))
    for name, node in lost.items():
        index.change("DELETED", node)
        _evict(pods.get(name, ()), index)
    gone = [pod for name in lost for pod in _movable(pods.get(name, ())) if is_made_anew(pod)]
    yield Event(f"{what} is gone", (*evicted, *gone))


def settle(index: ClusterIndex, pods: Iterable[Pod]) -> list[Pod]:
    """Delete the terminating pods among these, as kubelets will, and return them.

    On an unreachable node they stay. So does a static pod: its kubelet creates the mirror again at once.
    """
    view, gone = index.nodes.view(), list[Pod]()
    lost = unreachable_nodes(view)
    for pod in pods:
        slot = view.slots.get(pod.pod_spec.node_name or "")
        if (
            pod.meta.deletion_timestamp is not None
            and not (slot is not None and lost >> slot & 1)
            and MIRROR_ANNOTATION not in (pod.meta.annotations or {})
            and index.pods.on_node(pod.meta.namespace, pod.meta.name) is not None
        ):
            index.change("DELETED", pod)
            gone.append(pod)
    return gone


def is_made_anew(pod: Pod) -> bool:
    """Whether a controller replaces this pod after its deletion.

    A ReplicaSet and a Job replace a pod as soon as it terminates, a StatefulSet and a DaemonSet once it is gone.
    Source: controller/controller_utils.go ``FilterActivePods``; statefulset/stateful_set_control.go ``processReplica``;
    daemon/daemon_controller.go ``podsShouldBeOnNode``.
    """
    kind = traits(controller_kind(pod) or ("", ""))
    return pod.meta.deletion_timestamp is None or kind.ordered or kind.on_every_node


def is_evicted(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether the taint evicts a pod in the end. A toleration for some seconds only delays that."""
    lasting = [each for each in tolerations if each.toleration_seconds is None]
    return taint.effect == NO_EXECUTE and first_untolerated((taint,), lasting, (NO_EXECUTE,)) is not None


def _node(name: str, index: ClusterIndex) -> Node:
    node = index.nodes.get(name)
    if node is None:
        meant = did_you_mean(name, [each.name for each in index.nodes.all()], 3)
        raise NotInClusterError(f"the cluster has no node {quoted(name)}{meant}")
    return node


def _put(node: Node, index: ClusterIndex, *taints: Taint) -> None:
    spec = replace(node.spec or NodeSpec(), taints=(*node.taints, *taints))
    index.change("MODIFIED", replace(node, spec=spec))


def _nodes(where: Part, index: ClusterIndex) -> list[Node]:
    """The nodes of a part of the cluster, by name. Errors: NotInClusterError if there are none."""
    keys = index.nodes.view().keys
    named = sorted(key for key in keys if key == where.key or key.rpartition("/")[2] == where.key)
    key = where.key if where.key in keys or not named else named[0]
    if len(named) > 1 and key != where.key:
        raise NotInClusterError(f"{quoted(where.key)} may be {' or '.join(named)}: write which")
    found = sorted(
        (node for node in index.nodes.all() if node.labels.get(key) == where.value), key=lambda node: node.name
    )
    if not found:
        values = sorted(index.nodes.view().column(key).values)
        there = f"it has {listed(values, 8)}" if values else "no node has that label"
        raise NotInClusterError(f"the cluster has no {quoted(where.key)} {quoted(where.value)}: {there}")
    return found


def _add(where: Part, number: int, index: ClusterIndex) -> str:
    """Add nodes like one that is there: preferably one that takes pods as it is."""
    there = _nodes(where, index)
    model = min(there, key=lambda node: (bool(node.taints) or bool(node.spec and node.spec.unschedulable), node.name))
    for each in range(1, number + 1):
        name = f"{model.name}-added-{each}"
        labels = {**model.labels, **({HOSTNAME: name} if HOSTNAME in model.labels else {})}
        index.change(
            "ADDED", replace(model, metadata=replace(model.metadata or ObjectMeta(), name=name, labels=labels))
        )
    return f"{number:,} node{'' if number == 1 else 's'} like {model.name} {'is' if number == 1 else 'are'} added"


def _movable(pods: Sequence[Pod]) -> list[Pod]:
    """The pods that somebody may evict: neither a DaemonSet's nor the node's own."""
    return [
        pod
        for pod in pods
        if MIRROR_ANNOTATION not in (pod.meta.annotations or {})
        and not traits(controller_kind(pod) or ("", "")).on_every_node
    ]


def _intolerant(pods: Sequence[Pod], taint: Taint) -> list[Pod]:
    return [pod for pod in _movable(pods) if is_evicted(pod.pod_spec.tolerations or (), taint)]


def _evict(pods: Sequence[Pod], index: ClusterIndex) -> list[Pod]:
    for pod in pods:
        index.change("DELETED", pod)
    return [pod for pod in _movable(pods) if is_made_anew(pod)]
