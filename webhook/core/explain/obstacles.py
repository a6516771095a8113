"""Name the obstacles on nodes: a taint, a missing label, another pod, a volume.

The scheduler only names the first filter rejecting a node. Here every filter runs alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.core.api.node_selectors import NodeTerm, RequiredNodes, compile_node_selector
from webhook.core.api.requirements import Requirement
from webhook.core.api.resources import PODS
from webhook.core.api.selector_text import requirement_in_words
from webhook.core.api.selectors import Selector
from webhook.core.api.storage import PersistentVolume
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import Taint, Toleration
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_STATES
from webhook.core.explain.filter_words import PARTS
from webhook.core.index import node_sets
from webhook.core.index.affinity_terms import Term
from webhook.core.index.nodes import NodeView
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.inter_pod_affinity import (
    INTER_POD_AFFINITY,
    NO_AFFINITY,
    REJECTED_BY_EXISTING,
    REJECTED_BY_OWN,
)
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS, ports_conflict
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, TOO_MANY_PODS
from webhook.core.scheduler.plugins.node_selection import nodes_meeting, nodes_of_terms, usable_nodes
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.node_volume_limits import NO_DRIVER, NODE_VOLUME_LIMITS, TOO_MANY_VOLUMES
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.plugins.volume_binding import NO_SPACE, NONE_TO_BIND, UNBOUND_IMMEDIATE, VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_restrictions import DISK_CONFLICT, VOLUME_RESTRICTIONS, claim_in_use
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE, zone_labels
from webhook.core.scheduler.plugins.volumes import claim_name, reachable_from
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.verdict import Verdict
from webhook.core.text import constraint_name, listed, segment_of

_NAMES = 2  # The most pods or claims named in a text.


class Obstacle(Struct, frozen=True):
    """A reason why some nodes reject the pod. These nodes can have further reasons.

    ``text`` completes "the node is", as in ``tainted a=b:NoSchedule``. Names are not shortened.
    """

    plugin: str
    text: str
    nodes: int


def obstacles(cycle: Cycle, index: ReadOnlyIndex | None = None) -> tuple[Obstacle, ...]:
    """List all obstacles in the order of the filters. With an index, obstacles include the names of other pods."""
    by_text: dict[str, Obstacle] = {}
    by_volumes = 0  # Four plugins reject nodes for the same claim. The first text is enough.
    for plugin in cycle.problem.filters:
        alone = cycle.verdict_of(plugin)
        failing = alone.nodes.live & ~alone.feasible
        named = [*_NAMED[plugin](cycle, alone, index)] if failing and plugin in _NAMED else []
        rest = failing & ~by_volumes if plugin in PARTS["volumes"] else failing
        by_volumes |= failing if plugin in PARTS["volumes"] else 0
        for _, nodes in named:
            rest &= ~nodes
        unnamed = [(", ".join(status.reasons), members & rest) for status, members in alone.failed]
        for text, nodes in (*named, *unnamed):
            known = by_text.get(text)
            if nodes & failing:
                plugin_of, before = (known.plugin, known.nodes) if known else (plugin, 0)
                by_text[text] = Obstacle(plugin_of, text, before | nodes & failing)
    return tuple(by_text.values())


def grouped(every: Sequence[Obstacle], nodes: int) -> list[tuple[tuple[str, ...], int]]:
    """Group the nodes by the texts of their obstacles, the largest group first.

    Preemption has reserved the nodes without an obstacle for other pods.
    """
    parts: list[tuple[tuple[str, ...], int]] = [((), nodes)] if nodes else []
    for obstacle in every:
        parts = [
            (texts_of_part, part)
            for texts, members in parts
            for texts_of_part, part in (
                ((*texts, obstacle.text), members & obstacle.nodes),
                (texts, members & ~obstacle.nodes),
            )
            if part
        ]
    return sorted(parts, key=lambda part: (-part[1].bit_count(), part[0]))


_Named = Iterator[tuple[str, int]]


def untolerated(problem: Problem) -> Iterator[tuple[tuple[Taint, ...], int]]:
    """Yield each set of untolerated taints, with a bit set of the nodes that have exactly these untolerated taints."""
    tolerations = problem.pod.pod_spec.tolerations
    for taints, nodes in problem.nodes.taint_classes:
        # Collect all untolerated taints. The scheduler stops at the first, but a pod needs a toleration for each.
        lacking = tuple(taint for taint in taints if first_untolerated((taint,), tolerations, FILTERING_EFFECTS))
        if lacking:
            yield lacking, nodes


def toleration_for(taint: Taint) -> Toleration:
    """Return the narrowest toleration for a taint."""
    if taint.value:
        return Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return Toleration(key=taint.key, operator="Exists", effect=taint.effect)


def _taints(cycle: Cycle, _: Verdict, __: ReadOnlyIndex | None) -> _Named:
    for taints, nodes in untolerated(cycle.problem):
        states = dict.fromkeys(NODE_STATES[taint.key] for taint in taints if taint.key in NODE_STATES)
        others = [taint.text for taint in taints if taint.key not in NODE_STATES]
        yield ", ".join((*states, *([f"tainted {', '.join(others)}"] if others else []))), nodes


def _selected(cycle: Cycle, _: Verdict, __: ReadOnlyIndex | None) -> _Named:
    nodes, required = cycle.problem.nodes, cycle.required
    for requirement in required.pairs.requirements:
        yield _wanted(requirement, nodes), nodes.live & ~nodes_meeting(nodes, requirement)
    if required.terms is None:
        return
    unmatched = nodes.live & ~nodes_of_terms(nodes, required.terms)
    if not required.terms:
        yield "not selected (the pod's node affinity has only empty terms)", unmatched
    yield from _nearest(required.terms, unmatched, nodes)


def _nearest(terms: Sequence[NodeTerm], unmatched: int, nodes: NodeView) -> _Named:
    """Yield a text about each unmet node affinity requirement, with its nodes.

    For each node, only the node affinity term with the fewest unmet requirements counts.
    """
    lacking = [[*_lacks(term, nodes)] for term in terms]
    chosen: dict[int, int] = {}
    for slot in node_sets.to_slots(unmatched if terms else 0):
        # Terms are alternatives. The nearest term is the easiest to satisfy.
        number = min(range(len(terms)), key=lambda n: (sum(part >> slot & 1 for _, part in lacking[n]), n))
        chosen[number] = chosen.get(number, 0) | 1 << slot
    for number, members in chosen.items():
        yield from ((text, part & members) for text, part in lacking[number])


def _lacks(term: NodeTerm, nodes: NodeView) -> _Named:
    if term.invalid:
        yield "not selected (the pod's node affinity has a term that cannot be read)", nodes.live
        return
    for requirement in term.expressions:
        yield _wanted(requirement, nodes), nodes.live & ~nodes_meeting(nodes, requirement)
    for field in term.fields:
        text = f"not selected (wants {'node' if field.equal else 'a node other than'} {field.value})"
        alone = RequiredNodes(terms=(NodeTerm(fields=(field,)),))
        yield text, nodes.live & ~usable_nodes(nodes, alone)


def _wanted(requirement: Requirement, nodes: NodeView) -> str:
    nowhere = not nodes_meeting(nodes, requirement)
    return f"not selected (wants {requirement_in_words(requirement)}{', which no node has' if nowhere else ''})"


def _selector_text(selector: Selector) -> str:
    return " and ".join(dict.fromkeys(map(requirement_in_words, selector.requirements))) or "of any kind"


def _ports(cycle: Cycle, alone: Verdict, _: ReadOnlyIndex | None) -> _Named:
    taken = cycle.problem.taken_ports
    for wanted in cycle.problem.ports:
        slots = [slot for slot, ports in taken.items() if any(ports_conflict(wanted, port) for port in ports)]
        yield f"with port {wanted[2]}/{wanted[1]} taken", node_sets.from_slots(slots, alone.nodes.size)


def _resources(_: Cycle, alone: Verdict, __: ReadOnlyIndex | None) -> _Named:
    for status, nodes in alone.failed:
        for reason in status.reasons:
            yield ("full of pods" if reason == TOO_MANY_PODS else f"short of {_short_of(reason)}"), nodes


def _short_of(reason: str) -> str:
    """Return the name of the scarce resource in a rejection by NodeResourcesFit."""
    return PODS if reason == TOO_MANY_PODS else reason.removeprefix("Insufficient ")


def _restrictions(cycle: Cycle, alone: Verdict, _: ReadOnlyIndex | None) -> _Named:
    storage, live = cycle.problem.storage, alone.nodes.live
    for status, nodes in alone.failed:
        if status.reasons == DISK_CONFLICT.reasons:
            yield "with a disk of this pod in use by another pod", nodes
        elif status.reasons == claim_in_use(cycle.problem.version).reasons:
            names = sorted(name for name, users in storage.users.items() if any(live >> slot & 1 for slot in users))
            yield (
                f"blocked by claim {listed(names, _NAMES)}, which allows only one pod and is in use by another pod",
                nodes,
            )


def _limits(_: Cycle, alone: Verdict, __: ReadOnlyIndex | None) -> _Named:
    for status, nodes in alone.failed:
        if status.reasons == TOO_MANY_VOLUMES.reasons:
            yield "at its limit of attached volumes", nodes
        elif status.reasons[0].endswith(NO_DRIVER):
            yield f"without the storage driver {status.reasons[0].removesuffix(f' {NO_DRIVER}')} of a volume", nodes


def _binding(cycle: Cycle, alone: Verdict, _: ReadOnlyIndex | None) -> _Named:
    storage, nodes = cycle.problem.storage, alone.nodes
    rejected = {reason: members for status, members in alone.failed for reason in status.reasons}
    for name in _claims(cycle.problem):
        claim = storage.claims.get(name)
        if claim is None:
            continue
        volume = storage.volumes.get(claim.spec.volume_name or "")
        claim_text = f"claim {name} ({f'class {claim.storage_class}' if claim.storage_class else 'no class'})"
        if not claim.bound:
            yield f"waiting for {claim_text}, which has no volume yet", rejected.get(UNBOUND_IMMEDIATE, 0)
            yield (
                f"without a volume for {claim_text}: none is free there, and none can be provisioned",
                rejected.get(NONE_TO_BIND, 0),
            )
            yield (
                f"without space for a volume for {claim_text}, according to the storage driver",
                rejected.get(NO_SPACE, 0),
            )
        elif volume is None:
            yield f"waiting for volume {claim.spec.volume_name} of claim {name}, which does not exist", nodes.live
        elif not alone.pre_filter.rejected:
            text = f"out of reach of volume {volume.meta.name} (claim {name}), usable from {_reach(volume)}"
            yield text, ~reachable_from(volume, nodes)


def _reach(volume: PersistentVolume) -> str:
    affinity = volume.spec.node_affinity
    terms = compile_node_selector(affinity.required) if affinity and affinity.required else ()
    return " or ".join(" and ".join(map(requirement_in_words, term.expressions)) for term in terms) or "no node"


def _claims(problem: Problem) -> list[str]:
    pod = problem.pod
    names = (claim_name(pod.meta.name, volume) for volume in pod.pod_spec.volumes or ())
    return [name for name in dict.fromkeys(names) if name]


def _zone(cycle: Cycle, alone: Verdict, _: ReadOnlyIndex | None) -> _Named:
    storage = cycle.problem.storage
    for name in () if alone.pre_filter.rejected else _claims(cycle.problem):
        claim = storage.claims.get(name)
        volume = None if claim is None else storage.volumes.get(claim.spec.volume_name or "")
        for key, values in () if volume is None else zone_labels(volume):
            column = alone.nodes.column(key)
            there = column.nodes_of([column.numbers[value] for value in values if value in column.numbers])
            volume_text = f"volume {volume.meta.name if volume else ''} (claim {name})"
            yield f"out of reach of {volume_text}, which is in {key}={' or '.join(sorted(values))}", ~there


def _spread(cycle: Cycle, _: Verdict, __: ReadOnlyIndex | None) -> _Named:
    for each, name in zip(cycle.domains, _hard_names(cycle.problem), strict=True):
        present = each.column.present
        yield f"without {each.constraint.topology_key}", cycle.problem.nodes.live & ~present
        yield f"over the limit of {name}", present & pod_topology_spread.above_limit(each)


def _hard_names(problem: Problem) -> list[str]:
    constraints = problem.hard.constraints
    places = [n for n, constraint in enumerate(problem.pod.pod_spec.constraints) if constraint.hard]
    # Cluster defaults have no index in the pod.
    own = len(places) == len(constraints)
    return [
        constraint_name(constraint.topology_key, places[number] if own else None)
        for number, constraint in enumerate(constraints)
    ]


def _neighbours(cycle: Cycle, alone: Verdict, index: ReadOnlyIndex | None) -> _Named:
    neighbours, nodes, pod = cycle.problem.neighbours, alone.nodes, cycle.problem.pod
    rejected = {reason: members for status, members in alone.failed for reason in status.reasons}
    lonely = rejected.get(NO_AFFINITY.reasons[0], 0)
    for term in neighbours.affinity_terms if lonely else ():
        column = nodes.column(term.topology_key)
        there = column.nodes_of(sorted({column.domain_of[slot] for slot in neighbours.affinity_pods} - {-1}))
        # Without a neighbour anywhere, the pod waits forever.
        nowhere = "" if there else "; no node has such a pod"
        yield f"without {term.topology_key}", lonely & ~column.present
        text = f"without a pod {_selector_text(term.selector)} in its {segment_of(term.topology_key)}"
        yield f"{text} (pod affinity{nowhere})", lonely & column.present & ~there
    own = rejected.get(REJECTED_BY_OWN.reasons[0], 0)
    for term, counts in zip(neighbours.anti_affinity_terms, neighbours.anti_affinity_pods, strict=True):
        column = nodes.column(term.topology_key)
        members = own & column.nodes_of(sorted({column.domain_of[slot] for slot in counts} - {-1}))
        names = [] if index is None else [*_matching(term, index, column.domain_of, members)]
        text = f"with a pod {_selector_text(term.selector)} in its {segment_of(term.topology_key)} (pod anti-affinity)"
        yield _with_names(text, names), members
    existing = rejected.get(REJECTED_BY_EXISTING.reasons[0], 0)
    if existing:
        objecting = [] if index is None else index.pods.objecting(pod.meta.namespace, pod.labels)
        names = sorted(f"{namespace}/{key}" for namespace, key, _ in objecting)
        yield _with_names("excluded by the anti-affinity of another pod", names), existing


def _with_names(text: str, names: Sequence[str]) -> str:
    return f"{text}: {listed(names, _NAMES)}" if names else text


def _matching(term: Term, index: ReadOnlyIndex, domain_of: Sequence[int], nodes: int) -> Iterator[str]:
    domains = {domain_of[slot] for slot in node_sets.to_slots(nodes)}
    namespaces = index.namespaces.all_labels()
    for namespace in index.pods.namespaces():
        if term.in_namespace(namespace, namespaces.get(namespace)):
            for key, slot in index.pods.matching(namespace, term.selector):
                if slot < len(domain_of) and domain_of[slot] in domains:
                    yield f"{namespace}/{key}"


# Filters without a row use the scheduler's reasons.
_NAMED: Mapping[str, Callable[[Cycle, Verdict, ReadOnlyIndex | None], Iterable[tuple[str, int]]]] = {
    NODE_NAME: lambda cycle, alone, _: [
        (f"not selected (wants node {cycle.problem.pod.pod_spec.node_name})", ~alone.feasible)
    ],
    NODE_UNSCHEDULABLE: lambda _, alone, __: [("cordoned", ~alone.feasible)],
    TAINT_TOLERATION: _taints,
    NODE_AFFINITY: _selected,
    NODE_PORTS: _ports,
    NODE_RESOURCES_FIT: _resources,
    VOLUME_RESTRICTIONS: _restrictions,
    NODE_VOLUME_LIMITS: _limits,
    VOLUME_BINDING: _binding,
    VOLUME_ZONE: _zone,
    pod_topology_spread.POD_TOPOLOGY_SPREAD: _spread,
    INTER_POD_AFFINITY: _neighbours,
}
