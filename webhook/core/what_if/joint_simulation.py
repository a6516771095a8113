"""Simulate several workloads together: a verdict for all, and for each."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, PlacedPods, PlacementVerdict, Simulation
from webhook.core.placement.simulation import always_fits, simulate
from webhook.core.what_if.workloads import SimulatedWorkload

_FEWEST_TRIALS = 10  # Fewer trials rarely find a stuck order.
_NODES_TRIED = 4_000  # The most trials times nodes, since each trial takes longer in a large cluster.


class JointVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on workloads simulated together.

    Attributes:
        whole: The verdict on all workloads.
        each: The verdict on each workload.
        simulation: The result of the placement engine. None if no pod needs a node, or nothing is known.
        game: The simulated game. None if ``simulation`` is None.
        unknown: Why nothing is known.
        interrupted: Whether the user stopped the simulation.
        alone: Simulations of each workload alone, if the joint simulation is undecided. ``each`` then has their
            verdicts.
    """

    workloads: tuple[SimulatedWorkload, ...]
    whole: PlacedPods
    each: tuple[PlacedPods, ...]
    simulation: Simulation | None = None
    game: ClusterGame | None = None
    unknown: str = ""
    interrupted: bool = False
    alone: tuple["JointVerdict", ...] = ()

    def about(self, number: int) -> "JointVerdict":
        """Return the simulation that decided the verdict on workload ``number``."""
        return self.alone[number] if self.alone else self


def simulate_together(
    workloads: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort, tick: Callable[[int], None]
) -> JointVerdict:
    """Simulate scheduling the pods of all workloads together.

    Args:
        workloads: The workloads. Their scheduling problems must come from this state of the index.
        index: The cluster.
        effort: The limits of the simulation.
        tick: Called with the number of simulated states.
    """
    unknown = "; ".join(f"{workload.title}: {workload.unknown}" for workload in workloads if workload.unknown)
    batches, states, interrupted = batches_of(workloads), 0, False
    if unknown or not batches:
        return replace(undecided(workloads), unknown=unknown)

    def count(number: int) -> None:
        nonlocal states
        states = number
        tick(number)

    game = _game(workloads, batches, index)
    try:
        simulation = simulate(game, effort, tick=count)
    except KeyboardInterrupt:
        interrupted = True
        simulation = Simulation(PlacementVerdict.UNKNOWN, sum(batch.pods for batch in batches), states=states)
    return JointVerdict(
        workloads=tuple(workloads),
        whole=_verdict(simulation.verdict, workloads, simulation.fewest, simulation.most),
        each=tuple(_of_each(workloads, simulation)),
        simulation=simulation,
        game=game,
        interrupted=interrupted,
    )


def trials_in(most: int, index: ReadOnlyIndex) -> int:
    """The number of changes to test, each by a simulation.

    This is ``most`` in a small cluster, and lower in a large cluster with slow simulations.
    """
    return max(_FEWEST_TRIALS, min(most, _NODES_TRIED // max(1, len(index.nodes.view()))))


def all_fit(workloads: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort) -> bool:
    """Whether every order is known to place all pods. This is faster than `simulate_together`."""
    batches = batches_of(workloads)
    if not batches or any(workload.unknown for workload in workloads):
        return undecided(workloads).whole.verdict is PlacementVerdict.FITS
    return always_fits(_game(workloads, batches, index), effort)


def _game(workloads: Sequence[SimulatedWorkload], batches: Sequence[PodBatch], index: ReadOnlyIndex) -> ClusterGame:
    # A rolling update is simulated alone, in the cluster without its old pods.
    rollout = workloads[0].rollout
    return game_of(batches, workloads[0].index if rollout else index, rollout=rollout)


def simulate_separately(
    together: JointVerdict, index: ReadOnlyIndex, effort: Effort, tick: Callable[[int], None]
) -> JointVerdict:
    """Simulate each workload alone, for a separate verdict on each workload.

    If all workloads fit alone, they may still not fit together. If a workload does not fit alone, they do not fit
    together.
    """
    separate: list[JointVerdict] = []
    for workload in together.workloads:
        stopped = bool(separate) and separate[-1].interrupted
        separate.append(undecided([workload]) if stopped else simulate_together([workload], index, effort, tick))
    verdicts = tuple(joint.whole for joint in separate)
    no_fit = any(placed.verdict is PlacementVerdict.NO_FIT for placed in verdicts)
    return replace(
        together,
        whole=PlacedPods(
            verdict=PlacementVerdict.NO_FIT if no_fit else PlacementVerdict.UNKNOWN, wanted=together.whole.wanted
        ),
        each=verdicts,
        interrupted=any(joint.interrupted for joint in separate),
        alone=tuple(separate),
    )


def undecided(workloads: Sequence[SimulatedWorkload]) -> JointVerdict:
    """The verdict before any simulation. Only workloads without pods to place are known to fit."""
    verdicts = tuple(
        _settled(workload.wanted, open_=bool(workload.unknown or workload.batches)) for workload in workloads
    )
    is_open = any(placed.verdict is PlacementVerdict.UNKNOWN for placed in verdicts)
    whole = _settled(sum(verdict.wanted for verdict in verdicts), open_=is_open)
    return JointVerdict(workloads=tuple(workloads), whole=whole, each=verdicts)


def _settled(wanted: int, *, open_: bool) -> PlacedPods:
    if open_:
        return PlacedPods(verdict=PlacementVerdict.UNKNOWN, wanted=wanted)
    return PlacedPods(verdict=PlacementVerdict.FITS, wanted=wanted, fewest=wanted, most=wanted)


def batches_of(workloads: Sequence[SimulatedWorkload]) -> list[PodBatch]:
    """Return the pod batches of all workloads in one list, in order.

    A batch's ``behind`` is the index of the batch to be placed first. The indexes are adjusted to the new list.
    """
    batches: list[PodBatch] = []
    for workload in workloads:
        first = len(batches)
        batches += [
            batch if batch.behind is None else replace(batch, behind=batch.behind + first) for batch in workload.batches
        ]
    return batches


def _verdict(
    verdict: PlacementVerdict, workloads: Sequence[SimulatedWorkload], fewest: int | None, most: int | None
) -> PlacedPods:
    staying = sum(workload.staying for workload in workloads)
    return PlacedPods(
        verdict=verdict,
        wanted=sum(workload.wanted for workload in workloads),
        fewest=None if fewest is None else staying + fewest,
        most=None if most is None else staying + most,
    )


def _of_each(workloads: Sequence[SimulatedWorkload], simulation: Simulation) -> Iterator[PlacedPods]:
    if len(workloads) == 1:
        yield _verdict(simulation.verdict, workloads, simulation.fewest, simulation.most)
        return
    first = 0
    for workload in workloads:
        own = slice(first, first := first + len(workload.batches))
        placed = [sum(end[own]) for end in simulation.ends]
        if not (placed and workload.batches):
            yield _settled(workload.wanted, open_=bool(workload.batches))
            continue
        pods, fewest, most = sum(batch.pods for batch in workload.batches), min(placed), max(placed)
        some_left = PlacementVerdict.NO_FIT if most < pods else PlacementVerdict.STUCK
        yield _verdict(PlacementVerdict.FITS if fewest == pods else some_left, [workload], fewest, most)
