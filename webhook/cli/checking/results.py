"""The result of a run: findings as rows, faults of the input, rules that could not look, and the exit code."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.cli.checking.failures import Failure
from webhook.cli.exit_codes import Exit
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.review.judging import Judged
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scanned import ClusterScan
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import FieldPosition, Manifest


class Row(Struct, frozen=True, kw_only=True):
    """One finding and the field that it is about."""

    manifest: Manifest
    judged: Judged
    place: FieldPosition

    @property
    def severity(self) -> Severity:
        """The finding's severity, else the rule's."""
        return self.judged.severity

    @property
    def waived(self) -> bool:
        """Whether the policy exempts it."""
        return bool(self.judged.waived)


class Gap(Struct, frozen=True):
    """A rule that was not evaluated, the missing fact, and for how many objects."""

    rule: str
    missing: str
    objects: int


class RunResult(Struct, frozen=True, kw_only=True):
    """The result of a whole run.

    Shape: ``kinds`` counts the objects by kind, ``workloads`` those with a pod template that were examined, ``owned``
    those that were skipped because their controller was examined; ``clean`` has file and title of workloads without
    findings. ``scan`` is of whole clusters only, as is the ``index`` that was asked; ``whole`` says that the input
    states to be one. ``rules`` are the only ones that were asked about, empty for all.
    """

    rows: tuple[Row, ...] = ()
    faults: tuple[InputFault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    failures: tuple[Failure, ...] = ()
    files: int = 0
    kinds: Mapping[str, int] = {}
    workloads: int = 0
    owned: int = 0
    clean: tuple[tuple[str, str], ...] = ()
    scan: ClusterScan | None = None
    index: ReadOnlyIndex | None = None
    whole: bool = False
    rules: frozenset[str] = frozenset()

    @property
    def objects(self) -> int:
        """How many API objects were read."""
        return sum(self.kinds.values())


_RANKS = {Severity.LOW: 1, Severity.MEDIUM: 2, Severity.HIGH: 3}


def rank(severity: Severity) -> int:
    """1 for low to 3 for high."""
    return _RANKS[severity]


def exit_code(result: RunResult, fail_on: str) -> Exit:
    """The exit code: faults of evenspread take precedence over unreadable input, and that over findings.

    Shape: ``fail_on`` is the lowest severity that counts, or ``never``.
    """
    if result.failures:
        return Exit.OUR_FAULT
    if any(fault.fatal for fault in result.faults):
        return Exit.UNREADABLE
    if fail_on == "never":
        return Exit.FINE
    least = rank(Severity(fail_on))
    counted = (row for row in result.rows if not row.waived)
    return Exit.FINDINGS if any(rank(row.severity) >= least for row in counted) else Exit.FINE
