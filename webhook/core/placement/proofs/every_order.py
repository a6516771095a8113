"""Prove that equal pods of a template find a node in any order.

A fix must have this proof. The proof uses these limits:

    node                resources, host ports, anti-affinity, volumes, and constraints on hosts
                        with a fixed global minimum: a cap for each host
    other constraint    the formulas of `bounds`, which hold in every order
    pinned pods         need capacity even if all possible pods get to their nodes first, within maxSkew

With two other constraints, nothing is proven, and the fix is not offered.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.storage import READ_WRITE_ONCE_POD
from webhook.core.budget import check_time
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.placement.proofs.bounds import DomainState, addable
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.placement.proofs.pinned_claims import PodsToPlace
from webhook.core.placement.proofs.workload_problem import (
    MAX_HOME_DOMAINS,
    CandidateNodes,
    CountedConstraint,
    Restriction,
    WorkloadProblem,
    candidate_nodes,
)
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS
from webhook.core.scheduler.plugins.pod_topology_spread import EligibleNodes
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_restrictions import VOLUME_RESTRICTIONS
from webhook.core.scheduler.plugins.volumes import is_disk

_Homes = Mapping[int, frozenset[int]]  # The domains of each set of nodes for pinned pods.
# Check this number of nodes one by one. Comparing all of 5,000 nodes at once takes as long as some fifty of them.
_A_FEW = 50


class StartState(Struct, frozen=True):
    """The cluster and the candidate nodes before the first pod is placed.

    Attributes:
        facts: The facts about the workload.
        here: The candidate nodes. None if no proof is possible.
        anew: Whether all pods are placed from scratch. If false, new pods join the running pods.
        capacities: The pod's own hard constraints over these nodes, with their counted pods. Empty if unknown.
    """

    facts: WorkloadProblem
    here: CandidateNodes | None
    anew: bool
    capacities: tuple[ConstraintCapacity, ...] = ()


def start_states(
    facts: WorkloadProblem, nodes: CandidateNodes, capacities: tuple[ConstraintCapacity, ...] = ()
) -> Iterator[StartState]:
    """Yield each state of the cluster in which a fix must work.

    The present state comes first. In the other states, none of the workload's pods exist yet, or nodes that are briefly
    away have returned. ``capacities`` are the pod's constraints over the candidate nodes.
    """
    # Absent nodes may or may not return, so a fix must work with them and without.
    for present in (True, False) if facts.away else (False,):
        here = candidate_nodes(facts, present=True) if present else nodes
        open_now = _start_nodes(facts, here, anew=False, present=present)
        yield StartState(facts, open_now, anew=False, capacities=capacities if open_now is nodes else ())
        if facts.running or any(constraint.own for constraint in facts.hard):
            yield StartState(facts, _start_nodes(facts, here, anew=True, present=present), anew=True)


def _start_nodes(facts: WorkloadProblem, here: CandidateNodes, *, anew: bool, present: bool) -> CandidateNodes | None:
    """Return the nodes that admit the pods at the start of a proof.

    None if no proof is possible. With ``anew``, all pods of the workload are placed again. So a node closed only by the
    workload's own pods counts as open.
    """
    problem = facts.problem
    cycle, volumes = Cycle(problem), problem.pod.pod_spec.volumes or ()
    # A volume for a single pod keeps all others away, and any pod may get it.
    alone = any(READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()) for claim in problem.storage.claims.values())
    if alone or any(map(is_disk, volumes)) or (volumes and cycle.result(VOLUME_BINDING).pre_filter.rejected):
        return None
    if anew and facts.running and problem.neighbours.affinity_terms and problem.neighbours.matches_itself:
        return None  # With affinity to each other, new pods may choose another domain.
    nodes = problem.nodes
    if len(here.apart) < _terms_on_itself(facts) or not all(nodes.column(key).one_each for key in here.apart):
        return None  # Some term may not match the pods themselves, or may cover more than one node.
    left = here.open
    if anew and here.apart:
        left |= candidate_nodes(facts, present=present, without=(Restriction.APART,)).open & _only_its_own(facts)
    if volumes:
        for plugin in (VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS):
            decide = cycle.result(plugin).filter
            left &= ~sum(members for _, members in decide(left)) if decide is not None else -1
    if problem.ports:
        decide = cycle.result(NODE_PORTS).filter
        conflicting = sum(members for _, members in decide(left)) if decide is not None else 0
        left &= ~conflicting | (node_sets.from_slots([*facts.running], nodes.size) if anew else 0)
    return here if left == here.open else replace(here, open=left)


def _terms_on_itself(facts: WorkloadProblem) -> int:
    meta, near = facts.problem.pod.meta, facts.problem.neighbours
    return sum(
        term.in_namespace(meta.namespace, {}) and term.selector.matches(meta.labels or {})
        for term in near.anti_affinity_terms
    )


def _only_its_own(facts: WorkloadProblem) -> int:
    """Return the nodes closed by anti-affinity only because of the workload's own pods."""
    near = facts.problem.neighbours
    slots = []
    for slot, pods in facts.running.items():
        met = all(
            counts.get(slot, 0) <= own.get(slot, 0)
            for counts, own in zip(near.anti_affinity_pods, facts.apart, strict=True)
        )
        rejecting = sum(counts.get(slot, 0) for _, counts in near.existing_terms)
        if met and rejecting <= pods * len(near.anti_affinity_terms):
            slots.append(slot)
    return node_sets.from_slots(slots, facts.problem.nodes.size)


