"""Simulate the scheduler: check whether every placement order places all pods.

    fits            every order places all pods
    can-get-stuck   some orders place all pods, others leave a pod without a node
    does-not-fit    no order places all pods
    unknown         no proof within the effort

Strategies, the cheapest first:

1. Closed forms (`closed_forms`): every order places the same number.
2. Bounds for two crossing keys (`crossing_orders`).
3. A search of all orders (`search`), up to a number of states.
4. A sample of orders. An order that leaves a pod without a node disproves ``fits``. An order that places all pods
    disproves only ``does-not-fit``.
"""

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from msgspec.structs import replace

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.closed_forms import possible_ends, same_in_every_order, takes_every_pod
from webhook.core.placement.crossing_orders import CrossingEnds, crossing_ends, never_stuck
from webhook.core.placement.game import Game, Move, State
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict, Simulation, Step
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.search import SearchResult, orders_of_pod_classes, search, worst_skew

_EFFORT = Effort()
# After a decision, spend a tenth of the states on the probability of each end.
_DECIDED_SHARE = 10
# The order with this number fills the emptiest node first. Order 0 packs nodes. Later orders are random.
_LEVELLING = 1
_TRIED_FIRST = 6  # The number of orders to try before the search.
_64_BITS = 2**64 - 1


def simulate_batches(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, effort: Effort, rollout: RolloutRules | None = None
) -> Simulation:
    """Simulate the batches. Use the cheapest method that can decide.

    Args:
        batches: The pods to place.
        index: The cluster, without the running pods in ``leaving`` of the batches.
        effort: The limits of the simulation's work.
        rollout: The rolling update, if the batches are its old and new pods.

    Example:
        simulate_batches([PodBatch(problem, pods=6)], index, Effort()).verdict
    """
    game = game_of(batches, index, rollout=rollout)
    if not effort.states and game.is_slow:
        return Simulation(PlacementVerdict.UNKNOWN, sum(batch.pods for batch in batches))
    return simulate(game, effort)


