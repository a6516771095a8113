"""Ignore comments: ``# evenspread: ignore[rule, …] reason``, on the line above or at the end of the line.

The comment applies to the YAML block that begins on its line: a field, a constraint, or everything below a key. On the
first line of a document, or on the apiVersion, kind, metadata or name of an object, it applies to the whole object.
"""

import re
from collections.abc import Collection, Iterator, Sequence

import yaml
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.results import Row
from webhook.cli.frame import Frame
from webhook.core.policy.options import Exempts
from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID
from webhook.core.spelling import did_you_mean
from webhook.core.text import listed
from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.reading.documents import InputDocument, InputFault
from webhook.manifests.reading.manifest import Manifest

_MARK = b"evenspread:"
_COMMENT = re.compile(r"#[ \t]*evenspread:[ \t]*ignore\b(?:\[([^]\r\n]*)\])?[ \t]*([^\r\n]*)")
# The fields of an object's type and name.
_HEAD = ("apiVersion", "kind", "metadata", "metadata.name")
_SHOWN_RULES = 5  # The five longest rule IDs make a note of 206 characters.
_FORM = "write it as # evenspread: ignore[RULE] reason"


class Ignore(Struct, frozen=True, kw_only=True):
    """A comment in a file to ignore findings. Lines and columns count from 1.

    Attributes:
        first: The first line with ignored findings. 0 if nothing follows the comment.
        last: The last line with ignored findings.
        of_document: Whether the comment ignores findings in the whole YAML document.
    """

    file: str
    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    first: int
    last: int
    of_document: bool

    def covers(self, line: int, manifest_head: frozenset[int]) -> bool:
        """Whether the ignore comment applies to a finding on this line.

        ``manifest_head`` has the line numbers of the object's first lines. A comment there applies to the whole object.
        """
        return self.of_document or self.first in manifest_head or self.first <= line <= self.last

    def fault(self, message: str) -> InputFault:
        """A note about the comment."""
        return InputFault(file=self.file, message=message, line=self.line, column=self.column, fatal=False)

    def unused(self, rules: Sequence[str]) -> InputFault:
        """The note about rules without a finding to ignore."""
        return self.fault(f"unused ignore[{listed(rules, _SHOWN_RULES)}]: no such finding here; --fix removes it")

    def misspelt(self) -> InputFault | None:
        """The note about a comment without rules, or with an unknown rule."""
        if not self.rules:
            return self.fault(f"the comment names no rule; {_FORM}")
        unknown = next((rule for rule in self.rules if rule not in BY_ID), None)
        return None if unknown is None else self.fault(f"no rule {unknown[:64]!r}{did_you_mean(unknown, BY_ID)}")


class IgnoreLog:
    """The ignore comments of a run, each with the rules that had a finding for the comment to suppress."""

    def __init__(self) -> None:
        self._needed: dict[Ignore, set[str]] = {}
        self._without_effect: dict[Ignore, set[str]] = {}
        self._reasons_required = False

    def apply(self, manifest: Manifest, rows: Sequence[Row], undecided: Collection[str], frame: Frame) -> list[Row]:
        """Return the findings of an object, those ignored by a comment marked as waived.

        Args:
            manifest: The object.
            rows: The findings.
            undecided: Rules that could not be evaluated for this object. An ignore comment for such a rule is never
                reported as unused.
            frame: The policy, and whether comments need a reason.
        """
        self._reasons_required = frame.reasons_required
        ignores = [*ignores_in(manifest.document)]
        if not ignores:
            return [*rows]
        for ignore in ignores:
            self._needed.setdefault(ignore, set()).update(undecided)
        head = frozenset(manifest.locate(path).line for path in _HEAD)
        return [self._judged(row, ignores, head, frame.policy.annotations.exempt) for row in rows]

    def _judged(self, row: Row, ignores: Sequence[Ignore], head: frozenset[int], allowed: Exempts) -> Row:
        rule = row.judged.finding.rule
        for ignore in ignores:
            if rule in ignore.rules and ignore.covers(row.place.line, head):
                self._needed[ignore].add(rule)
                if not _silenced(row, allowed) and not row.waived:
                    self._without_effect.setdefault(ignore, set()).add(rule)
                elif not row.waived and (ignore.reason or not self._reasons_required):
                    waived = f"ignored: {ignore.reason}" if ignore.reason else "ignored by a comment"
                    judged = replace(row.judged, mode=row.judged.mode.capped(Mode.AUDIT), waived=waived)
                    return replace(row, judged=judged, ignored=True)
        return row

    def unused(self) -> Iterator[tuple[Ignore, tuple[str, ...]]]:
        """Yield the ignore comments that list unneeded rules, each with these rules. Misspelt comments are left out."""
        for ignore, needed in self._needed.items():
            rules = tuple(rule for rule in ignore.rules if rule not in needed)
            if rules and ignore.misspelt() is None:
                yield ignore, rules

    def faults(self) -> Iterator[InputFault]:
        """Yield notes about misspelt comments, missing reasons, comments without effect, and unused rules."""
        for ignore in self._needed:
            if (fault := ignore.misspelt()) is not None:
                yield fault
            elif self._reasons_required and not ignore.reason:
                yield ignore.fault(f"the comment needs a reason; {_FORM}")
        for ignore, rules in self._without_effect.items():
            named = listed(sorted(rules), _SHOWN_RULES)
            yield ignore.fault(f"ignore[{named}] has no effect: the policy (annotations.exempt) allows no comment here")
        yield from (ignore.unused(rules) for ignore, rules in self.unused())


