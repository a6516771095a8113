"""Let the pods of several makers look for nodes together, and look at the end: who waits there, and for what.

players -> play -> Outcomes     the verdict on all of them, and on each
Outcomes -> ending -> Ending    the shortest order into a bad end, or one of the good ones, pod by pod
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.coming_pods.next_pod import problem_of
from webhook.core.context import Context
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.overlay import with_pods
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.simulation import Effort, Outcome, Simulation, Step, always_fits, one_order, simulate
from webhook.core.scheduler.problem import Problem
from webhook.core.what_if.workloads import SimulatedWorkload

_FEWEST_TRIALS, _NODES_TRIED = 10, 4_000


class Verdict(Struct, frozen=True, kw_only=True):
    """What becomes of one player's pods: how many have a node in the end, those that stay included.

    Shape: ``fewest`` and ``most`` are None where they are not proven.
    """

    outcome: Outcome
    wanted: int
    fewest: int | None = None
    most: int | None = None


class Outcomes(Struct, frozen=True, kw_only=True):
    """The verdict on players that were looked at together.

    Shape: ``whole`` is about all of them, ``each`` about every one. ``game`` is None where no pod looks for a node, or
    nothing can be said; then ``unknown`` says why. ``alone`` has the same for each player as if there were no others,
    where all together are not decided; ``each`` is of those then. ``interrupted`` says that somebody did not want to
    wait.
    """

    players: tuple[SimulatedWorkload, ...]
    whole: Verdict
    each: tuple[Verdict, ...]
    simulation: Simulation | None = None
    game: ClusterGame | None = None
    unknown: str = ""
    interrupted: bool = False
    alone: tuple["Outcomes", ...] = ()

    def about(self, number: int) -> "Outcomes":
        """Where the verdict on one of the players is from."""
        return self.alone[number] if self.alone else self


class Moved(Struct, frozen=True):
    """A pod that got a node; with ``gone`` one that was deleted there."""

    pod: str
    node: str
    gone: bool = False


class Ending(Struct, frozen=True, kw_only=True):
    """One end: how it came to it, and the first pod that waits there.

    Shape: ``before`` and ``after`` are the answers for a pod of ``player`` before the first move and at the end.
    ``waiting`` is the pod that waits, empty where none does; ``pinned`` has the nodes that it may use, where that
    depends on its volumes.
    """

    moves: tuple[Moved, ...]
    player: SimulatedWorkload
    before: Explanation
    after: Explanation
    waiting: str = ""
    pinned: tuple[str, ...] = ()


def play(
    players: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort, tick: Callable[[int], None]
) -> Outcomes:
    """The verdict on players whose problems are of the index as it is."""
    unknown = "; ".join(f"{each.title}: {each.unknown}" for each in players if each.unknown)
    batches = batches_of(players)
    if unknown or not batches:
        return replace(undecided(players), unknown=unknown)
    game = _game(players, batches, index)
    met = [0]

    def count(states: int) -> None:
        met.append(states)
        tick(states)

    try:
        found, interrupted = simulate(game, effort, tick=count), False
    except KeyboardInterrupt:
        wanted = sum(each.pods for each in batches)
        found, interrupted = Simulation(Outcome.UNKNOWN, wanted, states=met[-1]), True
    return Outcomes(
        players=tuple(players),
        whole=_verdict(players, found),
        each=tuple(_of_each(players, found)),
        simulation=found,
        game=game,
        interrupted=interrupted,
    )


def trials_in(most: int, index: ReadOnlyIndex) -> int:
    """How many changes are tried: fewer in large clusters, where each trial takes longer."""
    return max(_FEWEST_TRIALS, min(most, _NODES_TRIED // max(1, len(index.view()))))


def all_fit(players: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort) -> bool:
    """Whether every order places all pods of the players; False also where that is not known. Quicker than `play`."""
    batches = batches_of(players)
    if not batches or any(each.unknown for each in players):
        return undecided(players).whole.outcome is Outcome.FITS
    return always_fits(_game(players, batches, index), effort)


def _game(players: Sequence[SimulatedWorkload], batches: Sequence[PodBatch], index: ReadOnlyIndex) -> ClusterGame:
    """The game of all players. A rolling update is played alone, in the cluster without its old pods."""
    rollout = players[0].rollout
    return game_of(batches, players[0].index if rollout else index, rollout=rollout)


def alone(of: Outcomes, index: ClusterIndex, effort: Effort, tick: Callable[[int], None]) -> Outcomes:
    """The same with a verdict on each player as if there were no others.

    Shape: that all fit alone says nothing of all together; one that does not even fit alone is a reason for all.
    """
    found: list[Outcomes] = []
    for each in of.players:
        stopped = bool(found) and found[-1].interrupted
        found.append(undecided([each]) if stopped else play([each], index, effort, tick))
    verdicts = tuple(each.whole for each in found)
    no_fit = any(each.outcome is Outcome.NO_FIT for each in verdicts)
    outcome = Outcome.NO_FIT if no_fit else Outcome.UNKNOWN
    return replace(
        of,
        whole=Verdict(outcome=outcome, wanted=of.whole.wanted),
        each=verdicts,
        interrupted=any(each.interrupted for each in found),
        alone=tuple(found),
    )


def undecided(players: Sequence[SimulatedWorkload]) -> Outcomes:
    """Players that were not looked at."""
    verdicts = tuple(_unplayed(each) for each in players)
    return Outcomes(players=tuple(players), whole=_sum(verdicts), each=verdicts)


def batches_of(players: Sequence[SimulatedWorkload]) -> list[PodBatch]:
    """The batches of all players; those that stand behind another still stand behind it."""
    batches: list[PodBatch] = []
    for each in players:
        first = len(batches)
        batches += [
            batch if batch.behind is None else replace(batch, behind=batch.behind + first) for batch in each.batches
        ]
    return batches


def _unplayed(player: SimulatedWorkload) -> Verdict:
    """Of a player that was not looked at: nothing is known, unless it has nothing to do."""
    if player.unknown or player.batches:
        return Verdict(outcome=Outcome.UNKNOWN, wanted=player.wanted)
    return Verdict(outcome=Outcome.FITS, wanted=player.wanted, fewest=player.wanted, most=player.wanted)


WORST_FIRST = (Outcome.NO_FIT, Outcome.STUCK, Outcome.UNKNOWN, Outcome.FITS)


def _sum(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on pods that do not meet."""
    outcome = next((each for each in WORST_FIRST if any(of.outcome is each for of in verdicts)), Outcome.FITS)
    fewest = [each.fewest for each in verdicts if each.fewest is not None]
    most = [each.most for each in verdicts if each.most is not None]
    return Verdict(
        outcome=outcome,
        wanted=sum(each.wanted for each in verdicts),
        fewest=sum(fewest) if len(fewest) == len(verdicts) else None,
        most=sum(most) if len(most) == len(verdicts) else None,
    )


