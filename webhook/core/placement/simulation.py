"""The placement engine: whether the pods of whole workloads find nodes, in any order that the scheduler may choose.

    fits            every order places all of them
    can-get-stuck   some orders do, some end with pods that no node admits
    does-not-fit    no order does
    unknown         nothing proves one of the others within the effort

Strategies, the cheapest first:

1. Closed forms (`closed_forms`): every order ends with the same number.
2. Bounds for two crossing keys (`crossing_orders`).
3. A search of all orders (`search`), up to a number of states.
4. Samples. An order that gets stuck is a proof, one that fits is none.
"""

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.closed_forms import possible_ends, same_in_every_order, takes_every_pod
from webhook.core.placement.crossing_orders import CrossingEnds, crossing_ends, never_stuck
from webhook.core.placement.game import Game, Move, Pods, Rollout, State
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.search import Found, orders_of_pod_classes, search, worst_skew


class Outcome(StrEnum):
    """What all orders come to."""

    FITS = "fits"
    STUCK = "can-get-stuck"
    NO_FIT = "does-not-fit"
    UNKNOWN = "unknown"


_COLUMNS = 100
_CLASSES = 20


class Effort(Struct, frozen=True):
    """How much to do before the outcome is unknown: numbers, not time, so that equal questions get equal answers.

    Args:
        states: The most states of the search. With 0 only closed forms are tried, of games that are quickly made.
        orders: The most orders that are sampled.
        moves: The most moves of these orders together.
        details: Whether to find all ends, their probability and the skew. Without, a proof that all pods fit is enough.
    """

    states: int = 20_000
    orders: int = 200
    moves: int = 20_000
    details: bool = True

    @property
    def work(self) -> int:
        """The columns that are tried for two crossing keys: 20,000 states stand for less than a second."""
        return self.states * _COLUMNS

    def states_of(self, game: Game) -> int:
        """The states of one game: fewer if it has many classes of nodes, since each takes longer."""
        return self.states // (1 + len(game.classes) // _CLASSES)


_EFFORT = Effort()
_BONUS = 10
_LEVELLING = 1  # the number of the order that does; the one before packs, those after it choose any
_TRIED_FIRST = 6  # orders
_64_BITS = 2**64 - 1


class Step(Struct, frozen=True):
    """One pod of a batch placed on a node, or with ``gone`` deleted there."""

    batch: int
    node: str
    gone: bool = False


class Verdict(Struct, frozen=True):
    """How many pods have a node in the end, over all orders. ``fewest`` and ``most`` are None if not proven."""

    outcome: Outcome
    wanted: int
    fewest: int | None = None
    most: int | None = None


class Simulation(Verdict, frozen=True):
    """What becomes of the pods that look for a node. If orders were sampled, ``fewest`` and ``most`` are bounds.

    Args:
        stuck: The probability of an end with pods that no node admits, if each step takes one of the waiting pods and
            one of its nodes with equal probability. The share if orders were sampled, None if not known.
        sampled: The number of sampled orders.
        states: The number of states that were met.
        witness: The shortest order found that ends with a pod missing.
        placed: The pods of each batch at its end.
        ends: The different numbers of pods of each batch at the ends of all orders. Empty if not all are known.
        skew: The worst skew of a rolling update (`worst_skew`). None for pods with names, and if not known.
    """

    stuck: float | None = None
    sampled: int = 0
    states: int = 0
    witness: tuple[Step, ...] = ()
    placed: Pods = ()
    ends: tuple[Pods, ...] = ()
    skew: int | None = None


def outcome(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, effort: Effort, rollout: Rollout | None = None
) -> Simulation:
    """What becomes of the pods, by the cheapest strategy that decides it (see `game_of` for the arguments)."""
    game = game_of(batches, index, rollout=rollout)
    if not effort.states and game.is_slow:
        return Simulation(Outcome.UNKNOWN, sum(each.pods for each in batches))
    return simulate(game, effort)


