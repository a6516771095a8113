"""The result of a check run: findings, faults of the input, and skipped rules."""

import os
import traceback
from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.answers.audited import HiddenEntry, SkippedRule
from webhook.cli.output.terminal import print_message
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_results import ClusterScan
from webhook.core.text import one_line
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import FieldPosition, Manifest


class ReviewFailure(Struct, frozen=True):
    """A bug: a part of evenspread raised an exception while examining an object.

    ``part`` is the name of this part, as in ``the rule selector-empty``.
    """

    file: str
    title: str
    part: str
    error: Exception


def print_failures(failures: Sequence[ReviewFailure]) -> None:
    """Print a line for each failure, and with EVENSPREAD_DEBUG the first traceback."""
    for failure in failures:
        error = f"{type(failure.error).__name__}: {one_line(str(failure.error))}".removesuffix(": ")
        where = f"{one_line(failure.file)}: {failure.title}"
        print_message(f"{where}: {failure.part} failed ({error}); everything else was checked")
    if failures:
        print_message("evenspread: a bug in evenspread, please report it; EVENSPREAD_DEBUG=1 shows where")
        if os.environ.get("EVENSPREAD_DEBUG"):
            print_message("".join(traceback.format_exception(failures[0].error)))


class Row(Struct, frozen=True, kw_only=True):
    """A finding and its field.

    Attributes:
        url: The address of the rule's page.
        more: The number of further findings of the same rule, if a run reports it once.
        ignored: Whether a comment in the file ignores it.
    """

    manifest: Manifest
    judged: JudgedFinding
    place: FieldPosition
    url: str
    more: int = 0
    ignored: bool = False

    @property
    def severity(self) -> Severity:
        """The severity of the finding, else of its rule."""
        return self.judged.severity

    @property
    def waived(self) -> bool:
        """Whether the policy, an annotation or a comment exempts the finding."""
        return bool(self.judged.waived)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key of a finding: file, object title, rule and path. Objects with the same title share it."""
        return self.manifest.file, self.manifest.title, self.judged.finding.rule, self.judged.finding.path


class RunResult(Struct, frozen=True, kw_only=True):
    """The result of a check run.

    Attributes:
        rows: The findings.
        hidden: Findings that are not printed, by rule and level.
        faults: Faults of the input.
        gaps: Rules that were not evaluated.
        failures: Bugs in evenspread.
        files: Number of files.
        kinds: Number of objects by kind.
        workloads: Number of checked objects with a pod template.
        owned: Number of objects checked as part of their controller.
        clean: File and title of each workload without findings.
        scan: The scan of a whole cluster, else None.
        index: The index of a whole cluster, else None.
        whole: Whether the input is a snapshot.
        rules: The requested rules. Empty for all.
    """

    rows: tuple[Row, ...] = ()
    hidden: tuple[HiddenEntry, ...] = ()
    faults: tuple[InputFault, ...] = ()
    gaps: tuple[SkippedRule, ...] = ()
    failures: tuple[ReviewFailure, ...] = ()
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
        """The number of API objects."""
        return sum(self.kinds.values())
