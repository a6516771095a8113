"""Where the pods of a group stand against its caps, and moves that would bring them below; nobody makes these."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import Pod
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import Cap
from webhook.core.groups.derive import on, place
from webhook.core.groups.group import Group
from webhook.core.groups.status.forms import Distribution, ProposedMove
from webhook.core.index.label_column import Column
from webhook.core.index.nodes import NodeView
from webhook.core.text import one_line, plural

_MOST_DOMAINS = 20  # that are listed, the fullest
_MOST_MOVES = 10


class Spread(Struct, frozen=True, kw_only=True):
    """The pods that one cap counts, by domain.

    Attributes:
        most: The most pods that it allows.
        domains: The fullest domains.
        more: How many domains there are besides.
        uncounted: The pods on nodes without the label, which are in no domain.
    """

    cap: Cap
    most: int
    domains: Mapping[str, int]
    more: int = 0
    uncounted: int = 0

    @property
    def above(self) -> Mapping[str, int]:
        """The domains with more pods than there may be."""
        return {name: pods for name, pods in self.domains.items() if pods > self.most}

    @property
    def fullest(self) -> int:
        """The pods of the fullest domain."""
        return max(self.domains.values(), default=0)

    @property
    def written(self) -> Distribution:
        """As the status has it."""
        return Distribution(
            topology_key=self.cap.topology_key,
            selector=self.cap.selector,
            domains=self.domains,
            more=self.more,
            cap=self.most,
        )

    @property
    def text(self) -> str:
        """``zone a has 3 pods, at most 2``; without names of nodes."""
        key, of = self.cap.topology_key, f" of {compile_selector(self.cap.selector).text}" if self.cap.selector else ""
        if key == HOSTNAME:
            nodes = f"{plural(len(self.above), 'node')} {'has' if len(self.above) == 1 else 'have'}"
            return f"{nodes} up to {plural(self.fullest, 'pod')}{of}, at most {self.most}"
        named = (f"{one_line(name, 63)} {plural(pods, 'pod')}" for name, pods in self.above.items())
        return f"{place(key)} {', '.join(named)}{of}, at most {self.most}"


def spreads(group: Group, pods: Sequence[Pod], view: NodeView) -> tuple[Spread, ...]:
    """One for each cap; of caps for the same pods by the same key, the lowest."""
    lowest: dict[tuple[str, str | None, bool], Spread] = {}
    for cap in group.caps:
        found = _spread(group, cap, pods, view)
        key = cap.topology_key, None if cap.selector is None else compile_selector(cap.selector).text, cap.enforced
        if key not in lowest or found.most < lowest[key].most:
            lowest[key] = found
    return tuple(lowest.values())


def _spread(group: Group, cap: Cap, pods: Sequence[Pod], view: NodeView) -> Spread:
    column, counted = view.column(cap.topology_key), [*pods]
    if cap.selector is not None:
        selector = compile_selector(cap.selector)
        counted = [each for each in pods if selector.matches(each.labels)]
    held = Counter(domain for each in counted if (domain := _domain(each, column, view)) is not None)
    uncounted = sum(_is_uncounted(each, column, view) for each in counted)
    if cap.topology_key != HOSTNAME:
        for value in column.values if group.domains is None else group.domains:
            held.setdefault(value, 0)
    ordered = sorted(held.items(), key=lambda each: (-each[1], each[0]))
    shown = dict(ordered[:_MOST_DOMAINS])
    most = cap.most(group.shared_by(cap, len(counted)))
    return Spread(cap=cap, most=most, domains=shown, more=len(ordered) - len(shown), uncounted=uncounted)


def _domain(pod: Pod, column: Column, view: NodeView) -> str | None:
    """The pod's domain. A node without a hostname label counts by its name."""
    name = pod.pod_spec.node_name or ""
    slot = view.slots.get(name)
    if slot is None:
        return None
    number = column.of[slot]
    return column.values[number] if number >= 0 else name if column.key == HOSTNAME else None


def _is_uncounted(pod: Pod, column: Column, view: NodeView) -> bool:
    """Whether the pod's node exists and has no domain of the key."""
    return pod.pod_spec.node_name in view.slots and _domain(pod, column, view) is None


def moves(
    group: Group, found: Sequence[Spread], pods: Sequence[Pod], zones: Mapping[str, Sequence[str]], view: NodeView
) -> tuple[ProposedMove, ...]:
    """Moves that bring domains to their enforced caps, the newest pods first, as far as zones leave room.

    ``zones`` are the pins of the shards, by the value of the shard label.
    """
    broken = [each for each in found if each.cap.enforced and (each.above or each.uncounted)]
    return tuple(each for spread in broken for each in _moves_of(group, spread, pods, zones, view))[:_MOST_MOVES]


def _moves_of(
    group: Group, spread: Spread, pods: Sequence[Pod], zones: Mapping[str, Sequence[str]], view: NodeView
) -> Iterator[ProposedMove]:
    key = spread.cap.topology_key
    column, held = view.column(key), Counter(spread.domains)
    of_shard = Counter((_domain(each, column, view), each.labels.get(group.shard_label)) for each in pods)
    for source in _sources(spread, pods, view):
        left = source.excess
        for pod in source.pods:
            if not left:
                break
            shard = pod.labels.get(group.shard_label, "")
            if key == HOSTNAME:
                left -= 1
                yield ProposedMove(pod=pod.meta.name, source=source.name, to="", reason=source.reason)
                continue
            allowed = zones.get(shard) or [*spread.domains]
            free = [each for each in allowed if held[each] < spread.most and not _has(group, of_shard, each, shard)]
            if free:
                target, left = min(free, key=lambda each: held[each]), left - 1
                held.update({source.name: -1, target: 1})
                of_shard.update({(source.name, shard): -1, (target, shard): 1})
                yield ProposedMove(pod=pod.meta.name, source=source.name, to=target, reason=source.reason)


class _Source(NamedTuple):
    """A domain with too many pods, newest first, and how many must go."""

    name: str
    pods: Sequence[Pod]
    excess: int
    reason: str


def _sources(spread: Spread, pods: Sequence[Pod], view: NodeView) -> Iterator[_Source]:
    """The domains above their cap, then nodes without the label."""
    key, newest = spread.cap.topology_key, sorted(pods, key=_age, reverse=True)
    column = view.column(key)
    for domain, many in spread.above.items():
        inside = [each for each in newest if _domain(each, column, view) == domain]
        yield _Source(domain, inside, many - spread.most, f"at most {spread.most} {on(key)}")
    uncounted = [each for each in newest if _is_uncounted(each, column, view)]
    for node in dict.fromkeys(each.pod_spec.node_name or "" for each in uncounted):
        there = [each for each in uncounted if each.pod_spec.node_name == node]
        yield _Source(node, there, len(there), f"its node has no label {one_line(key, 63)}")


def _has(group: Group, of_shard: Counter[tuple[str | None, str | None]], zone: str, shard: str) -> bool:
    """Whether the zone can take no more pods of the shard."""
    return group.keeps_zones_apart and of_shard[zone, shard] > 0


def _age(pod: Pod) -> tuple[str, str]:
    return pod.meta.creation_timestamp or "", pod.meta.name