def fits(
    start: StartState,
    hard: Sequence[CountedConstraint],
    to_place: PodsToPlace,
    *,
    lost: int = 0,
    limits: Mapping[int, int] | None = None,
) -> bool:
    """Whether all pods are proven to find a node in every order.

    Args:
        start: The cluster before placing the pods.
        hard: The hard constraints, with their counted pods. They replace the pod's own constraints.
        to_place: The pods to place.
        lost: A bit set of nodes lost with their pods. These nodes have a taint not tolerated by the pod.
        limits: The most pods by slot, for nodes with a limit.
    """
    here, facts = start.here, start.facts
    if not to_place.pods:
        return True
    if here is None or not all(constraint.certain for constraint in hard):
        return False
    if lost and facts.problem.neighbours.affinity_terms:
        return False  # The pods of its affinity may be lost too.
    counted = [_counted(constraint, lost, anew=start.anew) for constraint in hard]
    left = _without(here, lost) if lost else here
    if here.together is None:
        known = start.capacities if hard is facts.hard and not lost else ()
        return _fits(start, known or constraint_capacities(counted, left, facts.problem), left, to_place, limits or {})
    # All pods follow the first pod into any domain, so each domain has to work.
    homes = here.eligible.nodes.column(here.together)
    chosen = homes.domains(left.open)
    if to_place.pinned or not 0 < len(chosen) <= MAX_HOME_DOMAINS:
        return False
    inside = (replace(left, open=left.open & homes.nodes(home)) for home in chosen)
    return all(
        _fits(start, constraint_capacities(counted, candidates, facts.problem), candidates, to_place, limits or {})
        for candidates in inside
    )


def _without(here: CandidateNodes, lost: int) -> CandidateNodes:
    eligible = here.eligible
    tolerated = EligibleNodes(eligible.nodes, eligible.usable, eligible.tolerated & ~lost)
    return replace(here, eligible=tolerated, open=here.open & ~lost)


def _counted(hard: CountedConstraint, lost: int, *, anew: bool) -> CountedConstraint:
    """Return the constraint without the pods on lost nodes. With ``anew``, also subtract the workload's own pods."""
    if not lost and not anew:
        return hard
    gone, own = node_sets.flags(lost, lost.bit_length()), hard.own if anew else {}
    counts = {
        slot: pods - own.get(slot, 0)
        for slot, pods in hard.counts.items()
        if own.get(slot) != pods and not (slot < len(gone) and gone[slot])
    }
    return replace(hard, counts=counts, own={})