def _silenced(row: Row, allowed: Exempts) -> bool:
    """Whether a comment may hide the finding. It has the limit of the annotation evenspread.io/exempt."""
    return allowed == Exempts.DENIALS or (allowed != Exempts.NONE and row.judged.mode is not Mode.DENY)


def insertion(data: bytes, row: Row, allowed: Exempts) -> TextEdit | None:
    """Return the edit that adds an ignore comment above a finding. None if a comment has no effect there."""
    if row.manifest.document.json or row.waived or not _silenced(row, allowed):
        return None
    start, line = _line_at(data, row.place.line)
    indent, line_end = line[: len(line) - len(line.lstrip(b" "))], b"\r\n" if line.endswith(b"\r") else b"\n"
    comment = f"# evenspread: ignore[{row.judged.finding.rule}] reason".encode()
    return TextEdit(start, start, indent + comment + line_end)


def removal(data: bytes, ignore: Ignore, rules: Collection[str]) -> TextEdit:
    """Return the edit that removes these rules from an ignore comment.

    If no rule is left, the edit removes the comment.
    """
    start, line = _line_at(data, ignore.line)
    before = line.decode("utf-8", "replace")[: ignore.column - 1]
    begin = start + len(before.encode())
    if kept := [rule for rule in ignore.rules if rule not in rules]:
        return TextEdit(data.index(b"[", begin) + 1, data.index(b"]", begin), ", ".join(kept).encode())
    if before.strip():
        return TextEdit(start + len(before.rstrip().encode()), start + len(line.rstrip(b"\r")), b"")
    return TextEdit(start, min(start + len(line) + 1, len(data)), b"")


def _line_at(data: bytes, number: int) -> tuple[int, bytes]:
    """A line, which counts from 1, after the index of its first byte."""
    *above, line = data.split(b"\n", number)[:number]
    return sum(len(each) + 1 for each in above), line


def may_have_ignores(text: bytes) -> bool:
    """Whether a file or document may have an ignore comment. A cheap test before reading it."""
    return _MARK in text


def ignores_in(document: InputDocument) -> Iterator[Ignore]:
    """Yield the ignore comments of a YAML document."""
    if document.json or not may_have_ignores(document.text):
        return
    text = document.text.decode("utf-8", "replace")
    # YAML reads a hash sign as a comment at the start of a line and after white space.
    comments = [match for match in _COMMENT.finditer(text) if match.start() == 0 or text[match.start() - 1] in " \t\n"]
    if not comments:
        return
    scalars = _scalars(text)
    lines = text.split("\n")
    content = next((number for number, line in enumerate(lines) if _has_content(line)), 0)
    for match in comments:
        if any(start < match.start() < end for start, end in scalars):
            continue
        number = text.count("\n", 0, match.start())
        column = match.start() - (text.rfind("\n", 0, match.start()) + 1)
        target = number if lines[number][:column].strip() else _next_content(lines, number)
        first = 0 if target is None else document.line + target
        yield Ignore(
            file=document.file,
            line=document.line + number,
            column=column + 1,
            rules=tuple(rule for part in (match[1] or "").split(",") if (rule := part.strip())),
            reason=match[2].strip(),
            first=first,
            last=0 if target is None else document.line + _block_end(lines, target),
            of_document=target == content,
        )


def _scalars(text: str) -> list[tuple[int, int]]:
    """The first and the last index of each scalar. A hash sign in a scalar is no comment."""
    offset = text.startswith("\ufeff")
    try:
        return [
            (token.start_mark.index + offset, token.end_mark.index + offset)
            for token in yaml.scan(text, Loader=yaml.CSafeLoader)
            if isinstance(token, yaml.ScalarToken)
        ]
    except yaml.YAMLError:
        return [(-1, len(text))]


def _has_content(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith(("#", "---", "%"))


def _next_content(lines: Sequence[str], number: int) -> int | None:
    return next((later for later in range(number + 1, len(lines)) if _has_content(lines[later])), None)


def _block_end(lines: Sequence[str], first: int) -> int:
    """Return the last line of a YAML block: its deeper lines, and a list with the indentation of its key."""
    indent, is_item = _indent(lines[first]), lines[first].lstrip().startswith("-")
    last = first
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if not _has_content(line):
            continue
        is_list = not is_item and line.lstrip().startswith("- ") and _indent(line) == indent
        if _indent(line) <= indent and not is_list:
            break
        last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
