"""Compare the pods of a group with its caps, and propose moves. evenspread never makes a move itself."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import Pod
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import Cap
from webhook.core.groups.derive import domain_noun, in_a_domain
from webhook.core.groups.group import Group
from webhook.core.groups.status.forms import Distribution, ProposedMove
from webhook.core.index.label_column import Column
from webhook.core.index.nodes import NodeView
from webhook.core.text import agree, one_line, plural

_MOST_DOMAINS = 20  # The most domains listed in the status, the fullest first.
_MOST_MOVES = 10  # The most moves listed in the status. Later moves depend on the first.


class CapUsage(Struct, frozen=True, kw_only=True):
    """The pods counted by one cap.

    Attributes:
        most: The most pods in a domain by this cap.
        domains: The pods in each of the fullest domains.
        more: The number of domains left out of ``domains``.
        uncounted: The number of pods outside all domains, on nodes without the label.
    """

    cap: Cap
    most: int
    domains: Mapping[str, int]
    more: int = 0
    uncounted: int = 0

    @property
    def above(self) -> Mapping[str, int]:
        """The domains with more pods than the cap allows."""
        return {name: pods for name, pods in self.domains.items() if pods > self.most}

    @property
    def fullest(self) -> int:
        """The number of pods in the fullest domain."""
        return max(self.domains.values(), default=0)

    @property
    def written(self) -> Distribution:
        """The pods in each domain and the cap, in the form stored in the group's status."""
        return Distribution(
            topology_key=self.cap.topology_key,
            selector=self.cap.selector,
            domains=self.domains,
            more=self.more,
            cap=self.most,
        )

    @property
    def text(self) -> str:
        """The domains above the cap in words, without names of nodes: ``zone a 3 pods, at most 2``."""
        key = self.cap.topology_key
        suffix = f" of {compile_selector(self.cap.selector).text}" if self.cap.selector else ""
        if key == HOSTNAME:
            nodes = f"{plural(len(self.above), 'node')} {agree(len(self.above), 'have')}"
            return f"{nodes} up to {plural(self.fullest, 'pod')}{suffix}, at most {self.most}"
        named = (f"{one_line(name, 63)} {plural(pods, 'pod')}" for name, pods in self.above.items())
        return f"{domain_noun(key)} {', '.join(named)}{suffix}, at most {self.most}"


def cap_usages(group: Group, pods: Sequence[Pod], view: NodeView) -> tuple[CapUsage, ...]:
    """Return the usage of each cap. Of several caps for the same pods and key, only the lowest is returned."""
    lowest: dict[tuple[str, str | None, bool], CapUsage] = {}
    for cap in group.caps:
        usage = _spread(group, cap, pods, view)
        key = cap.topology_key, None if cap.selector is None else compile_selector(cap.selector).text, cap.enforced
        if key not in lowest or usage.most < lowest[key].most:
            lowest[key] = usage
    return tuple(lowest.values())


def _spread(group: Group, cap: Cap, pods: Sequence[Pod], view: NodeView) -> CapUsage:
    column, counted = view.column(cap.topology_key), [*pods]
    if cap.selector is not None:
        selector = compile_selector(cap.selector)
        counted = [pod for pod in pods if selector.matches(pod.labels)]
    held = Counter(domain for pod in counted if (domain := _domain(pod, column, view)) is not None)
    uncounted = sum(_is_uncounted(pod, column, view) for pod in counted)
    if cap.topology_key != HOSTNAME:
        for value in column.values if group.domains is None else group.domains:
            held.setdefault(value, 0)
    ordered = sorted(held.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ordered[:_MOST_DOMAINS])
    most = cap.most(group.shared_by(cap, len(counted)))
    return CapUsage(cap=cap, most=most, domains=shown, more=len(ordered) - len(shown), uncounted=uncounted)


def _domain(pod: Pod, column: Column, view: NodeView) -> str | None:
    """Return the pod's domain. For hostname, a node without the label counts by its name. None without a domain."""
    name = pod.pod_spec.node_name or ""
    slot = view.slots.get(name)
    if slot is None:
        return None
    number = column.domain_of[slot]
    return column.values[number] if number >= 0 else name if column.key == HOSTNAME else None


def _is_uncounted(pod: Pod, column: Column, view: NodeView) -> bool:
    """Whether the pod's node exists but has no domain of the key."""
    return pod.pod_spec.node_name in view.slots and _domain(pod, column, view) is None


def propose_moves(
    group: Group, usages: Sequence[CapUsage], pods: Sequence[Pod], zones: Mapping[str, Sequence[str]], view: NodeView
) -> tuple[ProposedMove, ...]:
    """Propose moves of pods out of domains above their enforced caps, newest pods first, while zones have room.

    ``zones`` are the pins of the shards, by the value of the shard label.
    """
    broken = [usage for usage in usages if usage.cap.enforced and (usage.above or usage.uncounted)]
    return tuple(move for usage in broken for move in _moves_of(group, usage, pods, zones, view))[:_MOST_MOVES]


def _moves_of(
    group: Group, usage: CapUsage, pods: Sequence[Pod], zones: Mapping[str, Sequence[str]], view: NodeView
) -> Iterator[ProposedMove]:
    key = usage.cap.topology_key
    column, held = view.column(key), Counter(usage.domains)
    of_shard = Counter((_domain(pod, column, view), pod.labels.get(group.shard_label)) for pod in pods)
    for source in _sources(usage, pods, view):
        left = source.excess
        for pod in source.pods:
            if not left:
                break
            shard = pod.labels.get(group.shard_label, "")
            if key == HOSTNAME:
                left -= 1
                yield ProposedMove(pod=pod.meta.name, source=source.name, to="", reason=source.reason)
                continue
            allowed = zones.get(shard) or [*usage.domains]
            free = [
                zone
                for zone in allowed
                if held[zone] < usage.most and not (group.keeps_zones_apart and of_shard[zone, shard])
            ]
            if free:
                target, left = min(free, key=held.__getitem__), left - 1
                held.update({source.name: -1, target: 1})
                of_shard.update({(source.name, shard): -1, (target, shard): 1})
                yield ProposedMove(pod=pod.meta.name, source=source.name, to=target, reason=source.reason)


class _CrowdedDomain(NamedTuple):
    """A domain with too many pods. ``pods`` has the newest first, ``excess`` is the number to move."""

    name: str
    pods: Sequence[Pod]
    excess: int
    reason: str


def _sources(usage: CapUsage, pods: Sequence[Pod], view: NodeView) -> Iterator[_CrowdedDomain]:
    """Yield the domains above the cap, then nodes without the label."""
    key = usage.cap.topology_key
    newest = sorted(pods, key=lambda pod: (pod.meta.creation_timestamp or "", pod.meta.name), reverse=True)
    column = view.column(key)
    for domain, many in usage.above.items():
        inside = [pod for pod in newest if _domain(pod, column, view) == domain]
        yield _CrowdedDomain(domain, inside, many - usage.most, f"at most {usage.most} {in_a_domain(key)}")
    uncounted = [pod for pod in newest if _is_uncounted(pod, column, view)]
    for node in dict.fromkeys(pod.pod_spec.node_name or "" for pod in uncounted):
        there = [pod for pod in uncounted if pod.pod_spec.node_name == node]
        yield _CrowdedDomain(node, there, len(there), f"its node has no label {one_line(key, 63)}")
