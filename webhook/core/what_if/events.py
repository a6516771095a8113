"""What-if events: parse them from options and apply them to an index.

    what_if = WhatIf(drain=("node-1",))
    for event in apply_events(what_if, index, pods):
        ...   # the index contains the event

The index must not be shared. A lost zone is two events: its nodes become unreachable, later they are gone.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Node, NodeSpec, ObjectMeta, Pod, Taint
from webhook.core.api.well_known import CORDON_TAINT, FILTERING_EFFECTS, HOSTNAME, PREFER_NO_SCHEDULE
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.index.owners import controller_kind
from webhook.core.spelling import did_you_mean
from webhook.core.text import agree, listed, plural, quoted
from webhook.core.what_if.evictions import evict, evictable_pods, intolerant_pods, is_replaced
from webhook.core.workloads.kinds import traits

_PodsByNode = Mapping[str, Sequence[Pod]]
_NOW = "1970-01-01T00:00:00Z"  # Any time. Only its presence matters: the pod is being deleted.


class NotInClusterError(Exception):
    """The cluster lacks a node or label named by an event."""


class LabelledNodes(Struct, frozen=True):
    """All nodes with a label value: ``zone=b``.

    ``key`` may be the last segment of the full key.
    """

    key: str
    value: str


class WhatIf(Struct, frozen=True, kw_only=True):
    """The events to apply.

    Attributes:
        drain: Nodes to drain.
        delete: Nodes to delete.
        lose: Labelled nodes that fail, for example a zone.
        taints: Node names, each with its new taint.
        added: Labelled nodes to copy, each with the number of copies.
    """

    drain: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    lose: tuple[LabelledNodes, ...] = ()
    taints: tuple[tuple[str, Taint], ...] = ()
    added: tuple[tuple[LabelledNodes, int], ...] = ()

    def moves(self, node: str) -> bool:
        """Whether the events can remove pods from the node."""
        return bool(self.lose) or node in (*self.drain, *self.delete, *(name for name, _ in self.taints))


class Event(Struct, frozen=True):
    """A what-if event: its description (empty for no event) and the evicted pods."""

    text: str
    evicted: tuple[Pod, ...] = ()


def parse_labelled_nodes(text: str) -> LabelledNodes:
    """Parse ``zone=b``. Raises ValueError."""
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise ValueError(f"{text[:64]!r} is not KEY=VALUE, for example zone=b")
    return LabelledNodes(key, value)


def parse_taint(text: str) -> tuple[str, Taint]:
    """Parse ``NODE=key=value:Effect``. Raises ValueError."""
    node, sign, rest = text.partition("=")
    written, colon, effect = rest.rpartition(":")
    key, _, value = written.partition("=")
    if not (node and sign and key and colon and effect in (*FILTERING_EFFECTS, PREFER_NO_SCHEDULE)):
        raise ValueError(f"{text[:64]!r} is not NODE=KEY=VALUE:EFFECT, for example worker-1=disk=broken:NoSchedule")
    return node, Taint(key=key, value=value, effect=effect)


def parse_added_nodes(text: str) -> tuple[LabelledNodes, int]:
    """Parse ``zone=b:3``. Raises ValueError."""
    where, colon, number = text.rpartition(":")
    if not (colon and number.isascii() and number.isdecimal() and 0 < len(number) < 5 and int(number)):
        raise ValueError(f"{text[:64]!r} is not KEY=VALUE:NUMBER, for example zone=b:3")
    return parse_labelled_nodes(where), int(number)


def apply_events(what_if: WhatIf, index: ClusterIndex, pods: _PodsByNode) -> Iterator[Event]:
    """Apply the events to the index, and yield them as one event. Lost nodes make it two. Query the index after each.

    Args:
        what_if: The events.
        index: The cluster.
        pods: The pods of each node affected by `WhatIf.moves`.

    Raises:
        NotInClusterError: The cluster lacks a named node or label.
    """
    done = [
        *(_add(where, number, index) for where, number in what_if.added),
        *(_taint(name, taint, index, pods) for name, taint in what_if.taints),
        *(_drain(name, index, pods) for name in what_if.drain),
        *(_delete(name, index, pods) for name in what_if.delete),
    ]
    texts, evicted = [event.text for event in done], [pod for event in done for pod in event.evicted]
    if not what_if.lose:
        yield Event(", ".join(texts), tuple(evicted))
        return
    lost = {node.name: node for where in what_if.lose for node in _nodes(where, index)}
    what = " and ".join([*texts, *(f"{group.key} {group.value}" for group in what_if.lose)])
    yield Event(f"{what} cannot be reached", (*evicted, *_disconnect(lost, index, pods)))
    yield Event(f"{what} is gone", (*evicted, *_remove(lost, index, pods)))


def _taint(name: str, taint: Taint, index: ClusterIndex, pods: _PodsByNode) -> Event:
    _put(_node(name, index), index, taint)
    return Event(
        f"node {name} is tainted {taint.text}", tuple(evict(intolerant_pods(pods.get(name, ()), taint), index))
    )


def _drain(name: str, index: ClusterIndex, pods: _PodsByNode) -> Event:
    node = _node(name, index)
    index.change("MODIFIED", replace(node, spec=replace(node.spec or NodeSpec(), unschedulable=True)))
    _put(_node(name, index), index, CORDON_TAINT)
    return Event(f"node {name} is drained", tuple(evict(evictable_pods(pods.get(name, ())), index)))


def _delete(name: str, index: ClusterIndex, pods: _PodsByNode) -> Event:
    index.change("DELETED", _node(name, index))
    return Event(f"node {name} is deleted", tuple(evict(pods.get(name, ()), index)))


def _disconnect(lost: Mapping[str, Node], index: ClusterIndex, pods: _PodsByNode) -> Sequence[Pod]:
    """Make the nodes unreachable. Return the pods that their controllers replace already."""
    for node in lost.values():
        _put(node, index, *UNREACHABLE)
    leaving = [pod for name in lost for pod in intolerant_pods(evictable_pods(pods.get(name, ())), UNREACHABLE[-1])]
    for pod in leaving:
        index.change("MODIFIED", replace(pod, metadata=replace(pod.meta, deletion_timestamp=_NOW)))
    return [pod for pod in leaving if is_replaced(pod) and not traits(controller_kind(pod) or ("", "")).ordered]


def _remove(lost: Mapping[str, Node], index: ClusterIndex, pods: _PodsByNode) -> Sequence[Pod]:
    """Delete the nodes with their pods. Return the pods that their controllers replace."""
    for name, node in lost.items():
        index.change("DELETED", node)
        evict(pods.get(name, ()), index)
    return [pod for name in lost for pod in evictable_pods(pods.get(name, ())) if is_replaced(pod)]


def _node(name: str, index: ClusterIndex) -> Node:
    node = index.nodes.get(name)
    if node is None:
        meant = did_you_mean(name, [node.name for node in index.nodes.all()], 3)
        raise NotInClusterError(f"the cluster has no node {quoted(name)}{meant}")
    return node


def _put(node: Node, index: ClusterIndex, *taints: Taint) -> None:
    spec = replace(node.spec or NodeSpec(), taints=(*node.taints, *taints))
    index.change("MODIFIED", replace(node, spec=spec))


def _nodes(where: LabelledNodes, index: ClusterIndex) -> list[Node]:
    keys = index.nodes.view().keys
    named = sorted(key for key in keys if key == where.key or key.rpartition("/")[2] == where.key)
    key = where.key if where.key in keys or not named else named[0]
    if len(named) > 1 and key != where.key:
        raise NotInClusterError(f"{quoted(where.key)} is ambiguous: write {' or '.join(named)}")
    nodes = sorted(
        (node for node in index.nodes.all() if node.labels.get(key) == where.value), key=lambda node: node.name
    )
    if not nodes:
        values = sorted(index.nodes.view().column(key).values)
        there = f"it has {listed(values, 8)}" if values else "no node has this label"
        raise NotInClusterError(f"the cluster has no {quoted(where.key)} {quoted(where.value)}: {there}")
    return nodes


def _add(where: LabelledNodes, number: int, index: ClusterIndex) -> Event:
    """Add copies of an existing node and its CSINode, preferably of an untainted and uncordoned node."""
    there = _nodes(where, index)
    model = min(there, key=lambda node: (bool(node.taints) or bool(node.spec and node.spec.unschedulable), node.name))
    for copy in range(1, number + 1):
        name = f"{model.name}-added-{copy}"
        labels = {**model.labels, **({HOSTNAME: name} if HOSTNAME in model.labels else {})}
        index.change(
            "ADDED", replace(model, metadata=replace(model.metadata or ObjectMeta(), name=name, labels=labels))
        )
        if (drivers := index.volumes.csi_node(model.name)) is not None:
            index.change("ADDED", replace(drivers, metadata=replace(drivers.meta, name=name)))
    return Event(f"{plural(number, 'node')} like {model.name} {agree(number, 'are')} added")
