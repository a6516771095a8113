"""Format texts for users: untrusted text, plurals, lists and spelling suggestions."""

import json
import re
from collections.abc import Callable, Iterable, Sequence


def listed(names: Sequence[str], most: int) -> str:
    """Join the first ``most`` names and the number of others: ``a, b and 3 more``."""
    shown, rest = names[:most], len(names) - most
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def together(parts: Iterable[str]) -> str:
    """Join parts: ``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


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


def one_line(text: str, limit: int = 256) -> str:
    """Make a printable line of untrusted text, and cut it with an ellipsis at the limit.

    kube-apiserver silently drops warnings with a control character.
    """
    flat = text[: limit + 1]
    if not flat.isprintable():
        flat = "".join(letter if letter.isprintable() else " " for letter in flat)
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def shortened(text: str, limit: int) -> str:
    """Make a printable line of a sentence, and cut it after a whole word if possible."""
    flat = one_line(text, limit + 1)
    if len(flat) <= limit:
        return flat
    words = flat[: limit - 1].rpartition(" ")[0].rstrip(" ,;:")
    return f"{words} …" if words else one_line(flat, limit)


# Letters with a name that starts with a vowel sound, since an abbreviation is spelled out.
_SPELT = re.compile(r"[AEFHILMNORSX](?:[A-Z]+(?![a-z])|$)")
_ABBREVIATED = re.compile(r"[A-Z](?:[A-Z]+(?![a-z])|$)")
_VOWEL_SOUND = re.compile(r"(?!eu|one|once|uni(?!n)|us[aeu]|ut[ei]|ub)[aeiou]|hour|honest|heir", re.IGNORECASE)


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun, by its sound: ``an InferenceService``, ``a UserGroup``, ``an HTTPRoute``."""
    sound = _SPELT if _ABBREVIATED.match(noun) else _VOWEL_SOUND
    return f"{'an' if sound.match(noun) else 'a'} {noun}"


def plural(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``12,000 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def segment_of(key: str) -> str:
    """Return the last part of a label key: ``zone``."""
    return key.rpartition("/")[2]


def constraint_name(key: str, index: int | None) -> str:
    """Return the name of a constraint in messages: ``zone[0]``. A cluster default has no index."""
    segment = segment_of(key)
    name = quoted(segment, 40) if segment else "constraint"
    return name if index is None else f"{name}[{index}]"


def quoted(text: str, limit: int = 80) -> str:
    """Format an untrusted name for a sentence. It gets quotes if empty, unprintable or with spaces."""
    plain = bool(text) and text.isprintable() and " " not in text
    return one_line(text if plain else json.dumps(text[: limit + 1], ensure_ascii=False), limit)
