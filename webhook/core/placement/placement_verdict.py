"""The result of a simulation, and limits on its work."""

from enum import StrEnum

from msgspec import Struct

from webhook.core.placement.game import Game
from webhook.core.placement.pod_limits import Pods


class PlacementVerdict(StrEnum):
    """Whether all pods of a workload get a node, over all possible scheduling orders."""

    FITS = "fits"
    STUCK = "can-get-stuck"
    NO_FIT = "does-not-fit"
    UNKNOWN = "unknown"


_COLUMNS_PER_STATE = 100  # This number of columns of two crossing keys takes as long as a state of the search.


class Effort(Struct, frozen=True):
    """The limits of a simulation. Beyond them, the verdict is unknown.

    Limits are numbers, not seconds, so a repeated simulation returns the same verdict.

    Attributes:
        states: The most states of the game to search. 0 allows only closed formulas, for games that are quick to build.
        orders: The most randomly sampled orders of placing the pods.
        moves: The most moves in all sampled orders together.
        details: Whether to find every final placement, its probability and its skew, even if all pods provably fit.
    """

    states: int = 20_000
    orders: int = 200
    moves: int = 20_000
    details: bool = True

    @property
    def work(self) -> int:
        """The most grid columns to check for constraints over two crossing topology keys (see `crossing_keys`).

        20,000 states allow 2,000,000 columns. Checking them takes under a second.
        """
        return self.states * _COLUMNS_PER_STATE

    def states_of(self, game: Game) -> int:
        """Return the most states to search in this game.

        A game with many node classes gets fewer states, because each takes longer to search.
        """
        return self.states // game.cost


class Step(Struct, frozen=True):
    """The placement of a pod on a node, or the deletion of a pod from a node.

    Attributes:
        batch: The index of the pod's batch.
        node: The name of the node.
        gone: Whether the pod is deleted.
    """

    batch: int
    node: str
    gone: bool = False


class PlacedPods(Struct, frozen=True):
    """The verdict on a simulation, and the number of pods placed.

    ``wanted`` is the number of pods to place. ``fewest`` and ``most`` are the smallest and largest number placed in any
    order. They are None without a proof.
    """

    verdict: PlacementVerdict
    wanted: int
    fewest: int | None = None
    most: int | None = None


class Simulation(PlacedPods, frozen=True):
    """The verdict of a simulation, with its proof.

    If the simulation sampled orders, ``fewest`` and ``most`` are only bounds.

    Attributes:
        stuck: The probability that some pods get no node, if a random waiting pod goes to a random node in each step.
            If orders were sampled, the share of sampled orders with a pod without a node. None if unknown.
        sampled: The number of sampled orders.
        states: The number of searched states. A state is the pods on all nodes after some steps.
        witness: The shortest known order that leaves a pod without a node.
        placed: By batch of equal pods, the number of pods placed by the witness.
        ends: For every possible final placement, the number of placed pods by batch. Empty if some are unknown.
        skew: The worst skew of a rolling update (`worst_skew`). None for a StatefulSet, and if unknown.
    """

    stuck: float | None = None
    sampled: int = 0
    states: int = 0
    witness: tuple[Step, ...] = ()
    placed: Pods = ()
    ends: tuple[Pods, ...] = ()
    skew: int | None = None
