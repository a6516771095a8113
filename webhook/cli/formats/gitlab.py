"""``-o gitlab``: a Code Quality report, for findings in merge requests of GitLab.

Source: docs.gitlab.com, Code Quality, report format. GitLab drops all entries after the first incomplete one.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from webhook.cli.checking.baseline import finding_key, fingerprint_of
from webhook.cli.checking.finding_text import file_and_place, file_text, message_with_fix
from webhook.cli.checking.results import Row, RunResult
from webhook.core.rules.frame.rule import Severity
from webhook.manifests.reading.documents import InputFault

_SEVERITIES = {Severity.HIGH: "critical", Severity.MEDIUM: "major", Severity.LOW: "minor"}


def render(result: RunResult) -> Iterator[str]:
    """Render an entry for each finding, except exempted ones. Unreadable input comes first."""
    seen = Counter[str]()

    def distinct(key: str) -> str:
        """Number equal keys, such as those of equal objects in two files. GitLab shows equal keys once."""
        seen[key] += 1
        return key if seen[key] == 1 else f"{key}-{seen[key]}"

    entries = [
        _fault(fault, distinct(fingerprint_of(fault.file, fault.message))) for fault in result.faults if fault.fatal
    ]
    entries += [_finding(row, distinct(finding_key(row))) for row in result.rows if not row.waived]
    yield msgspec.json.format(msgspec.json.encode(entries), indent=2).decode() + "\n"


def _finding(row: Row, fingerprint: str) -> dict[str, object]:
    file, place = file_and_place(row)
    return _entry(
        f"{row.manifest.title}: {message_with_fix(row)}; see {row.url}",
        row.judged.finding.rule,
        fingerprint,
        _SEVERITIES[row.severity],
        file,
        place.line if place else 0,
    )


def _fault(fault: InputFault, fingerprint: str) -> dict[str, object]:
    return _entry(f"unreadable: {fault.message}", "unreadable", fingerprint, "blocker", fault.file, fault.line)


def _entry(  # noqa: PLR0913, PLR0917 the entry's own fields
    description: str, check_name: str, fingerprint: str, severity: str, file: str, line: int
) -> dict[str, object]:
    """Return an entry of the GitLab report. If ``line`` is 0 (unknown), the entry points to the first line."""
    return {
        "description": description,
        "check_name": check_name,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": file_text(file).removeprefix("./"), "lines": {"begin": max(line, 1)}},
    }
