"""Whether the pods of whole workloads find a place, whatever the scheduler chooses: the verdict on a game.

    fits            every order places all of them
    can-get-stuck   some orders do, some end with pods that no node admits
    does-not-fit    no order does
    unknown         there are more states than were looked at, and nothing proves one of the others

Closed forms answer first, then the bounds for two crossing keys, then the search of all orders. Past a number of states
single orders are tried: one that gets stuck is a proof, one that does not is none.
"""

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.placement.closed_forms import possible_ends, same_in_every_order
from webhook.core.placement.crossing_orders import CrossingEnds, crossing_ends, never_stuck
from webhook.core.placement.game import Game, Move, Pods, State
from webhook.core.placement.game_from_cluster import ClusterGame
from webhook.core.placement.rollout import worst_skew
from webhook.core.placement.search import End, Found, search
from webhook.core.placement.symmetry import orders_of_crowds


class Outcome(StrEnum):
    """What all orders come to."""

    FITS = "fits"
    STUCK = "can-get-stuck"
    NO_FIT = "does-not-fit"
    UNKNOWN = "unknown"


_COLUMNS = 100
_CLASSES = 20


class Effort(Struct, frozen=True):
    """How much is done before the verdict is unknown: states of the search, then orders of so many moves together.

    Unit: numbers, not time, so that the same question has the same answer.
    """

    states: int = 20_000
    orders: int = 200
    moves: int = 20_000

    @property
    def work(self) -> int:
        """The columns that are looked at for two crossing keys: 20,000 states stand for less than a second."""
        return self.states * _COLUMNS

    def states_of(self, game: Game) -> int:
        """The states of one game: fewer where each takes longer, as it has many classes of nodes."""
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


class Simulation(Struct, frozen=True):
    """What becomes of the pods that look for a node.

    Shape: ``fewest`` and ``most`` are the numbers placed over all orders, None where they are not proven; of orders
    that were ``sampled``, bounds that none exceeds. ``stuck`` is the probability of an end with pods that no node
    admits, if each step takes one of the waiting pods and one of its nodes with the same probability. It is None where
    nobody knows; of ``sampled`` orders, it is the share. ``witness`` is the shortest order found that ends with a pod
    missing, ``placed`` the pods of each batch at its end. ``ends`` are the different numbers of pods of each batch at
    the ends of all orders, none where not all are known. ``skew`` is as in `worst_skew`, None too for anything but a
    rolling update of pods without names.
    """

    outcome: Outcome
    wanted: int
    fewest: int | None = None
    most: int | None = None
    stuck: float | None = None
    sampled: int = 0
    states: int = 0
    witness: tuple[Step, ...] = ()
    placed: Pods = ()
    ends: tuple[Pods, ...] = ()
    skew: int | None = None


