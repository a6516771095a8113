"""Format texts for users: untrusted text, plurals, lists, and names of constraints."""

import json
from collections.abc import Iterable, Sequence

_SINGULAR = {"are": "is", "have": "has", "do": "does"}


def listed(names: Sequence[str], most: int) -> str:
    """Join the first ``most`` names and the number of others: ``a, b and 3 more``."""
    shown, rest = names[:most], len(names) - most
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def together(parts: Iterable[str]) -> str:
    """Join parts: ``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


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


def plural(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``12,000 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def agree(count: int, verb: str) -> str:
    """Return the verb in the form for this count: ``stays`` for 1, else ``stay``."""
    if count != 1:
        return verb
    return _SINGULAR.get(verb) or f"{verb}{'es' if verb.endswith(('s', 'ch')) else 's'}"


def quoted(text: str, limit: int = 80) -> str:
    """Format an untrusted name for a sentence. It gets quotes if empty, unprintable or with spaces."""
    plain = bool(text) and text.isprintable() and " " not in text
    return one_line(text if plain else json.dumps(text[: limit + 1], ensure_ascii=False), limit)


def segment_of(key: str) -> str:
    """Return the last part of a label key: ``zone``."""
    return key.rpartition("/")[2]


def object_title(kind: str, namespace: str, name: str) -> str:
    """An object's name in messages: ``Deployment shop/web``."""
    return f"{kind} {namespace}/{name}"


def constraint_name(key: str, index: int | None) -> str:
    """Return the name of a constraint in messages: ``zone[0]``. A cluster default has no index."""
    segment = segment_of(key)
    name = quoted(segment, 40) if segment else "constraint"
    return name if index is None else f"{name}[{index}]"
