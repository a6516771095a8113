"""The result of a run: findings as rows, faults of the input, rules that could not look, and the exit code."""

import os
import traceback
from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.cli.exit_codes import Exit
from webhook.cli.terminal import say
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.constraint.unknown_fields import UNKNOWN_FIELD
from webhook.core.rules.frame.rule import Severity
from webhook.core.rules.rule_set import API_RULES, OFFLINE
from webhook.core.scan.scanned import ClusterScan
from webhook.core.text import one_line
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_kind
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import FieldPosition, Manifest


class Failure(Struct, frozen=True):
    """A bug: a part of the program raised on an object. ``part`` names it in messages: ``the rule selector-empty``."""

    file: str
    title: str
    part: str
    error: Exception


def print_failures(failures: Sequence[Failure]) -> None:
    """Print one line per failure, and the first traceback if requested."""
    for failure in failures:
        said = f"{type(failure.error).__name__}: {one_line(str(failure.error))}".removesuffix(": ")
        say(f"{one_line(failure.file)}: {failure.title}: {failure.part} failed ({said}); everything else was looked at")
    if failures:
        say("evenspread: a fault of evenspread itself, please report it; EVENSPREAD_DEBUG=1 shows where")
        if os.environ.get("EVENSPREAD_DEBUG"):
            say("".join(traceback.format_exception(failures[0].error)))


class Row(Struct, frozen=True, kw_only=True):
    """One finding and the field that it is about."""

    manifest: Manifest
    judged: JudgedFinding
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

    Attributes:
        kinds: Number of objects by kind.
        workloads: Number of examined objects with a pod template.
        owned: Number of objects skipped because their controller was examined.
        clean: File and title of each workload without findings.
        scan: Of whole clusters only, like ``index``.
        whole: Whether the input states to be a whole cluster.
        rules: The requested rules. Empty for all.
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


MAX_OUTSIDE_TEXT_CHARS = 4096  # of one text from outside; a field of an object can have megabytes


def message(row: Row) -> str:
    """What is wrong, with the numbers, in kube-apiserver's own words if it has any."""
    return one_line(row.judged.finding.summary, MAX_OUTSIDE_TEXT_CHARS)


def fix(row: Row) -> str:
    """The smallest change that helps."""
    return one_line(row.judged.finding.fix or row.judged.finding.remedy, MAX_OUTSIDE_TEXT_CHARS)


def consequence(row: Row) -> str:
    """What happens to the object because of the finding: refused, warned about, or only reported here."""
    manifest, judged = row.manifest, row.judged
    built_in = group_kind(manifest.api_version, manifest.kind) in BUILT_IN_KINDS
    if built_in and judged.finding.rule in API_RULES:
        return "kube-apiserver refuses it"
    if built_in and judged.finding.rule == UNKNOWN_FIELD.id:
        return "kubectl refuses it"
    if judged.finding.rule in OFFLINE:
        return "the webhook does not look"
    return _CONSEQUENCES[judged.mode]


_CONSEQUENCES = {
    Mode.DENY: "the webhook denies it",
    Mode.WARN: "the webhook warns",
    Mode.AUDIT: "the webhook only records it",
    Mode.OFF: "the webhook says nothing",
}
