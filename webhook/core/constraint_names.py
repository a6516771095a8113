"""Short names of label keys and constraints in messages."""

from webhook.core.text import quoted


def segment_of(key: str) -> str:
    """Return the last part of a label key: ``zone``."""
    return key.rpartition("/")[2]


def constraint_name(key: str, index: int | None) -> str:
    """Return the name of a constraint in messages: ``zone[0]``. A cluster default has no index."""
    segment = segment_of(key)
    name = quoted(segment, 40) if segment else "constraint"
    return name if index is None else f"{name}[{index}]"