def simulate(of: ClusterGame, effort: Effort = _EFFORT, *, tick: Callable[[int], None] = lambda _: None) -> Simulation:
    """The verdict; ``tick`` is told the number of states now and then."""
    game, rollout = of.game, of.game.rollout
    wanted = sum(each.pods for each in game.crowds)
    same = same_in_every_order(game)
    if same is not None:
        done = same == wanted
        return Simulation(
            Outcome.FITS if done else Outcome.NO_FIT,
            wanted,
            same,
            same,
            0.0 if done else 1.0,
            placed=(same,),
            ends=((same,),),
        )
    crossing = crossing_ends(game, work=effort.work, moves=effort.moves)
    if crossing is not None and crossing.fewest == wanted:
        return Simulation(Outcome.FITS, wanted, wanted, wanted, 0.0, placed=(wanted,), ends=((wanted,),))
    decided = crossing is not None and _crossing_outcome(crossing, wanted) is not Outcome.UNKNOWN
    # The search only adds how probable each end is.
    found = search(game, effort.states_of(game) // (_BONUS if decided else 1), tick=tick)
    if not found.exact and crossing is not None and decided:
        return _of_crossing(of, wanted, crossing, found.states)
    if not found.exact:
        return _sampled(of, wanted, effort, found.states, crossing)
    placed = [_placed(game, end) for end in found.ends]
    worst = next((end for end in found.ends if not end.done), None)
    fits = any(end.done for end in found.ends)
    outcome = Outcome.FITS if worst is None else Outcome.STUCK if fits else Outcome.NO_FIT
    return Simulation(
        outcome,
        wanted,
        min(placed),
        max(placed),
        stuck=None if any(each.packs for each in game.classes) and outcome is Outcome.STUCK else found.stuck,
        states=found.states,
        witness=_steps(of, worst.moves) if worst is not None else (),
        placed=worst.placed if worst is not None else (),
        ends=tuple(_ends(game, found)),
        skew=None if rollout is None or rollout.turns else worst_skew(game, rollout.new, found.ends),
    )


def always_fits(of: ClusterGame, effort: Effort = _EFFORT) -> bool:
    """Whether every order places all pods; False also where that is not known.

    Shape: quicker than `simulate` with a no, which takes one order.
    """
    game = of.game
    same, wanted = same_in_every_order(game), sum(each.pods for each in game.crowds)
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


def _ends(game: Game, found: Found) -> Mapping[Pods, None]:
    """The pods of each crowd in every end: crowds that are alike have changed places in some that were not followed."""
    orders = [*orders_of_crowds(game)]
    return dict.fromkeys(tuple(end.placed[each] for each in order) for end in found.ends for order in orders)


def one_order(of: ClusterGame) -> tuple[Step, ...]:
    """One of the orders until no pod finds a node: each goes to an emptiest one."""
    return _steps(of, _order(of.game, _LEVELLING, _numbers())[1])


def _placed(game: Game, end: End) -> int:
    """How many of the pods that looked for a node have one."""
    old = None if game.rollout is None else game.rollout.old
    return sum(pods for number, pods in enumerate(end.placed) if number != old)


def _steps(of: ClusterGame, moves: Sequence[Move]) -> tuple[Step, ...]:
    return tuple(Step(move.crowd, node, gone=move.gone) for move, node in of.named(moves))


def _crossing_outcome(found: CrossingEnds, wanted: int) -> Outcome:
    """What the bounds and the orders that were found prove."""
    if found.most < wanted:
        return Outcome.NO_FIT
    return Outcome.STUCK if found.stuck is not None and found.fits else Outcome.UNKNOWN


def _of_crossing(of: ClusterGame, wanted: int, found: CrossingEnds, states: int) -> Simulation:
    stuck = found.stuck
    return Simulation(
        _crossing_outcome(found, wanted),
        wanted,
        found.fewest,
        found.most,
        states=states,
        witness=() if stuck is None else _steps(of, stuck.moves),
        placed=() if stuck is None else of.game.placed(stuck.state),
    )


def _sampled(of: ClusterGame, wanted: int, effort: Effort, states: int, crossing: CrossingEnds | None) -> Simulation:
    """What single orders say: packing nodes and zones, levelling them, and then at random."""
    game, left, stuck, orders = of.game, effort.moves, 0, 0
    known = possible_ends(game)
    fewest = crossing.fewest if crossing is not None else known.stuck[0] if known is not None else None
    never = known is not None and not known.fits
    worst: tuple[State, Sequence[Move]] | None = None
    fits, cost = crossing is not None and crossing.fits, 1 + len(game.classes) // _CLASSES
    if crossing is not None and crossing.stuck is not None:
        worst = crossing.stuck.state, crossing.stuck.moves
    numbers = _numbers()
    for number in range(effort.orders):
        if left <= 0:
            break
        end, moves = _order(game, number, numbers)
        left, orders = left - cost * len(moves), orders + 1
        if game.is_done(game.placed(end)):
            fits = True
            continue
        stuck += 1
        if worst is None or len(moves) < len(worst[1]):
            worst = end, moves
    most = wanted if fits else known.stuck[-1] if known is not None and never else crossing and crossing.most
    found = Simulation(
        Outcome.UNKNOWN, wanted, fewest, most, stuck=stuck / orders if orders else None, sampled=orders, states=states
    )
    if worst is None:
        return found
    return replace(
        found,
        outcome=Outcome.STUCK if fits else Outcome.NO_FIT if never else Outcome.UNKNOWN,
        witness=_steps(of, worst[1]),
        placed=game.placed(worst[0]),
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
