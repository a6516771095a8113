"""Go's text formats in kube-apiserver's messages: %q, JSON and time errors.

Source: Go 1.26 strconv.Quote, encoding/json, time/format.go.
"""

import json
import re
from functools import lru_cache

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_TABLE = str.maketrans(_HTML)
# Each row is one element of the layout: its text, the accepted expression, and (name, low, high) for a range checked
# during parsing. Go checks the day at the end, against the month.
_ELEMENTS: tuple[tuple[str, str, tuple[str, int, int] | None], ...] = (
    ("2006", r"[0-9]{4}", None),
    ("-", "-", None),
    ("01", r"[0-9]{2}", ("month", 1, 12)),
    ("-", "-", None),
    ("02", r"[0-9]{2}", None),
    ("T", "T", None),
    ("15", r"[0-9]{1,2}", ("hour", 0, 23)),
    (":", ":", None),
    ("04", r"[0-9]{2}", ("minute", 0, 59)),
    (":", ":", None),
    ("05", r"[0-9]{2}", ("second", 0, 59)),
    ("", r"(?:[.,][0-9]+)?", None),
    ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}", None),
)
# A fast path for times in Kubernetes' own format. Days after the 28th depend on the month and take the slow path.
_COMMON_TIME = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z", re.ASCII
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # days of each month, in a common year


def quote(text: str) -> str:
    """Quote the text like Go's ``strconv.Quote``. Source: strconv/quote.go ``Quote``."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    if text.isascii():
        return f'"{text.translate(_ASCII_RUNES)}"'
    return '"' + "".join(map(_rune, text)) + '"'


@lru_cache(maxsize=16384)  # Entries take a few bytes. A text of 40,000 odd characters is quoted about a dozen times.
def _rune(char: str) -> str:
    """Source: strconv/quote.go ``appendEscapedRune``."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ASCII_RUNES = {code: _rune(chr(code)) for code in range(128)}


def json_text(value: object) -> str:
    """Encode JSON like Go, with escaped HTML. Source: encoding/json encode.go ``appendString``."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML_TABLE)


def time_fault(text: str) -> str | None:
    """Return the error of ``time.Parse(time.RFC3339, text)``. Source: time/format.go ``parse``, ``ParseError``."""
    if _COMMON_TIME.fullmatch(text):
        return None
    rest, numbers = text, {}
    for element, accepted, limits in _ELEMENTS:
        match = re.compile(accepted, re.ASCII).match(rest)
        if match is None:
            left = f"cannot parse {_time_quote(rest)} as {quote(element)}"
            return f"parsing time {_time_quote(text)} as {quote(_LAYOUT)}: {left}"
        if limits and not limits[1] <= int(match[0]) <= limits[2]:
            return f"parsing time {_time_quote(text)}: {limits[0]} out of range"
        numbers[element] = match[0]
        rest = rest[match.end() :]
    if rest:
        return f"parsing time {_time_quote(text)}: extra text: {_time_quote(rest)}"
    year, month, day = int(numbers["2006"]), int(numbers["01"]), int(numbers["02"])
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS[month - 1] + leap:
        return f"parsing time {_time_quote(text)}: day out of range"
    return None


def _time_quote(text: str) -> str:
    """Quote like package time: as `quote`, with non-ASCII text as bytes. Source: time/format.go ``quote``."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if " " <= c < "\x80" else "".join(f"\\x{b:02x}" for b in c.encode()) for c in plain) + '"'
