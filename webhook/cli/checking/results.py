"""What a run of the command line comes to: rows, faults, what was not looked at, and the exit code."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.cli.checking.failures import Failure
from webhook.cli.exit_codes import Exit
from webhook.core.review.judging import Judged
from webhook.core.rules.frame.rule import Severity
from webhook.manifests.documents import Fault
from webhook.manifests.manifest import Manifest, Place


class Row(Struct, frozen=True, kw_only=True):
    """One finding and the field that it is about."""

    manifest: Manifest
    judged: Judged
    place: Place

    @property
    def severity(self) -> Severity:
        """How much is lost if nobody acts."""
        return self.judged.severity

    @property
    def waived(self) -> bool:
        """Whether the policy exempts it."""
        return bool(self.judged.waived)


class Gap(Struct, frozen=True):
    """A rule that could not look, why, and at how many objects."""

    rule: str
    missing: str
    objects: int


class Outcome(Struct, frozen=True, kw_only=True):
    """Everything that a run found.

    Shape: ``kinds`` counts the objects by kind, ``workloads`` those that have a pod template and were looked at,
    ``owned`` those that were looked at in their controller; ``clean`` names the workloads without findings to
    report, each with its file.
    """

    rows: tuple[Row, ...] = ()
    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    failures: tuple[Failure, ...] = ()
    files: int = 0
    kinds: Mapping[str, int] = {}
    workloads: int = 0
    owned: int = 0
    clean: tuple[tuple[str, str], ...] = ()

    @property
    def objects(self) -> int:
        """How many API objects were read."""
        return sum(self.kinds.values())


_RANKS = {Severity.LOW: 1, Severity.MEDIUM: 2, Severity.HIGH: 3}


def _rank(severity: Severity) -> int:
    """1 for low to 3 for high."""
    return _RANKS[severity]


def exit_code(outcome: Outcome, fail_on: str) -> Exit:
    """What the run exits with: a fault of ours outweighs input that could not be read, and that outweighs findings.

    Shape: ``fail_on`` is the lowest severity that counts, or ``never``.
    """
    if outcome.failures:
        return Exit.OUR_FAULT
    if any(fault.fatal for fault in outcome.faults):
        return Exit.UNREADABLE
    if fail_on == "never":
        return Exit.FINE
    least = _rank(Severity(fail_on))
    counted = (row for row in outcome.rows if not row.waived)
    return Exit.FINDINGS if any(_rank(row.severity) >= least for row in counted) else Exit.FINE
