"""Resolve the scalars of YAML like go-yaml v2, and convert them to values and keys of JSON like kubectl.

    ``yes``, ``on`` and ``y``                   booleans
    ``0o17``, ``017``, ``0x1F`` and ``1_000``   integers
    ``1:30`` and dates                          text

Source: go.yaml.in/yaml/v2 resolve.go; sigs.k8s.io/yaml yaml.go; apimachinery pkg/util/json.
"""

import base64
import datetime as dt
import math
import re
import struct

_TAG = "tag:yaml.org,2002:"
_RESOLVABLE = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp"))
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_SIGNED_BINARY = re.compile(r"0b[-+][01]+", re.ASCII)  # a slip of go-yaml: 0b-11 is -3
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# Numbers with a leading point. go-yaml leaves their underscores to Go, which requires a digit on both sides.
_SPACED_FRACTION = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2}))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?))?",
    re.ASCII,
)
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8; Go's JSON replaces each by U+FFFD
_MIN_INT64, _MAX_INT64, _MAX_UINT64 = -(2**63), 2**63 - 1, 2**64 - 1
# In characters. A longer integer exceeds 64 bits, except with as many leading zeros. Python reads 4,300 digits.
_LONGEST_INTEGER = 256


class UnreadableDocumentError(Exception):
    """Kubernetes' clients cannot read the document.

    Attributes:
        index: Characters from the start of the document. None if unknown.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


def resolve_plain(text: str) -> str | bool | float | None:
    """Resolve a plain scalar without a tag. Numbers are not converted for JSON yet.

    Source: resolve.go ``resolve``, without parseTimestamp, since a date becomes text anyway.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _resolve_number(text) if text[0] in _NUMERIC else text


def _resolve_number(text: str) -> str | float:
    digits = text.replace("_", "")
    if text[0] == ".":
        if "_" in text and not _SPACED_FRACTION.fullmatch(text):
            return text
    elif len(digits) <= _LONGEST_INTEGER:
        if _INTEGER.fullmatch(digits):
            number = _parse_integer(digits)
            if _MIN_INT64 <= number <= (_MAX_INT64 if digits[0] in "+-" else _MAX_UINT64):
                return number
        elif _SIGNED_BINARY.fullmatch(digits):
            return int(digits[2:], 2)  # noqa: FURB166 - int(digits, 0) takes no sign after 0b
    if _FLOAT.fullmatch(digits):
        fraction = float(digits)
        if math.isfinite(fraction):
            return fraction
    return text


def _parse_integer(digits: str) -> int:
    """Parse an integer like Go's ParseInt with base 0: a leading 0 without a letter means octal."""
    unsigned = digits.lstrip("+-")
    octal = len(unsigned) > 1 and unsigned[0] == "0" and unsigned[1].isdigit()
    return int(digits, 8 if octal else 0)


def json_number(number: float) -> float:
    """The number in kubectl's form: int64, else the nearest float64. A float without a fraction becomes an integer.

    Raises:
        UnreadableDocumentError: JSON has no infinities and no not-a-number.
    """
    if isinstance(number, int) and _MIN_INT64 <= number <= _MAX_INT64:
        return number
    nearest = float(number)
    if not math.isfinite(nearest):
        raise UnreadableDocumentError("JSON has no infinity and no not-a-number")
    # From 1e21 on Go writes floats with an exponent, and no integer field accepts these.
    if not nearest.is_integer() or abs(nearest) >= 1e21:
        return nearest
    mantissa, _, power = repr(nearest).partition("e+")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction) * 10 ** (int(power) - len(fraction)) if power else int(nearest)


def resolve_tagged(tag: str, text: str) -> str | bool | float | None:
    """Resolve a scalar with an explicit tag. Raises UnreadableDocumentError for text of another type."""
    if tag == _TAG + "binary":
        try:
            raw = base64.b64decode(text.replace("\n", ""), validate=True)
        except ValueError:
            raise UnreadableDocumentError("!!binary value contains invalid base64 data") from None
        return _ESCAPED_BYTE.sub("\ufffd", raw.decode("utf-8", "surrogateescape"))
    if tag not in _RESOLVABLE or tag == _TAG + "str":
        return text
    value = resolve_plain(text)
    kind = "timestamp" if tag == _TAG + "timestamp" and is_timestamp(text) else _SHORT_TAGS[type(value)]
    if tag == _TAG + "float" and kind == "int" and isinstance(value, int) and value <= _MAX_INT64:
        return float(value)
    if tag != _TAG + kind:
        raise UnreadableDocumentError(f"cannot decode !!{kind} `{text[:64]}` as a !!{tag.removeprefix(_TAG)}")
    return text if kind == "timestamp" else value


_SHORT_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


def is_timestamp(text: str) -> bool:
    """Whether go-yaml takes the text for a date, with or without a time of day."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day, *clock = (int(group) for group in match.groups(default="0"))
    hour, minute, second = clock[:3] if any(clock[:3]) else clock[3:]
    try:
        dt.datetime(year or 4, month, day, hour, minute, second)  # noqa: DTZ001 - only asks whether it exists
    except ValueError:
        return False
    return True


def key_text(key: object) -> str:
    """A mapping key as text for JSON. Raises UnreadableDocumentError for invalid keys of a JSON object."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int) and key <= _MAX_INT64:
        return str(key)
    if isinstance(key, float):
        return _float_key(key)
    kind = {type(None): "null", dict: "a mapping", list: "a list"}.get(type(key), "a number beyond 64 bits")
    raise UnreadableDocumentError(f"{kind} cannot be a key")


def _float_key(key: float) -> str:
    """Go's FormatFloat(key, 'g', -1, 32): the shortest digits for the same float32."""
    if math.isnan(key):
        return ".nan"
    try:
        (single,) = struct.unpack("f", struct.pack("f", key))
    except OverflowError:
        single = math.copysign(math.inf, key)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    digits = next(
        text for n in range(9) if struct.pack("f", float(text := f"{single:.{n}e}")) == struct.pack("f", single)
    )
    mantissa, exponent = digits.split("e")
    power = int(exponent)
    if -4 <= power < 6:
        places = len(mantissa.lstrip("-").replace(".", "")) - 1 - power
        return f"{float(digits):.{max(places, 0)}f}"
    return f"{mantissa}e{power:+03d}"
