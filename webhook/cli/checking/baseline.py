"""A baseline: the known findings of a repository. ``check --baseline`` reports only other findings.

A key consists of the object, the rule and the constraint. It survives moved lines and renamed files.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.results import Row, RunResult
from webhook.cli.exit_codes import CommandError
from webhook.core.decoders import decoder_of
from webhook.core.text import listed, one_line, plural
from webhook.core.workloads.kinds import group_kind
from webhook.manifests.reading.documents import InputFault

_SHOWN_ENTRIES = 5  # Five of ``Deployment shop/web selector-not-self`` make a note of 252 characters.
_VERSION = 1  # of the file


class Entry(Struct, frozen=True, kw_only=True):
    """Known findings with the same key. ``object`` is the object's title, as in ``Deployment shop/web``."""

    key: str
    rule: str
    object: str
    count: int = 1


class Baseline(Struct, frozen=True, kw_only=True):
    """The content of a baseline file."""

    version: int
    findings: tuple[Entry, ...]


class _Versioned(Struct, frozen=True):
    version: int


def finding_key(row: Row) -> str:
    """The key of a finding: 32 hexadecimal digits. Equal findings of equal objects in two files share it."""
    manifest, finding = row.manifest, row.judged.finding
    group, kind = group_kind(manifest.api_version, manifest.kind)
    return fingerprint_of(group, kind, manifest.namespace, manifest.name, finding.rule, finding.key)


def fingerprint_of(*parts: str) -> str:
    """Return 32 hexadecimal digits for these texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _baseline_of(result: RunResult) -> Baseline:
    """The baseline with all findings of a run, except exempted ones. Sorted, for small diffs."""
    rows = [row for row in result.rows if not row.waived]
    counts = Counter((row.manifest.title, row.judged.finding.rule, finding_key(row)) for row in rows)
    entries = (
        Entry(key=key, rule=rule, object=title, count=count) for (title, rule, key), count in sorted(counts.items())
    )
    return Baseline(version=_VERSION, findings=tuple(entries))


def written_baseline(name: str, result: RunResult) -> str:
    """Write the findings of a run into a file. Returns the line to print.

    Raises:
        CommandError: The file is not writable.
    """
    baseline = _baseline_of(result)
    text = msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"
    try:
        Path(name).write_bytes(text)
    except OSError as error:
        raise CommandError(f"{one_line(name)}: not written: {error.strerror or error}") from error
    total = sum(entry.count for entry in baseline.findings)
    return f"{one_line(name)}: {plural(total, 'finding')} written; --baseline {one_line(name)} hides them"


def read_baseline(name: str) -> Baseline:
    """Read a baseline file.

    Raises:
        CommandError: The file is missing, is not a baseline, or has another version.
    """
    try:
        text = Path(name).read_bytes()
        version = decoder_of(_Versioned).decode(text).version
        if version == _VERSION:
            return decoder_of(Baseline).decode(text)
    except OSError as error:
        raise CommandError(f"{one_line(name)}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{one_line(name)}: not a baseline of check --write-baseline: {one_line(str(error))}"
        raise CommandError(message) from error
    raise CommandError(
        f"{one_line(name)}: a baseline of version {version}, and this evenspread reads version {_VERSION}: "
        "write it again with check --write-baseline"
    )


def without_known(result: RunResult, baseline: Baseline, name: str, rules: Collection[str] = ()) -> RunResult:
    """Remove the findings listed in a baseline from a result, and add up to two notes.

    The notes count the known findings and name the fixed findings. A baseline entry is fixed if its object was checked
    without this finding. Entries of unchecked objects cause no note. So a run over the changed files of a commit can
    use the baseline of the repository.
    """
    left = Counter[str]()
    for entry in baseline.findings:
        left[entry.key] += entry.count
    kept, removed = list[Row](), list[Row]()
    for row in result.rows:
        key = finding_key(row)
        known = left[key] > 0
        left[key] -= known
        (removed if known and not row.waived else kept).append(row)
    unclean = {(row.manifest.file, row.manifest.title) for row in kept}
    clean = dict.fromkeys((row.manifest.file, row.manifest.title) for row in removed)
    fixed = [entry for entry in _checked(baseline.findings, result, rules) if left[entry.key] > 0]
    notes = list[str]()
    if removed:
        notes.append(f"hides {plural(len(removed), 'known finding')}")
    if fixed:
        names = listed([f"{entry.object} {entry.rule}" for entry in fixed], _SHOWN_ENTRIES)
        notes.append(f"fixed: {names}; --write-baseline removes fixed findings")
    return replace(
        result,
        rows=tuple(kept),
        clean=(*result.clean, *(workload for workload in clean if workload not in unclean)),
        faults=(*result.faults, *(InputFault(file=name, message=note, fatal=False) for note in notes)),
    )


def _checked(entries: Sequence[Entry], result: RunResult, rules: Collection[str]) -> list[Entry]:
    """The baseline entries of objects that this run examined, with rules that it evaluated for every object."""
    titles = {title for _, title in result.clean} | {row.manifest.title for row in result.rows}
    undecided = {gap.rule for gap in result.gaps}
    return [
        entry
        for entry in entries
        if entry.object in titles and entry.rule not in undecided and (not rules or entry.rule in rules)
    ]
