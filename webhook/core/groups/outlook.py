"""What becomes of the pods of a group with some fields: every order, or as many as can be looked at.

Beside the verdict this is how full a domain can get. Where not every order can be followed, some are led: into one
domain as long as it takes pods, and else to where they raise the minimum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Move, State
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.search import search
from webhook.core.placement.simulation import Effort, Outcome, Step, simulate

# Some seconds; a group of four shards has fewer states, one of nine more than could ever be met.
EFFORT = Effort(states=4_000)
_MOST_LED = 8  # domains that orders are led into


class Worst(Struct, frozen=True):
    """The most pods that a domain was seen to hold: which, how many, and the order that leads there."""

    domain: str
    pods: int
    steps: tuple[Step, ...] = ()


class Outlook(Struct, frozen=True, kw_only=True):
    """What the orders come to.

    Shape: ``fewest``, ``stuck`` and ``sampled`` as in `Simulation`; ``witness`` is the shortest order into an end with
    a pod missing. ``worst`` is by topology key; ``exact`` says that every order was followed, so that none is worse.
    """

    outcome: Outcome
    wanted: int
    fewest: int | None
    stuck: float | None
    sampled: int
    states: int
    witness: tuple[Step, ...]
    worst: Mapping[str, Worst]
    exact: bool

    @property
    def gets_stuck(self) -> bool:
        """Whether an order is known that leaves a pod without a node; of an unknown outcome it may be all of them."""
        return bool(self.witness) or self.outcome in {Outcome.STUCK, Outcome.NO_FIT}


def outlook(batches: Sequence[PodBatch], index: ReadOnlyIndex, keys: Iterable[str], effort: Effort = EFFORT) -> Outlook:
    """What becomes of these pods, and how full domains of the keys get."""
    of = game_of(batches, index)
    found = search(of.game, effort.states)
    columns = {key: of.nodes.view.column(key) for key in keys}
    if found.exact:
        orders: Iterable[Sequence[Move]] = (end.moves for end in found.ends)
        bad = next((end for end in found.ends if not end.done), None)
        fits = any(end.done for end in found.ends)
        return Outlook(
            outcome=Outcome.FITS if bad is None else Outcome.STUCK if fits else Outcome.NO_FIT,
            wanted=sum(each.pods for each in batches),
            fewest=min(sum(end.placed) for end in found.ends),
            stuck=found.stuck,
            sampled=0,
            states=found.states,
            witness=() if bad is None else steps_of(of, bad.moves),
            worst=_worst(of, orders, columns),
            exact=True,
        )
    tried = simulate(of, Effort(states=1, orders=effort.orders, moves=effort.moves))
    led = [order for column in columns.values() for order in _led_orders(of, column)]
    return Outlook(
        outcome=tried.outcome,
        wanted=tried.wanted,
        fewest=len(tried.witness) if tried.witness else None,
        stuck=tried.stuck,
        sampled=tried.sampled,
        states=found.states,
        witness=tried.witness,
        worst=_worst(of, led, columns),
        exact=False,
    )


def steps_of(of: ClusterGame, moves: Sequence[Move]) -> tuple[Step, ...]:
    """The moves, each with the name of its node."""
    return tuple(Step(move.pod_class, node) for move, node in of.named(moves))


def _worst(of: ClusterGame, orders: Iterable[Sequence[Move]], columns: Mapping[str, Column]) -> Mapping[str, Worst]:
    """The fullest domain of each key at the end of these orders, up to the pod that makes it so full."""
    worst = dict.fromkeys(columns, Worst("", 0))
    slots = of.nodes.view.slots
    for moves in orders:
        steps = steps_of(of, moves)
        for key, column in columns.items():
            held: Counter[int] = Counter()
            for number, step in enumerate(steps, start=1):
                domain = column.of[slots[step.node]]
                held[domain] += 1
                if domain >= 0 and held[domain] > worst[key].pods:
                    worst[key] = Worst(column.values[domain], held[domain], steps[:number])
    return worst


def _led_orders(of: ClusterGame, column: Column) -> Iterable[Sequence[Move]]:
    """An order into each of the first domains, as long as it takes pods."""
    domains = [column.of[node_sets.to_slots(each.nodes)[0]] if each.nodes else -1 for each in of.game.classes]
    if column.one_each:
        yield _packing(of)
        return
    for target in [each for each in dict.fromkeys(domains) if each >= 0][:_MOST_LED]:
        yield _led(of, domains, target)


def _led(of: ClusterGame, domains: Sequence[int], target: int) -> Sequence[Move]:
    """Into the target while it takes pods; else one pod to the emptiest domain, of a shard that the target has."""
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
    """Onto the fullest node while it takes pods; else onto the emptiest."""
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
