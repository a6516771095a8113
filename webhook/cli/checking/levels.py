"""Levels of findings. ``--level`` selects the printed findings, ``--fail-on`` the failing findings."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from webhook.answers.audited import HiddenEntry
from webhook.cli.checking.finding_text import is_refused
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.exit_codes import Exit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity
from webhook.core.rules.rule_set import ONCE_PER_RUN
from webhook.core.text import plural


class Level(StrEnum):
    """The severity of a finding, or ``audit`` for a finding only recorded by the webhook. Highest first."""

    HIGH = Severity.HIGH.value
    MEDIUM = Severity.MEDIUM.value
    LOW = Severity.LOW.value
    AUDIT = "audit"

    @property
    def rank(self) -> int:
        """0 for the highest."""
        return [*Level].index(self)


def level_of(row: Row) -> Level:
    """The level of a finding. An exemption does not change it."""
    mode = row.judged.configured if row.waived else row.judged.mode
    return Level.AUDIT if mode is Mode.AUDIT and not is_refused(row) else Level(row.severity)


class Levels(Struct, frozen=True, kw_only=True):
    """The lowest severity levels to print, to fix, and to fail the run at.

    ``fail_on`` is None if no finding fails the run.
    """

    shown: Level
    fixed: Level
    fail_on: Level | None


def levels(level: str | None, fix: str | None, fail_on: Level | None, *, named: bool) -> Levels:
    """Return the lowest severity levels to print, to fix, and to fail the run at.

    A finding that fails the run is always printed.

    Args:
        level: The option --level. None for the default.
        fix: The option --fix: ``some``, ``all`` or None.
        fail_on: The option --fail-on. None if no finding fails the run.
        named: Whether the user named rules or wants reports. Then the default prints all levels, and --fix fixes all
            levels.
    """
    shown = Level(level) if level else Level.AUDIT if named else Level.LOW
    if fail_on is not None:
        shown = max(shown, fail_on, key=lambda choice: choice.rank)
    return Levels(shown=shown, fixed=Level.MEDIUM if fix == "some" and not named else Level.AUDIT, fail_on=fail_on)


def selected(result: RunResult, lowest: Level) -> RunResult:
    """Keep the findings of at least the lowest level, and count the hidden findings.

    A workload with hidden findings only is clean.
    """
    rows = [*_merged(result.rows)]
    shown = tuple(row for row in rows if level_of(row).rank <= lowest.rank)
    hidden = [row for row in rows if level_of(row).rank > lowest.rank]
    counts = Counter((row.judged.finding.rule, level_of(row)) for row in hidden if not row.waived)
    unclean = {_workload(row) for row in shown}
    clean = dict.fromkeys(workload for row in hidden if (workload := _workload(row)) not in unclean)
    return replace(
        result,
        rows=shown,
        hidden=tuple(HiddenEntry(rule, level, count) for (rule, level), count in counts.items()),
        clean=(*result.clean, *clean),
    )


def hidden_lines(result: RunResult) -> Iterator[str]:
    """Yield a line with the number of findings below the requested severity level.

    Yields nothing if no finding is hidden.
    """
    counts = Counter[str]()
    for entry in result.hidden:
        counts[entry.level] += entry.hidden
    if not counts:
        return
    below = [level for level in Level if level in counts]
    total, pronoun = counts.total(), "it" if counts.total() == 1 else "them"
    where = f" at {below[0]} level" if len(below) == 1 else f" ({', '.join(f'{counts[key]} {key}' for key in below)})"
    yield f"{plural(total, 'more finding')}{where}; --level {below[-1]} shows {pronoun}"


def _workload(row: Row) -> tuple[str, str]:
    return row.manifest.file, row.manifest.title


def _merged(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the findings, but only the first finding of each rule in `ONCE_PER_RUN`."""
    rows = [*rows]
    counts = Counter(row.judged.finding.rule for row in rows if not row.waived)
    seen = set[str]()
    for row in rows:
        rule = row.judged.finding.rule
        if rule not in ONCE_PER_RUN or row.waived:
            yield row
        elif rule not in seen:
            seen.add(rule)
            yield replace(row, more=counts[rule] - 1)


def exit_code(result: RunResult, fail_on: Level | None) -> Exit:
    """Return the exit code of a check run.

    A bug has the highest priority, then unreadable input, then findings from level ``fail_on``.
    """
    if result.failures:
        return Exit.OUR_FAULT
    if any(fault.fatal for fault in result.faults):
        return Exit.UNREADABLE
    if fail_on is None:
        return Exit.FINE
    failing = (row for row in result.rows if not row.waived and level_of(row).rank <= fail_on.rank)
    return Exit.FINDINGS if any(failing) else Exit.FINE