def _fits(
    start: StartState,
    capacities: Sequence[ConstraintCapacity],
    here: CandidateNodes,
    to_place: PodsToPlace,
    limits: Mapping[int, int],
) -> bool:
    """Whether every order is proven to place all pods, if each pod may use any candidate node with free capacity."""
    open_, replicas = here.open, to_place.pods
    moving: list[ConstraintCapacity] = []
    caps: list[tuple[ConstraintCapacity, int]] = []
    on_hosts: list[tuple[ConstraintCapacity, int]] = []
    for capacity in capacities:
        open_ &= capacity.open
        top = _fixed_top(capacity, replicas)
        most, domains = max((cell.pods for cell in capacity.cells), default=0), sum(capacity.cells.values())
        if most + replicas <= capacity.limit.max_skew or (domains == 1 and capacity.limit.enough):
            continue  # No domain can reach maxSkew, or there is a single domain. The constraint rejects nothing.
        if top is None:
            moving.append(capacity)
        else:
            (on_hosts if capacity.column.one_each else caps).append((capacity, top))
    # The pods admitted by one constraint limit the other, so the order matters. This case is not decided.
    if len(moving) + len(caps) > 1:
        return False
    facts = start.facts
    # Equal pods would need the same host port, or avoid each other.
    is_alone = bool(facts.problem.ports or here.apart)
    on_nodes = _NodeCapacity(
        facts=facts,
        to_place=to_place,
        open=open_,
        everywhere=not (on_hosts or limits or facts.free or is_alone or facts.most < replicas),
        most=min(1 if is_alone else replicas, facts.most),
        limits=limits,
        tops=on_hosts,
        freed=facts.freed if start.anew else {},
    )
    for capacity, top in [*((capacity, None) for capacity in moving), *caps]:
        return on_nodes.admitted_by(capacity, top)
    if any(on_nodes.together(nodes & open_, rivals) < rivals for nodes, rivals in on_nodes.rivals()):
        return False
    return not to_place.free or on_nodes.together(open_, replicas) >= replicas


