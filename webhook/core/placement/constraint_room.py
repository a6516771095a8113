"""What is left to one hard constraint: its domains, their counts, and which of them can grow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import HONOR
from webhook.core.index import node_sets
from webhook.core.index.node_table import Column
from webhook.core.placement.bounds import Cell, Limit, Zone, addable, addable_on_hosts, reachable_minimum
from webhook.core.placement.workload_problem import MOST_HOMES, CandidateNodes, CountedConstraint
from webhook.core.scheduler.plugins.pod_topology_spread import Counted, Domains, count_domains
from webhook.core.scheduler.problem import Problem


class ConstraintRoom(Struct, frozen=True, dict=True):
    """One hard constraint on a terrain.

    Shape: ``open`` are nodes that have all keys too. ``unsteady`` says that nodes which are taken to be back count
    only then: with some of them back and some away, fewer pods may fit, or more.
    """

    hard: CountedConstraint
    domains: Domains
    open: int
    apart: tuple[Column, ...] = ()
    unsteady: bool = False

    @property
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
        """The workload's own pods that count, wherever they are."""
        return sum(self.hard.own.values())

    @cached_property
    def cells(self) -> Mapping[Cell, int]:
        """The domains that count, equal ones together."""
        if self.column.one_each:
            return self._cells_of_hosts()
        cells: Counter[Cell] = Counter()
        for number in self.column.domains(self.domains.counting):
            cells[Cell(self.count(number), self.room(number))] += 1
        return cells

    def _cells_of_hosts(self) -> Mapping[Cell, int]:
        """Without a look at each host: most have no pod."""
        pods, counting = self.domains.match_num, self.domains.counting
        single = 0
        for column in self.apart:
            single |= column.present
        used = self.column.nodes_of(tuple(pods)) & counting
        cells: Counter[Cell] = Counter()
        for room, hosts in ((0, counting & ~self.open), (1, self.open & single), (None, self.open & ~single)):
            cells[Cell(0, room)] = (hosts & ~used).bit_count()
            for slot in node_sets.to_slots(hosts & used):
                cells[Cell(pods[self.column.of[slot]], room)] += 1
        return {cell: hosts for cell, hosts in cells.items() if hosts}

    def count(self, number: int) -> int:
        """The matching pods of a domain."""
        return self.domains.match_num.get(number, 0)

    def room(self, number: int) -> int | None:
        """How many more pods a domain can take, whatever spreading says; None for any number."""
        inside = self.open & self.column.nodes(number)
        if not inside:
            return 0
        limits = [column.domain_count(inside) for column in self.apart if not inside & ~column.present]
        return min(limits, default=None)

    @property
    def open_domains(self) -> frozenset[int]:
        """The domains with an open node."""
        return self.column.domains(self.open)

    @property
    def closed(self) -> frozenset[int]:
        """The domains that count and have no open node."""
        return self.column.domains(self.domains.counting) - self.open_domains

    @property
    def minimum(self) -> int | None:
        """The most that the emptiest domain can get to; None where nothing bounds it."""
        return reachable_minimum(self.cells, self.limit)

    @cached_property
    def addable(self) -> int | None:
        """How many more pods the constraint alone admits; None for any number, and where that is not known."""
        return addable(self.cells, self.limit) if self.hard.certain and not self.unsteady else None

    @property
    def most(self) -> int | None:
        """The most of the workload's pods that the constraint admits, those that run included; None for any number."""
        return None if self.addable is None else self.placed + self.addable

    def most_in_one(self, column: Column) -> int | None:
        """The same where all of them have to be in one domain of another key; None also where those are too many."""
        homes = column.domains(self.open)
        if len(homes) > MOST_HOMES:
            return None
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
        inside = zones.open & zones.column.nodes(number)
        counts = Counter(pods[of[slot]] for slot in node_sets.to_slots(inside & taken))
        empty = (inside & ~taken).bit_count()
        found.append(Zone(zones.count(number), {**counts, 0: empty} if empty else counts))
    held = min((cell.pods for cell in hosts.cells if cell.room == 0), default=None)
    return addable_on_hosts(found, held, zones.limit, hosts.limit, wanted)


def constraint_rooms(
    hard: Sequence[CountedConstraint], of: CandidateNodes, problem: Problem
) -> tuple[ConstraintRoom, ...]:
    """The constraints on a terrain; nodes have to have the keys of all of them.

    Shape: ``hard`` may be others than the pod's own, for what-ifs.
    """
    counted = Counted(tuple(each.constraint for each in hard), tuple(each.counts for each in hard))
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
