"""What becomes of the pods of a group with some fields: every order, or as many as can be looked at.

Beside the verdict this is how full a domain can get. Where not every order can be followed, some are led: into one
domain as long as it takes pods, and else to where they raise the minimum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Move, State
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.outcome import Effort, PlacementOutcome, Simulation, Step
from webhook.core.placement.search import search
from webhook.core.placement.simulation import named_steps, simulate, simulation_of_search

# Some seconds; a group of four shards has fewer states, one of nine more than could ever be met.
EFFORT = Effort(states=4_000)
_MOST_LED = 8  # domains that orders are led into


class Worst(Struct, frozen=True):
    """The most pods that a domain was seen to hold: which, how many, and the order that leads there."""

    domain: str
    pods: int
    steps: tuple[Step, ...] = ()


class Outlook(Simulation, frozen=True, kw_only=True):
    """What the orders come to, and the fullest domain by topology key; no order is worse if ``exact``."""

    worst: Mapping[str, Worst]
    exact: bool

    @property
    def gets_stuck(self) -> bool:
        """Whether an order is known that leaves a pod without a node; of an unknown outcome it may be all of them."""
        return bool(self.witness) or self.outcome in {PlacementOutcome.STUCK, PlacementOutcome.NO_FIT}


def outlook(batches: Sequence[PodBatch], index: ReadOnlyIndex, keys: Iterable[str], effort: Effort = EFFORT) -> Outlook:
    """What becomes of these pods, and how full domains of the keys get."""
    of = game_of(batches, index)
    found = search(of.game, effort.states)
    columns = {key: of.nodes.view.column(key) for key in keys}
    if found.exact:
        simulated = replace(simulation_of_search(of, found), stuck=found.stuck)
        orders: Iterable[Sequence[Move]] = (end.moves for end in found.ends)
    else:
        simulated = simulate(of, Effort(states=1, orders=effort.orders, moves=effort.moves))
        simulated = replace(simulated, fewest=len(simulated.witness) or None, states=found.states)
        orders = [order for column in columns.values() for order in _led_orders(of, column)]
    return Outlook(**asdict(simulated), worst=_worst(of, orders, columns), exact=found.exact)


def _worst(of: ClusterGame, orders: Iterable[Sequence[Move]], columns: Mapping[str, Column]) -> Mapping[str, Worst]:
    """The fullest domain of each key over these orders, and the order up to that pod."""
    worst = dict.fromkeys(columns, Worst("", 0))
    slots = of.nodes.view.slots
    for moves in orders:
        named = named_steps(of, moves)
        for key, column in columns.items():
            held: Counter[int] = Counter()
            for number, step in enumerate(named, start=1):
                domain = column.of[slots[step.node]]
                held[domain] += 1
                if domain >= 0 and held[domain] > worst[key].pods:
                    worst[key] = Worst(column.values[domain], held[domain], named[:number])
    return worst


def _led_orders(of: ClusterGame, column: Column) -> Iterable[Sequence[Move]]:
    """For each of the first domains, an order that fills it."""
    domains = [column.of[node_sets.to_slots(each.nodes)[0]] if each.nodes else -1 for each in of.game.classes]
    if column.one_each:
        yield _packing(of)
        return
    for target in [each for each in dict.fromkeys(domains) if each >= 0][:_MOST_LED]:
        yield _led(of, domains, target)


def _led(of: ClusterGame, domains: Sequence[int], target: int) -> Sequence[Move]:
    """Fill the target; else place a pod in the emptiest domain."""
    state, made, held, there = of.game.start, list[Move](), Counter[int](), Counter[int]()
    while moves := of.game.moves(state):
        inside = [each for each in moves if domains[each.number] == target]
        if inside:
            move = min(inside, key=lambda each: there[each.pod_class])
            there[move.pod_class] += 1
        else:
            move = min(moves, key=lambda each: (held[domains[each.number]], -there[each.pod_class]))
        held[domains[move.number]] += 1
        state = of.game.after(state, move)
        made.append(move)
    return made


def _packing(of: ClusterGame) -> Sequence[Move]:
    """Fill the fullest node; else the emptiest."""
    state: State = of.game.start
    made = list[Move]()
    top = 0
    while moves := of.game.moves(state):
        move = max(moves, key=lambda each: sum(each.before))
        if sum(move.before) < top:
            move = min(moves, key=lambda each: sum(each.before))
        top = max(top, sum(move.after))
        state = of.game.after(state, move)
        made.append(move)
    return made
