"""How many more pods each hard constraint admits: its domains, their counts, and which of them can take pods."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import HONOR
from webhook.core.budget import check_time
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.placement.proofs.bounds import Cell, Limit, Zone, addable, addable_on_hosts, reachable_minimum
from webhook.core.placement.proofs.workload_problem import MAX_HOME_DOMAINS, CandidateNodes, CountedConstraint
from webhook.core.scheduler.plugins.pod_topology_spread import CountedConstraints, DomainCounts, count_domains
from webhook.core.scheduler.problem import Problem


class ConstraintRoom(Struct, frozen=True, dict=True):
    """One hard constraint over the candidate nodes.

    ``open`` are the candidates with the keys of all constraints; no two pods may share a domain of a column in
    ``apart``. ``unsteady``: some nodes count only once they are back, so no number holds meanwhile.
    """

    hard: CountedConstraint
    domains: DomainCounts
    open: int
    apart: tuple[Column, ...] = ()
    unsteady: bool = False

    @cached_property
    def limit(self) -> Limit:
        """The constraint's numbers."""
        constraint = self.domains.constraint
        return Limit(constraint.max_skew, self.column.domain_count(self.domains.counting) >= constraint.min_domains)

    @property
    def column(self) -> Column:
        """The topology key over all nodes."""
        return self.domains.column

    @property
    def placed(self) -> int:
        """The workload's own pods that the constraint counts, on whatever nodes."""
        return sum(self.hard.own.values())

    @cached_property
    def cells(self) -> Mapping[Cell, int]:
        """The eligible domains, grouped by what they have and can take."""
        if self.column.one_each:
            return self._cells_of_hosts()
        cells: Counter[Cell] = Counter()
        for number in self.column.domains(self.domains.counting):
            check_time()
            cells[Cell(self.count(number), self.room(number))] += 1
        return cells

    def _cells_of_hosts(self) -> Mapping[Cell, int]:
        """As `cells`, if each domain is one node: only hosts with pods are looked at one by one."""
        pods, counting, of = self.domains.match_num, self.domains.counting, self.column.of
        single = 0
        for column in self.apart:
            single |= column.present
        used = self.column.nodes_of(tuple(pods)) & counting
        cells: Counter[Cell] = Counter()
        # Thousands of hosts without pods differ in nothing but this, and are counted without being looked at.
        for room, hosts in ((0, counting & ~self.open), (1, self.open & single), (None, self.open & ~single)):
            cells[Cell(0, room)] = (hosts & ~used).bit_count()
            for number, alike in Counter(pods[of[slot]] for slot in node_sets.to_slots(hosts & used)).items():
                cells[Cell(number, room)] += alike
        return {cell: hosts for cell, hosts in cells.items() if hosts}

    def count(self, number: int) -> int:
        """The matching pods of a domain."""
        return self.domains.match_num.get(number, 0)

    def room(self, number: int) -> int | None:
        """How many more pods a domain can take before this constraint is considered; None for any number."""
        inside = self.open & self.column.nodes(number)
        if not inside:
            return 0
        # Pods that keep each other away fill each domain of that key once; a node without the key limits nothing.
        limits = [column.domain_count(inside) for column in self.apart if not inside & ~column.present]
        return min(limits, default=None)

    @property
    def open_domains(self) -> frozenset[int]:
        """The domains that have an open node."""
        return self.column.domains(self.open)

    @property
    def closed(self) -> frozenset[int]:
        """The eligible domains without an open node."""
        return self.column.domains(self.domains.counting) - self.open_domains

    @property
    def minimum(self) -> int | None:
        """The highest global minimum that can be reached; None if nothing bounds it."""
        return reachable_minimum(self.cells, self.limit)

    @cached_property
    def addable(self) -> int | None:
        """How many more pods the constraint alone admits; None for any number, and if it is not known."""
        return addable(self.cells, self.limit) if self.hard.certain and not self.unsteady else None

    @property
    def most(self) -> int | None:
        """The most pods of the workload that the constraint admits, including those that run; None for any number."""
        return None if self.addable is None else self.placed + self.addable

    def most_in_one(self, column: Column) -> int | None:
        """As `most` if all pods must be in one domain of another key; None also if that has too many domains."""
        homes = column.domains(self.open)
        if len(homes) > MAX_HOME_DOMAINS:
            return None
        # Whichever domain the first pod chooses, all others follow it: the best one is the bound.
        by_home = [replace(self, open=self.open & column.nodes(home)).most for home in homes]
        return None if None in by_home else max((most for most in by_home if most is not None), default=self.placed)


def addable_together(zones: ConstraintRoom, hosts: ConstraintRoom, wanted: int) -> int | None:
    """How many more pods both constraints admit together; None for so many as are wanted, and where it is not known."""
    if not (zones.hard.certain and hosts.hard.certain and hosts.column.one_each) or zones.column.sets is None:
        return None
    if wanted <= 0 or zones.unsteady or hosts.unsteady:
        return None
    of = hosts.column.of
    pods = hosts.domains.match_num
    taken = hosts.column.nodes_of(tuple(pods))
    found = []
    for number in zones.column.domains(zones.domains.counting):
        check_time()
        inside = zones.open & zones.column.nodes(number)
        counts = Counter(Cell(pods[of[slot]]) for slot in node_sets.to_slots(inside & taken))
        if empty := (inside & ~taken).bit_count():
            counts[Cell(0)] = empty
        found.append(Zone(zones.count(number), counts))
    held = min((cell.pods for cell in hosts.cells if cell.room == 0), default=None)
    return addable_on_hosts(found, held, zones.limit, hosts.limit, wanted)


def constraint_rooms(
    hard: Sequence[CountedConstraint], of: CandidateNodes, problem: Problem
) -> tuple[ConstraintRoom, ...]:
    """The room of each constraint, of the pod or of a change, on the candidates with the keys of all."""
    counted = CountedConstraints(tuple(each.constraint for each in hard), tuple(each.counts for each in hard))
    nodes = of.eligible.nodes
    within = of.open
    for each in hard:
        within &= nodes.column(each.constraint.topology_key).present
    apart = tuple(nodes.column(key) for key in of.apart)
    counted_domains = count_domains(counted, problem.pod.labels, of.eligible)
    return tuple(
        ConstraintRoom(
            each,
            domains,
            within,
            apart,
            unsteady=domains.constraint.node_taints_policy == HONOR and bool(domains.counting & of.away),
        )
        for each, domains in zip(hard, counted_domains, strict=True)
    )