def simulate(of: ClusterGame, effort: Effort = _EFFORT, *, tick: Callable[[int], None] = lambda _: None) -> Simulation:
    """The same for a game; ``tick`` is called with the number of states now and then."""
    game, wanted = of.game, sum(each.pods for each in of.game.pod_classes)
    same = same_in_every_order(game)
    if same is not None:
        return _certain(wanted, same)
    if not effort.details and takes_every_pod(game):
        return _certain(wanted, wanted)
    if not effort.states:
        return Simulation(Outcome.UNKNOWN, wanted)
    crossing = crossing_ends(game, work=effort.work, moves=effort.moves)
    if crossing is not None and crossing.fewest == wanted:
        return _certain(wanted, wanted)
    decided = crossing is not None and (crossing.most < wanted or (crossing.stuck is not None and crossing.fits))
    # The search only adds how probable each end is.
    found = search(game, effort.states_of(game) // (_BONUS if decided else 1), tick=tick)
    if found.exact:
        return searched(of, found)
    return _sampled(of, wanted, replace(effort, orders=0) if decided else effort, found.states, crossing)


def _certain(wanted: int, placed: int) -> Simulation:
    done = placed == wanted
    kind, stuck = (Outcome.FITS, 0.0) if done else (Outcome.NO_FIT, 1.0)
    return Simulation(kind, wanted, placed, placed, stuck, placed=(placed,), ends=((placed,),))


def searched(of: ClusterGame, found: Found) -> Simulation:
    """The outcome of an exact search."""
    game, rollout = of.game, of.game.rollout
    old, orders = rollout and rollout.old, [*orders_of_pod_classes(game)]
    # Equal classes have changed places in ends that were not followed.
    ends = dict.fromkeys(tuple(end.placed[each] for each in order) for end in found.ends for order in orders)
    placed = [sum(pods for number, pods in enumerate(end.placed) if number != old) for end in found.ends]
    worst = next((end for end in found.ends if not end.done), None)
    fits = any(end.done for end in found.ends)
    kind = Outcome.FITS if worst is None else Outcome.STUCK if fits else Outcome.NO_FIT
    return Simulation(
        kind,
        sum(each.pods for each in game.pod_classes),
        min(placed),
        max(placed),
        stuck=None if any(each.packs for each in game.classes) and kind is Outcome.STUCK else found.stuck,
        states=found.states,
        witness=steps(of, worst.moves) if worst is not None else (),
        placed=worst.placed if worst is not None else (),
        ends=tuple(ends),
        skew=None if rollout is None or rollout.turns else worst_skew(game, rollout.new, found.ends),
    )


def always_fits(of: ClusterGame, effort: Effort = _EFFORT) -> bool:
    """Whether every order places all pods; False also where that is not known.

    Shape: quicker than `simulate` with a no, which takes one order.
    """
    game = of.game
    same, wanted = same_in_every_order(game), sum(each.pods for each in game.pod_classes)
    if same is not None:
        return same == wanted
    # One order alone would take more moves; without limits of resources it takes as many as there are replicas.
    if wanted > effort.moves:
        return False
    numbers = _numbers()
    for number in range(_TRIED_FIRST):
        end, _ = _order(game, number, numbers)
        if not game.is_done(game.placed(end)):
            return False
    if never_stuck(game, effort.work):
        return True
    found = search(game, effort.states_of(game))
    return found.exact and all(end.done for end in found.ends)


def one_order(of: ClusterGame) -> tuple[Step, ...]:
    """One of the orders until no pod finds a node: each goes to an emptiest one."""
    return steps(of, _order(of.game, _LEVELLING, _numbers())[1])


def steps(of: ClusterGame, moves: Sequence[Move]) -> tuple[Step, ...]:
    """The moves, each with the name of its node."""
    return tuple(Step(move.pod_class, node, gone=move.gone) for move, node in of.named(moves))


def _sampled(of: ClusterGame, wanted: int, effort: Effort, states: int, crossing: CrossingEnds | None) -> Simulation:
    """What bounds prove, and single orders: packing nodes and zones, levelling them, and then at random."""
    game, known, cost = of.game, possible_ends(of.game), 1 + len(of.game.classes) // _CLASSES
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
        left, orders = left - cost * len(moves), orders + 1
        if game.is_done(game.placed(end)):
            fits = True
            continue
        stuck += 1
        if worst is None or len(moves) < len(worst[1]):
            worst = end, moves
    return Simulation(
        Outcome.NO_FIT if never else Outcome.STUCK if fits and worst is not None else Outcome.UNKNOWN,
        wanted,
        fewest,
        wanted if fits else most,
        stuck=stuck / orders if orders else None,
        sampled=orders,
        states=states,
        witness=() if worst is None else steps(of, worst[1]),
        placed=() if worst is None else game.placed(worst[0]),
    )


def _order(game: Game, number: int, numbers: Iterator[int]) -> tuple[State, list[Move]]:
    """One order: the first two choose the fullest and the emptiest node, the others any."""
    state, made = game.start, []
    while moves := game.moves(state):
        if number <= _LEVELLING:
            move = max(moves, key=lambda each: sum(each.before) * (1 - 2 * number))
        else:
            ways = list(accumulate(each.ways for each in moves))
            move = moves[bisect(ways, next(numbers) % ways[-1])]
        state = game.after(state, move)
        made.append(move)
    return state, made


def _numbers() -> Iterator[int]:
    """Numbers without a pattern (Marsaglia's Xorshift), always the same: equal questions get equal answers."""
    number = 88172645463325252
    while True:
        number ^= number << 13 & _64_BITS
        number ^= number >> 7
        number ^= number << 17 & _64_BITS
        yield number
