"""How many pods each hard constraint admits: its domains, their pods and open nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import HONOR
from webhook.core.budget import check_time
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.placement.proofs.bounds import DomainState, SkewLimit, addable, reachable_minimum
from webhook.core.placement.proofs.host_bounds import Zone, addable_on_hosts
from webhook.core.placement.proofs.workload_problem import MAX_HOME_DOMAINS, CandidateNodes, CountedConstraint
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts, count_domains
from webhook.core.scheduler.plugins.spread_constraints import CountedConstraints
from webhook.core.scheduler.problem import Problem


class ConstraintCapacity(Struct, frozen=True, dict=True):
    """A hard constraint over the candidate nodes.

    Attributes:
        hard: The constraint with its counted pods.
        domains: The domains of the constraint.
        open: The candidate nodes with the keys of all constraints.
        apart: Topology keys of the pods' anti-affinity. Two of the pods never share a domain of such a key.
        unsteady: Whether the constraint will count nodes that are briefly away. No number is exact until their return.
    """

    hard: CountedConstraint
    domains: DomainCounts
    open: int
    apart: tuple[Column, ...] = ()
    unsteady: bool = False

    @cached_property
    def limit(self) -> SkewLimit:
        """The constraint's maxSkew, and whether it has minDomains domains."""
        return SkewLimit(self.domains.constraint.max_skew, not self.domains.too_few)

    @property
    def column(self) -> Column:
        """The values of the topology key on all nodes."""
        return self.domains.column

    @property
    def placed(self) -> int:
        """The number of the workload's pods counted by the constraint."""
        return sum(self.hard.own.values())

    @cached_property
    def cells(self) -> Mapping[DomainState, int]:
        """Count the eligible domains by their matching pods and their room for more pods."""
        if self.column.one_each:
            return self._cells_of_hosts()
        cells: Counter[DomainState] = Counter()
        for number in self.column.domains(self.domains.counting):
            check_time()
            cells[DomainState(self.count(number), self.room(number))] += 1
        return cells

    def _cells_of_hosts(self) -> Mapping[DomainState, int]:
        """Count the hosts by their matching pods and their room for more pods.

        Each host is a domain of a single node. Only hosts with pods are examined in turn.
        """
        pods, counting, domain_of = self.domains.match_num, self.domains.counting, self.column.domain_of
        single = 0
        for column in self.apart:
            single |= column.present
        used = self.column.nodes_of(tuple(pods)) & counting
        cells: Counter[DomainState] = Counter()
        # Thousands of hosts without pods differ only by this, and are counted as sets.
        for room, hosts in ((0, counting & ~self.open), (1, self.open & single), (None, self.open & ~single)):
            cells[DomainState(0, room)] = (hosts & ~used).bit_count()
            for number, alike in Counter(pods[domain_of[slot]] for slot in node_sets.to_slots(hosts & used)).items():
                cells[DomainState(number, room)] += alike
        return {cell: hosts for cell, hosts in cells.items() if hosts}

    def count(self, number: int) -> int:
        """Return the number of matching pods in a domain. ``number`` is the domain's number in the node column."""
        return self.domains.match_num.get(number, 0)

    def room(self, number: int) -> int | None:
        """Return how many more pods a domain admits, ignoring this constraint.

        None if unlimited. 0 for a domain without candidate nodes. Anti-affinity between the new pods also limits the
        number. ``number`` identifies the domain.
        """
        inside = self.open & self.column.nodes(number)
        if not inside:
            return 0
        # Pods with anti-affinity to each other fill each domain of the key once. A node without the key limits nothing.
        limits = [column.domain_count(inside) for column in self.apart if not inside & ~column.present]
        return min(limits, default=None)

    @property
    def open_domains(self) -> frozenset[int]:
        """The domains with an open node."""
        return self.column.domains(self.open)

    @property
    def closed(self) -> frozenset[int]:
        """The eligible domains without a node for the workload's pods."""
        return self.column.domains(self.domains.counting) - self.open_domains

    @property
    def minimum(self) -> int | None:
        """The highest global minimum that any order of placing the pods can reach. None if unlimited."""
        return reachable_minimum(self.cells, self.limit)

    @cached_property
    def addable(self) -> int | None:
        """How many more pods the constraint alone admits. None if unlimited or unknown."""
        return addable(self.cells, self.limit) if self.hard.certain and not self.unsteady else None

    @property
    def most(self) -> int | None:
        """The most pods of the workload, running pods included. None if unlimited or unknown."""
        return None if self.addable is None else self.placed + self.addable

    def most_in_one(self, column: Column) -> int | None:
        """Return the most pods of the workload in one domain of another topology key.

        All pods share this domain. ``column`` has the nodes' values for the key. None if unlimited or unknown.
        """
        homes = column.domains(self.open)
        if len(homes) > MAX_HOME_DOMAINS:
            return None
        # All other pods follow the first one, so the best domain gives the bound.
        by_home = [replace(self, open=self.open & column.nodes(home)).most for home in homes]
        return None if None in by_home else max((most for most in by_home if most is not None), default=self.placed)


def addable_together(zones: ConstraintCapacity, hosts: ConstraintCapacity, wanted: int) -> int | None:
    """Return the number of additional pods admitted by both constraints together.

    None if the number is unknown, or if all ``wanted`` pods are admitted.
    """
    if not (zones.hard.certain and hosts.hard.certain and hosts.column.one_each) or zones.column.sets is None:
        return None
    if wanted <= 0 or zones.unsteady or hosts.unsteady:
        return None
    domain_of = hosts.column.domain_of
    pods = hosts.domains.match_num
    taken = hosts.column.nodes_of(tuple(pods))
    zones_of_hosts = []
    for number in zones.column.domains(zones.domains.counting):
        check_time()
        inside = zones.open & zones.column.nodes(number)
        counts = Counter(DomainState(pods[domain_of[slot]]) for slot in node_sets.to_slots(inside & taken))
        if empty := (inside & ~taken).bit_count():
            counts[DomainState(0)] = empty
        zones_of_hosts.append(Zone(zones.count(number), counts))
    held = min((cell.pods for cell in hosts.cells if cell.room == 0), default=None)
    return addable_on_hosts(zones_of_hosts, held, zones.limit, hosts.limit, wanted)


def constraint_capacities(
    hard: Sequence[CountedConstraint], candidates: CandidateNodes, problem: Problem
) -> tuple[ConstraintCapacity, ...]:
    """Return each hard constraint with its counted pods, over the candidate nodes.

    Only candidate nodes with the topology keys of all constraints are used.
    """
    counted = CountedConstraints(
        tuple(constraint.constraint for constraint in hard), tuple(constraint.counts for constraint in hard)
    )
    nodes = candidates.eligible.nodes
    within = candidates.open
    for constraint in hard:
        within &= nodes.column(constraint.constraint.topology_key).present
    apart = tuple(nodes.column(key) for key in candidates.apart)
    counted_domains = count_domains(counted, problem.pod.labels, candidates.eligible)
    return tuple(
        ConstraintCapacity(
            constraint,
            domains,
            within,
            apart,
            unsteady=domains.constraint.node_taints_policy == HONOR and bool(domains.counting & candidates.away),
        )
        for constraint, domains in zip(hard, counted_domains, strict=True)
    )