def simulate(
    cluster_game: ClusterGame, effort: Effort = _EFFORT, *, tick: Callable[[int], None] = lambda _: None
) -> Simulation:
    """Decide whether all pods fit in every order, by simulating the placement game.

    It calls ``tick`` from time to time with the number of simulated states.
    """
    game, wanted = cluster_game.game, sum(pod_class.pods for pod_class in cluster_game.game.pod_classes)
    same = same_in_every_order(game)
    if same is not None:
        return _certain(wanted, same)
    if not effort.details and takes_every_pod(game):
        return _certain(wanted, wanted)
    if not effort.states:
        return Simulation(PlacementVerdict.UNKNOWN, wanted)
    crossing = crossing_ends(game, work=effort.work, moves=effort.moves)
    if crossing is not None and crossing.fewest == wanted:
        return _certain(wanted, wanted)
    decided = crossing is not None and (crossing.most < wanted or (crossing.stuck is not None and crossing.fits))
    result = search(game, effort.states_of(game) // (_DECIDED_SHARE if decided else 1), tick=tick)
    if result.exact:
        return simulation_of_search(cluster_game, result)
    return _sampled(cluster_game, wanted, replace(effort, orders=0) if decided else effort, result.states, crossing)


def _certain(wanted: int, placed: int) -> Simulation:
    done = placed == wanted
    kind, stuck = (PlacementVerdict.FITS, 0.0) if done else (PlacementVerdict.NO_FIT, 1.0)
    return Simulation(kind, wanted, placed, placed, stuck, placed=(placed,), ends=((placed,),))


def simulation_of_search(cluster_game: ClusterGame, result: SearchResult) -> Simulation:
    """Return the verdict of an exact search."""
    game, rollout = cluster_game.game, cluster_game.game.rollout
    old, orders = rollout and rollout.old, [*orders_of_pod_classes(game)]
    # Add the ends with equal classes swapped. The search skipped them.
    ends = dict.fromkeys(tuple(end.placed[number] for number in order) for end in result.ends for order in orders)
    placed = [sum(pods for number, pods in enumerate(end.placed) if number != old) for end in result.ends]
    worst = next((end for end in result.ends if not end.done), None)
    fits = any(end.done for end in result.ends)
    kind = PlacementVerdict.FITS if worst is None else PlacementVerdict.STUCK if fits else PlacementVerdict.NO_FIT
    return Simulation(
        kind,
        sum(pod_class.pods for pod_class in game.pod_classes),
        min(placed),
        max(placed),
        stuck=None
        if any(node_class.packs for node_class in game.classes) and kind is PlacementVerdict.STUCK
        else result.stuck,
        states=result.states,
        witness=named_steps(cluster_game, worst.moves) if worst is not None else (),
        placed=worst.placed if worst is not None else (),
        ends=tuple(ends),
        skew=None if rollout is None or rollout.turns else worst_skew(game, rollout.new, result.ends),
    )


def always_fits(cluster_game: ClusterGame, effort: Effort = _EFFORT) -> bool:
    """Whether every scheduling order provably places all pods. A result of False is usually fast."""
    game = cluster_game.game
    same, wanted = same_in_every_order(game), sum(pod_class.pods for pod_class in game.pod_classes)
    if same is not None:
        return same == wanted
    # A single order would need more moves. Without resource limits it has a move for every replica.
    if wanted > effort.moves:
        return False
    numbers = _numbers()
    for number in range(_TRIED_FIRST):
        end, _ = _order(game, number, numbers)
        if not game.is_done(game.placed(end)):
            return False
    if never_stuck(game, effort.work):
        return True
    result = search(game, effort.states_of(game))
    return result.exact and all(end.done for end in result.ends)


def one_order(cluster_game: ClusterGame) -> tuple[Step, ...]:
    """Place pods in one order, each on an emptiest node, until no node admits another. Return the steps."""
    return named_steps(cluster_game, _order(cluster_game.game, _LEVELLING, _numbers())[1])


def named_steps(cluster_game: ClusterGame, moves: Sequence[Move]) -> tuple[Step, ...]:
    """Return the moves with the names of their nodes."""
    return tuple(Step(move.pod_class, node, gone=move.gone) for move, node in cluster_game.named(moves))


def _sampled(
    cluster_game: ClusterGame, wanted: int, effort: Effort, states: int, crossing: CrossingEnds | None
) -> Simulation:
    """Simulate a sample of the orders in which pods are placed.

    The results are combined with the known bounds on the number of placed pods. The first order places pods on the
    fullest nodes, the second order on the emptiest nodes. The other orders are random.
    """
    game, known = cluster_game.game, possible_ends(cluster_game.game)
    fewest: int | None = None
    most: int | None = None
    worst: tuple[State, Sequence[Move]] | None = None
    fits = never = False
    if known is not None:
        fewest, most, never = known.stuck[0], None if known.fits else known.stuck[-1], not known.fits
    if crossing is not None:
        fewest, most, fits, never = crossing.fewest, crossing.most, crossing.fits, crossing.most < wanted
        worst = crossing.stuck and (crossing.stuck.state, crossing.stuck.moves)
    left, stuck, orders, numbers = effort.moves, 0, 0, _numbers()
    while orders < effort.orders and left > 0:
        end, moves = _order(game, orders, numbers)
        left, orders = left - game.cost * len(moves), orders + 1
        if game.is_done(game.placed(end)):
            fits = True
            continue
        stuck += 1
        if worst is None or len(moves) < len(worst[1]):
            worst = end, moves
    seen = PlacementVerdict.STUCK if fits and worst is not None else PlacementVerdict.UNKNOWN
    return Simulation(
        PlacementVerdict.NO_FIT if never else seen,
        wanted,
        fewest,
        wanted if fits else most,
        stuck=stuck / orders if orders else None,
        sampled=orders,
        states=states,
        witness=() if worst is None else named_steps(cluster_game, worst[1]),
        placed=() if worst is None else game.placed(worst[0]),
    )


def _order(game: Game, number: int, numbers: Iterator[int]) -> tuple[State, list[Move]]:
    """Simulate placing the pods in one order. Return the final state and the moves.

    Order number 0 prefers full nodes, and number 1 prefers empty nodes. All other orders are random.
    """
    state, made = game.start, []
    while moves := game.moves(state):
        if number <= _LEVELLING:
            move = max(moves, key=lambda each: sum(each.before) * (1 - 2 * number))
        else:
            ways = list(accumulate(move.ways for move in moves))
            move = moves[bisect(ways, next(numbers) % ways[-1])]
        state = game.after(state, move)
        made.append(move)
    return state, made


def _numbers() -> Iterator[int]:
    """Yield the same pseudo-random numbers every time (Marsaglia's Xorshift)."""
    number = 88172645463325252
    while True:
        number ^= number << 13 & _64_BITS
        number ^= number >> 7
        number ^= number << 17 & _64_BITS
        yield number
