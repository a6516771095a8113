"""The fewest nodes that have to be added so that every order places all pods: of which class, in which domains.

Tried are nodes like those that the pods can use, in each domain of their constraints, and nodes of one domain's class
with the labels of another. Few are tried in every mixture of domains; more in one domain, or the same number in each.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product

from msgspec import Struct

from webhook.core.api.selectors import compile_required_nodes
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index import node_sets
from webhook.core.index.overlay import More, with_nodes
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.scheduler.problem import Problem

Fits = Callable[[ReadOnlyIndex], bool]

_MIXED = 2  # nodes that are tried in every mixture of domains
_ONE_BY_ONE = 12
_MOST_DOMAINS = 4
_MOST_CLASSES = 2
_Where = Mapping[str, str]  # the labels of a domain of each constraint


class Added(Struct, frozen=True):
    """So many nodes, like one that is there, with these labels."""

    like: str
    labels: Mapping[str, str]
    nodes: int


def nodes_to_add(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, fits: Fits, others: Mapping[str, Sequence[str]] | None = None
) -> tuple[Added, ...]:
    """The fewest nodes with which all pods fit in every order; none where that is not found.

    Shape: ``fits`` says whether they do in another cluster. ``others`` are domains by key that may have no node yet.
    """
    problem, found = batches[0].problem, list[More]()
    domains, classes = _domains(problem, others or {}), _classes(problem, index)

    def helps(shape: Sequence[int], models: int) -> bool:
        found[:] = [_more(problem, models, domains[each], nodes) for each, nodes in Counter(shape).items()]
        return fits(with_nodes(index, found))

    most = 2 * sum(each.pods for each in batches)
    for (family, nodes, fewer), models in product(_sizes(len(domains), most), classes):
        if helps(family * nodes, models):
            _fewest(lambda many: helps(family * many, models), fewer, nodes)  # noqa: B023 called at once
            return tuple(Added(problem.nodes.names[each.like], each.labels, each.nodes) for each in found)
    return ()


def _sizes(domains: int, most: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Domains by number that get as many nodes each, how many, and which number of them was tried before.

    Shape: the fewest nodes first. Up to some every number is tried, since more may be worse, and then ever larger ones.
    """
    for nodes in range(1, _MIXED + 1):
        yield from ((each, 1, 0) for each in combinations_with_replacement(range(domains), nodes))
    families = [(each,) for each in range(domains)] + [tuple(range(domains))] * (domains > 1)
    before, nodes = _MIXED, _MIXED + 1
    while nodes <= most:
        yield from (
            (family, nodes // len(family), before // len(family))
            for family in families
            if nodes // len(family) > before // len(family)
        )
        before, nodes = nodes, nodes + 1 if nodes < _ONE_BY_ONE else nodes * 3 // 2


def _fewest(helps: Callable[[int], bool], fewer: int, enough: int) -> None:
    """Look between a number that does not help and one that does; the last that is tried is the smallest found."""
    last = enough
    while enough - fewer > 1:
        last = (fewer + enough) // 2
        fewer, enough = (fewer, last) if helps(last) else (last, enough)
    if last != enough:
        helps(enough)


def _domains(problem: Problem, others: Mapping[str, Sequence[str]]) -> list[_Where]:
    """The domains that nodes have, those with the fewest nodes first; one without labels where there is none.

    Shape: ``others`` are as in `nodes_to_add`, and count where one key alone matters.
    """
    view = problem.nodes
    keys = dict.fromkeys(each.topology_key for each in problem.hard.constraints if each.topology_key != HOSTNAME)
    numbers = [view.column(key) for key in keys]
    found = Counter(
        tuple(column.values[column.of[slot]] for column in numbers)
        for slot in node_sets.to_slots(view.live)
        if all(column.of[slot] >= 0 for column in numbers)
    )
    if len(keys) == 1:
        found.update({(value,): 0 for key in keys for value in others.get(key, ())})
    several = sorted(found, key=lambda each: (found[each], each))[:_MOST_DOMAINS]
    return [dict(zip(keys, each, strict=True)) for each in several]


def _classes(problem: Problem, index: ReadOnlyIndex) -> list[int]:
    """Sets of nodes that the pods can use and that offer the same: the most common first."""
    view, spec = problem.nodes, problem.pod.pod_spec
    usable = usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
    usable &= tolerated_nodes(view, spec.tolerations) & ~view.unschedulable
    offered = [(index.amounts(name)[1], amount) for name, amount in problem.request.amounts]
    members: dict[tuple[int, ...], list[int]] = {}
    for slot in node_sets.to_slots(usable):
        if all(has[slot] >= amount for has, amount in offered):
            members.setdefault(tuple(has[slot] for has, _ in offered), []).append(slot)
    several = sorted(members.values(), key=lambda slots: (-len(slots), slots[0]))[:_MOST_CLASSES]
    return [node_sets.from_slots(slots, view.size) for slots in several]


def _more(problem: Problem, models: int, where: _Where, nodes: int) -> More:
    """So many nodes of a class in a domain: like one that is there, if any is."""
    inside = models
    for key, value in where.items():
        inside &= problem.nodes.column(key).with_value(value)
    alike = inside or models
    return More((alike & -alike).bit_length() - 1, nodes, where)
