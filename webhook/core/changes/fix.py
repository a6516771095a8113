"""A change of an object as text for people and as edits for programs, made together so that they cannot differ."""

from collections.abc import Iterable
from typing import TypedDict

from msgspec import Struct

from webhook.core.json_edits import Edit

# The longest text of a fix: longer than with any selector that people write.
_MAX_FIX_CHARS = 500
_VERBS = frozenset({"add", "remove", "set", "move", "rename"})


class FixFields(TypedDict):
    """The fields of a finding that a fix fills."""

    fix: str
    edits: tuple[Edit, ...]
    by_hand: str


class Fix(Struct, frozen=True):
    """What a finding suggests: ``Finding(..., **fix.fields)``.

    Args:
        text: What to write in place of the text at the finding's path, or words for people.
        edits: The same change for programs.
        by_hand: Why there are no edits.
    """

    text: str = ""
    edits: tuple[Edit, ...] = ()
    by_hand: str = ""

    @property
    def fields(self) -> FixFields:
        """The fix as arguments of `Finding`."""
        return {"fix": self.text, "edits": self.edits, "by_hand": self.by_hand}


def all_of(fixes: Iterable[Fix]) -> Fix:
    """One fix from several that only help together."""
    several = [each for each in fixes if each != Fix()]
    # What a later edit overwrites would only be read by people, and puzzle them.
    needed = [each for index, each in enumerate(several) if not _is_covered(each, several[index + 1 :])]
    if len(needed) < 2:
        return needed[0] if needed else Fix()
    text = bounded(" and ".join(map(_as_words, needed)))
    if by_people := next((each for each in needed if not each.edits), None):
        return Fix(text, by_hand=by_people.by_hand)
    return Fix(text, tuple(edit for each in needed for edit in each.edits))


def _is_covered(fix: Fix, later: Iterable[Fix]) -> bool:
    """Whether a later fix overwrites everything that this one writes."""
    paths = tuple(f"{edit.path}{mark}" for each in later for edit in each.edits for mark in ".[")
    return bool(paths and fix.edits) and all(f"{edit.path}.".startswith(paths) for edit in fix.edits)


def without_edits(fix: Fix) -> Fix:
    """The fix as text only, without edits."""
    return Fix(_as_words(fix), by_hand=fix.by_hand)


def _as_words(fix: Fix) -> str:
    return fix.text if fix.text.partition(" ")[0] in _VERBS else f"set {fix.text}"


def bounded(text: str) -> str:
    """The text, or a hint to the command where it is too long for a line."""
    return (
        text
        if len(text) <= _MAX_FIX_CHARS
        else "run evenspread check --fix, which writes it: it is too long for one line"
    )
