"""Search the orders of placing a group's pods: do all pods fit, and how full can a domain get?

With too many orders, the search follows only some bad orders. Each bad order puts pods into one domain. Whenever this
domain is full, a pod goes elsewhere to raise the global minimum.
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
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict, Simulation, Step
from webhook.core.placement.search import search
from webhook.core.placement.simulation import named_steps, simulate, simulation_of_search

# Takes some seconds. A group of four shards has fewer states, a group of nine far too many.
EFFORT = Effort(states=4_000)
_MOST_FILLED = 8  # domains to fill, with one order each, if not all orders can be searched


class _FullestDomain(Struct, frozen=True):
    """The domain with the most pods at any time in any searched order.

    Attributes:
        domain: The domain. Empty if no pod was placed in a domain.
        pods: The number of pods in the domain.
        steps: The placements of that order, up to the domain's last pod.
    """

    domain: str
    pods: int
    steps: tuple[Step, ...] = ()


class Outlook(Simulation, frozen=True, kw_only=True):
    """The result of searching the placement orders of a group's pods.

    Attributes:
        worst: The fullest domain in any searched order, by topology key.
        exact: Whether the search covered all orders. If not, a domain can get fuller than ``worst``.
    """

    worst: Mapping[str, _FullestDomain]
    exact: bool

    @property
    def gets_stuck(self) -> bool:
        """Whether the search found an order that leaves a pod without a node.

        If False, such an order may still exist.
        """
        return bool(self.witness) or self.verdict in {PlacementVerdict.STUCK, PlacementVerdict.NO_FIT}


def simulate_orders(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, keys: Iterable[str], effort: Effort = EFFORT
) -> Outlook:
    """Search the orders of placing these pods, and return the result.

    The result has the verdict, and for each topology key the domain with the most pods at any time in any order.
    """
    cluster_game = game_of(batches, index)
    result = search(cluster_game.game, effort.states)
    columns = {key: cluster_game.nodes.view.column(key) for key in keys}
    if result.exact:
        simulated = replace(simulation_of_search(cluster_game, result), stuck=result.stuck)
        orders: Iterable[Sequence[Move]] = (end.moves for end in result.ends)
    else:
        simulated = simulate(cluster_game, Effort(states=1, orders=effort.orders, moves=effort.moves))
        simulated = replace(simulated, fewest=len(simulated.witness) or None, states=result.states)
        orders = [order for column in columns.values() for order in _led_orders(cluster_game, column)]
    return Outlook(**asdict(simulated), worst=_worst(cluster_game, orders, columns), exact=result.exact)


def _worst(
    cluster_game: ClusterGame, orders: Iterable[Sequence[Move]], columns: Mapping[str, Column]
) -> Mapping[str, _FullestDomain]:
    worst = dict.fromkeys(columns, _FullestDomain("", 0))
    slots = cluster_game.nodes.view.slots
    for moves in orders:
        named = named_steps(cluster_game, moves)
        for key, column in columns.items():
            held: Counter[int] = Counter()
            for number, step in enumerate(named, start=1):
                domain = column.domain_of[slots[step.node]]
                held[domain] += 1
                if domain >= 0 and held[domain] > worst[key].pods:
                    worst[key] = _FullestDomain(column.values[domain], held[domain], named[:number])
    return worst


def _led_orders(cluster_game: ClusterGame, column: Column) -> Iterable[Sequence[Move]]:
    """Yield placement orders: for each of the first domains, one that fills it.

    For hostname-like keys (one node per domain), yield only an order that fills the fullest node.
    """
    domains = [
        column.domain_of[node_sets.to_slots(node_class.nodes)[0]] if node_class.nodes else -1
        for node_class in cluster_game.game.classes
    ]
    if column.one_each:
        yield _packing(cluster_game)
        return
    for target in [domain for domain in dict.fromkeys(domains) if domain >= 0][:_MOST_FILLED]:
        yield _filling_order(cluster_game, domains, target)


def _filling_order(cluster_game: ClusterGame, domains: Sequence[int], target: int) -> Sequence[Move]:
    """Return an order that fills the domain ``target``. Whenever it is full, a pod goes to the emptiest domain."""
    state, made, held, there = cluster_game.game.start, list[Move](), Counter[int](), Counter[int]()
    while moves := cluster_game.game.moves(state):
        inside = [move for move in moves if domains[move.number] == target]
        if inside:
            move = min(inside, key=lambda move: there[move.pod_class])
            there[move.pod_class] += 1
        else:
            move = min(moves, key=lambda move: (held[domains[move.number]], -there[move.pod_class]))
        held[domains[move.number]] += 1
        state = cluster_game.game.after(state, move)
        made.append(move)
    return made


def _packing(cluster_game: ClusterGame) -> Sequence[Move]:
    """Return an order of placing pods that puts many pods on the same node.

    Each pod goes to the admitting node with the most pods. If the fullest node of all admits no more pods, the next pod
    goes to the admitting node with the fewest pods.
    """
    state: State = cluster_game.game.start
    made = list[Move]()
    top = 0
    while moves := cluster_game.game.moves(state):
        move = max(moves, key=lambda move: sum(move.before))
        if sum(move.before) < top:
            move = min(moves, key=lambda move: sum(move.before))
        top = max(top, sum(move.after))
        state = cluster_game.game.after(state, move)
        made.append(move)
    return made