def _verdict(players: Sequence[SimulatedWorkload], found: Simulation) -> Verdict:
    staying = sum(each.staying for each in players)
    return Verdict(
        outcome=found.outcome,
        wanted=sum(each.wanted for each in players),
        fewest=None if found.fewest is None else staying + found.fewest,
        most=None if found.most is None else staying + found.most,
    )


def _of_each(players: Sequence[SimulatedWorkload], found: Simulation) -> Iterator[Verdict]:
    if len(players) == 1:
        yield _verdict(players, found)
        return
    first = 0
    for player in players:
        own = range(first, first := first + len(player.batches))
        if not own:
            yield _unplayed(player)
            continue
        pods = sum(player.batches[number - own.start].pods for number in own)
        placed = [sum(end[number] for number in own) for end in found.ends]
        if not placed:
            yield Verdict(outcome=Outcome.UNKNOWN, wanted=player.wanted)
            continue
        outcome = Outcome.FITS if min(placed) == pods else Outcome.NO_FIT if max(placed) < pods else Outcome.STUCK
        yield Verdict(
            outcome=outcome,
            wanted=player.wanted,
            fewest=player.staying + min(placed),
            most=player.staying + max(placed),
        )


def ending(of: Outcomes, number: int, index: ClusterIndex, within: Context) -> Ending | None:
    """The end that the verdict is about, as the player of that number meets it.

    Shape: None for a player without a pod that looks for a node. The index is as before in the end.
    """
    player = of.players[number]
    if of.game is None or of.simulation is None or not player.batches:
        return None
    steps = of.simulation.witness or one_order(of.game)
    owners = [(each, own) for each in of.players for own in range(len(each.batches))]
    placed = Counter(step.batch for step in steps if not step.gone)
    mine = [(place, own) for place, (each, own) in enumerate(owners) if each is player and not _is_old(each, own)]
    lacking = [(place, own) for place, own in mine if placed[place] < player.batches[own].pods]
    place, own = (lacking or mine)[0]
    batch = player.batches[own]
    before = _explained(batch.problem.pod, index, within)
    moves = _moved(steps, owners, index)
    if player.rollout is None:
        after = _after(steps, moves, owners, batch.problem.pod, index, within)
    else:
        after = explain_pod(*_in_the_rollout(player, steps, within))
    view = index.view()
    return Ending(
        moves=tuple(moves),
        player=player,
        before=before,
        after=after,
        waiting=_name(player, own, placed[place], sum(placed[each] for each, _ in mine)) if lacking else "",
        pinned=() if batch.nodes is None else tuple(view.names_of(batch.nodes & view.live)),
    )