class _NodeCapacity(Struct, frozen=True, kw_only=True, dict=True):
    """The pods to place, and how many of them each open node can run.

    Attributes:
        everywhere: Whether each open node can run all pods.
        most: The most pods on one node.
        limits: The most pods on a node, by slot (the node's number), where lower than ``most``.
        tops: Each hostname constraint, with the highest count it allows on a host.
        freed: By slot, the free resources once the workload's own pods are gone. Empty if those pods stay.
    """

    facts: WorkloadProblem
    to_place: PodsToPlace
    open: int
    everywhere: bool
    most: int
    limits: Mapping[int, int]
    tops: Sequence[tuple[ConstraintCapacity, int]]
    freed: Mapping[int, tuple[int, ...]]

    def on(self, slot: int) -> int:
        """Return how many pods the node in this slot takes."""
        most = min(self.most, self.limits.get(slot, self.most))
        for capacity, top in self.tops:
            most = min(most, top - capacity.count(capacity.column.domain_of[slot]))
        # If the own pods are created anew, their resources count as free.
        own = self.freed.get(slot)
        for number, (column, amount) in enumerate(self.facts.free):
            most = min(most, (column[slot] if own is None else own[number]) // amount)
        return max(0, most)

    def some(self, nodes: int) -> int:
        """Return the nodes that may accept a pod: all nodes except those known to reject every pod."""
        full = self.facts.full
        if full and self.freed:
            full &= ~node_sets.from_slots([*self.freed], self.facts.problem.nodes.size)
        return nodes & ~full

    def together(self, nodes: int, enough: int) -> int:
        """Return how many pods these nodes can run in total, up to ``enough``.

        Counting a few nodes usually suffices.
        """
        total, scarce = 0, bool(self.facts.free)
        if enough > _A_FEW and (self._most <= 1 or not scarce):
            alike = nodes & ~(self._special | (self.facts.full if scarce else 0))
            total = alike.bit_count() * self._most
            nodes &= self._special
        for slot in self._in_turn(nodes) if total < enough else ():
            check_time()
            total += self.on(slot)
            if total >= enough:
                break
        return min(total, enough)

    @cached_property
    def _most(self) -> int:
        return max(0, min([self.most, *(top for _, top in self.tops)]))

    @cached_property
    def _special(self) -> int:
        """The nodes with limits or already counted pods. All other nodes admit the same number of pods, unless full."""
        special = node_sets.from_slots([*self.limits, *self.freed], self.facts.problem.nodes.size)
        for capacity, _ in self.tops:
            special |= capacity.column.nodes_of(tuple(capacity.domains.match_num))
        return special

    def _in_turn(self, nodes: int) -> Iterator[int]:
        """Yield the slots of the nodes. After the first few nodes, full nodes are left out."""
        last = -1
        for last in islice(node_sets.one_by_one(nodes), _A_FEW):
            yield last
        rest = (nodes >> last + 1) << last + 1
        if rest:
            yield from node_sets.one_by_one(self.some(rest))

    def rivals(self) -> Iterator[tuple[int, int]]:
        """Yield each set of nodes with pinned pods, and the most pods competing for it."""
        pinned = self.to_place.pinned
        for nodes in pinned:
            others = sum(pods for each, pods in pinned.items() if each & nodes & self.open)
            yield nodes, self.to_place.free + max(others, 1)

    def admitted_by(self, capacity: ConstraintCapacity, top: int | None) -> bool:
        """Whether the constraint admits all pods. ``top`` is the most pods of a domain if the minimum is fixed."""
        column, replicas = capacity.column, self.to_place.pods
        if self.to_place.free and top is None and self.everywhere:
            most = addable(capacity.cells, capacity.limit)
            if most is not None and most < replicas:
                return False
        elif self.to_place.free:
            takes = self._by_domain(capacity, replicas)
            if top is None:
                cells = Counter(DomainState(capacity.count(number), room) for number, room in takes)
                if (addable(cells, capacity.limit) or 0) < replicas:
                    return False
            elif sum(min(room, max(0, top - capacity.count(number))) for number, room in takes) < replicas:
                return False
        homes = {nodes: column.domains(nodes & self.open) for nodes in self.to_place.pinned}
        return all(
            any(self._is_safe(capacity, top, homes, nodes & self.open & column.nodes(home)) for home in homes[nodes])
            for nodes in homes
        )

    def _is_safe(self, capacity: ConstraintCapacity, top: int | None, homes: _Homes, inside: int) -> bool:
        """Whether the pods pinned to the nodes ``inside`` always find a node there, in every order."""
        pinned, free = self.to_place.pinned, self.to_place.free
        (home,) = capacity.column.domains(inside)
        # In the worst order, all pods able to come here come first.
        rivals = free + sum(pods for nodes, pods in pinned.items() if nodes & inside)
        if self.together(inside, rivals) < rivals:
            return False
        if top is None:
            # The minimum ends at least as high as with only the pods pinned to a single domain.
            sure: Counter[int] = Counter()
            for nodes, domains in homes.items():
                if len(domains) == 1:
                    sure[next(iter(domains))] += pinned[nodes]
            others = capacity.column.domains(capacity.domains.counting) - {home}
            top = min(capacity.count(number) + sure[number] for number in others) + capacity.limit.max_skew
        return capacity.count(home) + free + sum(pods for nodes, pods in pinned.items() if home in homes[nodes]) <= top

    def _by_domain(self, capacity: ConstraintCapacity, enough: int) -> Iterator[tuple[int, int]]:
        column, counting = capacity.column, capacity.domains.counting
        if column.one_each:
            able = node_sets.flags(self.some(self.open), len(column.domain_of))
            for slot in node_sets.to_slots(counting):
                check_time()
                yield column.domain_of[slot], self.on(slot) if able[slot] else 0
        else:
            for number in column.domains(counting):
                check_time()
                yield number, self.together(column.nodes(number) & self.open, enough)


def _fixed_top(capacity: ConstraintCapacity, replicas: int) -> int | None:
    """Return the most pods a domain admits if the global minimum cannot rise.

    None if the minimum may rise. There are three cases in which the minimum cannot rise:

    - The constraint has fewer domains than minDomains. The minimum is then 0.
    - A domain with the fewest pods accepts no pod.
    - More domains have the fewest pods than there are pods to place.
    """
    if not capacity.limit.enough:
        return capacity.limit.max_skew
    lowest = min((cell.pods for cell in capacity.cells), default=0)
    emptiest = {cell: domains for cell, domains in capacity.cells.items() if cell.pods == lowest}
    held = any(cell.room == 0 for cell in emptiest)
    return lowest + capacity.limit.max_skew if held or sum(emptiest.values()) > replicas else None
