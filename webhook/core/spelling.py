"""Suggest known words for a misspelt word, and choose the article of a noun."""

import re
from collections.abc import Callable, Iterable


def nearest(word: str, known: Iterable[str], slips: int) -> str | None:
    """Return the nearest known word within ``slips`` typing errors, or None. Case-sensitive.

    Use it for names in a fix, where a wrong guess does harm.
    """
    near = ((_edit_distance(word, each, slips), each) for each in known if abs(len(word) - len(each)) <= slips)
    distance, name = min(near, default=(slips + 1, ""))
    return name if distance <= slips else None


def did_you_mean(
    word: str,
    known: Iterable[str],
    most: int = 1,
    *,
    fold: Callable[[str], str] = str,
    quote: Callable[[str], str] = lambda name: repr(name[:64]),
) -> str:
    """Return the end of a message: ``; did you mean 'a' or 'b'?``, or "" without a similar word.

    Args:
        word: The unknown word.
        known: The known words.
        most: The most suggestions.
        fold: Normalises a word before the comparison.
        quote: Formats a suggestion.
    """
    import difflib  # noqa: PLC0415 only needed for a mistake

    folded = {fold(name): name for name in known}
    near = " or ".join(quote(folded[name]) for name in difflib.get_close_matches(fold(word), folded, n=most))
    return f"; did you mean {near}?" if near else ""


def _edit_distance(one: str, other: str, most: int) -> int:
    """Count the letters to insert, remove, replace or swap with a neighbour to turn one text into the other.

    Stops early with some larger number if the texts differ by more than ``most``, as most texts do.
    """
    far = most + 1
    above: list[int] = [far] * (len(other) + 1)
    row: list[int] = [*range(len(other) + 1)]
    for i, left in enumerate(one, start=1):
        above, row, before = row, [far] * (len(other) + 1), above
        row[0] = i
        # Outside this range, the prefixes differ by more than ``most`` in length alone.
        for j in range(max(1, i - most), min(len(other), i + most) + 1):
            right = other[j - 1]
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row[j] = cost
        if min(row) > most and min(above) > most:
            break
    return row[-1]


# Letters with a name that starts with a vowel sound, since an abbreviation is spelled out.
_SPELT = re.compile(r"[AEFHILMNORSX](?:[A-Z]+(?![a-z])|$)")
_ABBREVIATED = re.compile(r"[A-Z](?:[A-Z]+(?![a-z])|$)")
_VOWEL_SOUND = re.compile(r"(?!eu|one|once|uni(?!n)|us[aeu]|ut[ei]|ub)[aeiou]|hour|honest|heir", re.IGNORECASE)


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun, by its sound: ``an InferenceService``, ``a UserGroup``, ``an HTTPRoute``."""
    sound = _SPELT if _ABBREVIATED.match(noun) else _VOWEL_SOUND
    return f"{'an' if sound.match(noun) else 'a'} {noun}"
