"""Format numbers, ages and zone names for people."""

import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def instant(text: str) -> datetime | None:
    """Parse a timestamp of the API server. None if missing or invalid."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def written(moment: datetime | None) -> str:
    """Format a time as ``20 Nov 2026 09:00 UTC``. Empty for None."""
    return f"{moment.astimezone(UTC):%-d %b %Y %H:%M} UTC" if moment is not None else ""


def duration(seconds: float) -> str:
    """Format a duration in at most two units: ``8 s``, ``43 min``, ``3 h 5 min``, ``2 d 4 h``."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    big, small, names = (_HOUR, _MINUTE, ("h", "min")) if whole < _DAY else (_DAY, _HOUR, ("d", "h"))
    rest = whole % big // small
    return f"{whole // big} {names[0]}" + (f" {rest} {names[1]}" if rest else "")


def age(since: str, moment: datetime | None) -> str:
    """Format the time from ``since`` to ``moment``. Empty if either is unknown."""
    began = instant(since)
    return "" if began is None or moment is None else duration((moment - began).total_seconds())


def short_names(names: Iterable[str]) -> Mapping[str, str]:
    """Cut the common beginning of all names: ``eu-central-1a`` and ``eu-central-1b`` become ``a`` and ``b``.

    Names are cut only between letters and digits, so zone-1 and zone-10 stay distinct. No name becomes empty.
    """
    listed = [*names]
    letters = zip(*listed, strict=False) if len(listed) > 1 else ()
    cut = sum(1 for _ in itertools.takewhile(lambda parts: len({*parts}) == 1, letters))
    while cut and not all(_may_cut(name, cut) for name in listed):
        cut -= 1
    return {name: name[cut:] for name in listed}


def _may_cut(name: str, at: int) -> bool:
    if at >= len(name):
        return False
    before, after = name[at - 1], name[at]
    return not before.isalnum() or (before.isdigit() != after.isdigit() and after.isalnum())
