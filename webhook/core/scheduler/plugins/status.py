"""What one plugin of the scheduler says of nodes."""

from collections.abc import Callable, Iterable

from msgspec import Struct

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
SKIP = "Skip"
ERROR = "Error"


class Status(Struct, frozen=True, omit_defaults=True):
    """A code with its reasons, as kube-scheduler gives them.

    Shape: ``code`` is one of the constants here; ``plugin`` is "" where only one was asked.
    """

    code: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether it keeps the pod away, as opposed to an error."""
        return self.code in (UNSCHEDULABLE, UNRESOLVABLE)


OK = Status(SUCCESS)
SKIPPED = Status(SKIP)

# A status and the nodes that have it, as a set of slots.
Outcome = tuple[Status, int]


class Ran(Struct, frozen=True):
    """One plugin after its PreFilter.

    Shape: ``decide`` takes nodes and gives those that fail, each once; None where Filter does not run.
    ``allowed`` are the only nodes that PreFilter leaves, None for all.
    """

    before: Status = OK
    decide: Callable[[int], Iterable[Outcome]] | None = None
    allowed: frozenset[str] | None = None


PASSES = Ran(SKIPPED)


def unresolvable(*reasons: str) -> Status:
    """No pod that leaves would help."""
    return Status(UNRESOLVABLE, reasons=reasons)


def unschedulable(*reasons: str) -> Status:
    """Not now; preemption may help."""
    return Status(UNSCHEDULABLE, reasons=reasons)


def failure(text: str) -> Status:
    """The scheduling attempt as a whole fails."""
    return Status(ERROR, reasons=(text,))