def _is_old(player: SimulatedWorkload, own: int) -> bool:
    """Whether the batch are the pods that a rolling update replaces."""
    return player.rollout is not None and own == player.rollout.old


def _after(  # noqa: PLR0913, PLR0917 each a fact of its own
    steps: Sequence[Step],
    moves: Sequence[Moved],
    owners: Sequence[tuple[SimulatedWorkload, int]],
    pod: Pod,
    index: ClusterIndex,
    within: Context,
) -> Explanation:
    """The answer for a pod after the steps."""
    waiting = [
        each for namespace in {player.namespace for player, _ in owners} for each in index.waiting_pods(namespace)
    ]
    made: list[Pod] = []
    for number, (step, move) in enumerate(zip(steps, moves, strict=True)):
        player, own = owners[step.batch]
        like = player.batches[own].problem.pod
        meta = replace(like.meta, name=move.pod, uid=f"simulated-{number}")
        made.append(replace(like, metadata=meta, spec=replace(like.pod_spec, node_name=step.node)))
        index.change("ADDED", made[-1])
    after = _explained(pod, index, within)
    for each in made:
        index.change("DELETED", each)
    for each in waiting:  # of the same names
        index.change("ADDED", each)
    return after


def _in_the_rollout(player: SimulatedWorkload, steps: Sequence[Step], within: Context) -> tuple[Problem, ReadOnlyIndex]:
    """The problem of a new pod after the steps of a rolling update, and the cluster then: old pods are as new ones."""
    there, pods = player.index, [each.problem.pod for each in player.batches]
    slots = there.view().slots
    held = [Counter(each.leaving) for each in player.batches]
    for step in steps:
        held[step.batch][slots[step.node]] += -1 if step.gone else 1
    for node, slot in slots.items():
        on_node = [pod for pod, each in zip(pods, held, strict=True) for _ in range(each[slot])]
        if on_node:
            there = with_pods(there, node, on_node)
    return problem_of(pods[1], within.beside(there)), there


def _explained(pod: Pod, index: ClusterIndex, within: Context) -> Explanation:
    return explain_pod(problem_of(pod, within.beside(index)), index)


def _moved(steps: Sequence[Step], owners: Sequence[tuple[SimulatedWorkload, int]], index: ClusterIndex) -> list[Moved]:
    """The steps with the names of pods, as far as they are known; others are numbered."""
    done: Counter[int] = Counter()
    numbers: Counter[str] = Counter()
    running: dict[tuple[str, str], list[str]] = {}
    for player, _ in owners:
        if player.rollout is not None and player.maker is not None and player.maker.source.own is not None:
            names = index.view().names
            pods = index.pods_matching(player.namespace, player.maker.source.own)
            for name, slot in sorted(pods, key=lambda each: (len(each[0]), each)):  # by ordinal
                running.setdefault((player.title, names[slot]), []).append(name)
    found = []
    for step in steps:
        player, own = owners[step.batch]
        if step.gone:
            found.append(Moved(running[player.title, step.node].pop(), step.node, gone=True))
            continue
        found.append(Moved(_name(player, own, done[step.batch], numbers[player.title]), step.node))
        done[step.batch] += 1
        numbers[player.title] += 1
    return found


def _name(player: SimulatedWorkload, batch: int, of_party: int, of_player: int) -> str:
    """The name of the next pod after so many; a number where only its controller will know."""
    if player.names:
        return player.names[batch][of_party]
    if player.wanted == 1 and player.maker is not None and player.maker.workload.is_pod:
        return player.stem
    staying = 0 if player.rollout else player.staying
    return f"{player.stem} #{staying + of_player + 1}"
