"""Kubernetes quantities: their text forms, and the scheduler's two roundings.

    <sign><digits>[.<digits>]<suffix>      suffix: n u m "" k M G T P E | Ki Mi Gi Ti Pi Ei | e<int> E<int>

Upstream uses 64 bits for small numbers and arbitrary precision for the rest. The two forms round and overflow
differently, so this module has both.

Source: k8s.io/apimachinery pkg/api/resource quantity.go, amount.go, math.go, scale_int.go.
"""

import re
from functools import lru_cache

from msgspec import Struct

from webhook.core.api.types import INT64_DIGITS, MAX_INT64

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"

# Possessive quantifiers prevent backtracking, which took a second for 800 digits.
_TEXT = re.compile(r"([+-]?0*+([0-9]*+)(?:(\.)([0-9]*+))?)([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

_NANO = -9
_MILLI = -3
_HUNDRED_ZEROS = 10**100
# Decimal digits that fit into 64 bits with room for one more factor (upstream's maxInt64Factors).
_SAFE_DIGITS = 18
# Exponents of 10 in a single multiplication upstream, which keeps the overflowed product. All others end in 0.
_ONE_STEP = frozenset({1, 2, 3, 6, 9})
# The largest exponent. A number has about as many digits, and sums take as long. Upstream computes it and stalls.
_MAX_EXPONENT = 1_000
# In characters: room for sums of numbers with 1,000 digits and exponents of 1,000, written in nanos. Python rejects
# integers of more than 4,300 digits, and its parsing time is quadratic.
_MAX_LENGTH = 2_100
# In characters. Longer texts bypass the cache, so that no user can fill it. People write under ten characters.
_CACHED_LENGTH = 32


class _Quantity(Struct, frozen=True, gc=False):
    """A number ``unscaled * 10**exponent``, not normalised.

    Without normalisation it overflows like upstream's: ``100E`` is 100 * 10**18, and its value is 0.

    Attributes:
        wide: True for upstream's arbitrary-precision form.

    Source: amount.go ``int64Amount``, ``infDecAmount``.
    """

    unscaled: int
    exponent: int = 0
    wide: bool = False

    @property
    def value(self) -> int:
        """The number rounded up to an integer. Source: quantity.go ``Value``."""
        return _scaled(self, 0)

    @property
    def milli(self) -> int:
        """The number in thousandths, rounded up: milli-CPU for cpu. Source: quantity.go ``MilliValue``."""
        return _scaled(self, _MILLI)

    @property
    def nanos(self) -> int:
        """The exact number in units of 10**-9, with exponents capped at 1000."""
        return self.unscaled * _ten(min(self.exponent, _MAX_EXPONENT) - _NANO)


def quantity_from_nanos(nanos: int) -> _Quantity:
    """Convert a sum in nanos (10**-9), of any size, to a quantity.

    Up to 18 significant digits use the 64-bit form, which overflows like upstream's. Longer numbers use the wide form.

    Source: k8s.io/apimachinery pkg/api/resource quantity.go ``Add``; amount.go ``int64Amount.Add``.
    """
    unscaled, exponent = nanos, _NANO
    while unscaled and unscaled % 10 == 0:
        step = 100 if unscaled % _HUNDRED_ZEROS == 0 else 1
        unscaled, exponent = unscaled // _ten(step), exponent + step
    if abs(unscaled) < _ten(_SAFE_DIGITS):
        return _Quantity(unscaled, exponent)
    return _Quantity(nanos, _NANO, wide=True)


def parse_quantity(written: str | float) -> _Quantity:
    """Read a quantity from JSON: a string or a bare number.

        >>> parse_quantity("1500m").value
        2

    Raises:
        ValueError: With upstream's text.

    Source: quantity.go ``ParseQuantity``.
    """
    text = written if isinstance(written, str) else repr(written)
    return _parse(text) if len(text) <= _CACHED_LENGTH else _parse.__wrapped__(text)


@lru_cache(maxsize=1024)  # Entries take up to 500 bytes, for a quantity like 1e9999.
def _parse(text: str) -> _Quantity:
    """Parse a quantity in 64 bits if upstream does, else with arbitrary precision.

    Source: quantity.go ``ParseQuantity``.
    """
    match = _TEXT.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(FORMAT_WRONG)
    number, digits, _, fraction, suffix = match.groups()
    digits, fraction = digits or "0", fraction or ""
    base, exponent = _interpret(suffix)
    # ``precision`` is the number of further decimal digits within 64 bits. Below 0, upstream uses the wide form.
    if base == 10:
        precision, scale, mantissa = _SAFE_DIGITS - len(digits) - len(fraction), exponent, 1
    elif fraction:
        precision, scale, mantissa = -1, 0, 1
    else:
        # Upstream starts from 15 digits, and estimates 3 decimal digits for 10 binary ones.
        precision, scale, mantissa = 15 - len(digits) - int(exponent * 3 / 10) - 1, 0, 1 << exponent
    scale -= len(fraction)
    if precision >= 0 and scale >= _NANO:
        unscaled = int(digits + fraction) * mantissa
        return _Quantity(-unscaled if number.startswith("-") else unscaled, scale)
    return _wide(number, fraction, base, exponent)


def _interpret(suffix: str) -> tuple[int, int]:
    """Return base and exponent of a suffix. Source: suffix.go ``interpret``."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or not -MAX_INT64 - 1 <= int(match[1]) <= MAX_INT64:
        raise ValueError(SUFFIX_WRONG)
    # Upstream narrows the exponent to 32 bits.
    return 10, (int(match[1]) + 2**31) % 2**32 - 2**31


def _wide(number: str, fraction: str, base: int, exponent: int) -> _Quantity:
    """Build the arbitrary-precision form, rounded away from zero to nanos.

    Binary suffixes are capped at 2**63 - 1.

    Source: quantity.go ``ParseQuantity``.
    """
    digits = number.lstrip("+-").replace(".", "")
    if not digits:
        raise ValueError(NUMERIC_WRONG)
    unscaled, scale = int(digits), -len(fraction)
    if base == 2:
        unscaled <<= exponent
    else:
        scale += max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    if unscaled:
        shift = scale - _NANO
        unscaled = unscaled * _ten(shift) if shift >= 0 else -(-unscaled // _ten(-shift))
        scale = _NANO
    if base == 2 and unscaled > MAX_INT64 * _ten(-scale):
        unscaled, scale = MAX_INT64, 0
    return _Quantity(-unscaled if number.startswith("-") else unscaled, scale, wide=True)


def _scaled(quantity: _Quantity, exponent: int) -> int:
    """Scale to ``10**exponent`` with upstream's rounding and overflow. Source: amount.go ``AsScaledInt64``."""
    shift = quantity.exponent - exponent
    if quantity.wide:
        return _scaled_wide(quantity.unscaled, shift)
    if shift < 0:  # rounds away from zero
        magnitude = -(-abs(quantity.unscaled) // _ten(min(-shift, INT64_DIGITS)))
        return -magnitude if quantity.unscaled < 0 else magnitude
    product = quantity.unscaled * _ten(min(shift, INT64_DIGITS))
    if -MAX_INT64 - 1 <= product <= MAX_INT64:
        return product
    return int64(product) if shift in _ONE_STEP else 0


def _scaled_wide(unscaled: int, shift: int) -> int:
    """Source: scale_int.go ``scaledValue``."""
    if shift == 0:
        return int64(unscaled)
    if shift > 0:
        return int64(int64(unscaled) * _ten(shift))
    divisor = _ten(-shift)
    if unscaled < MAX_INT64 and -shift < INT64_DIGITS:
        # Upstream truncates towards zero and then adds one, even for negative numbers.
        narrow = int64(unscaled)
        quotient = abs(narrow) // divisor * (-1 if narrow < 0 else 1)
        return quotient + (1 if narrow % divisor else 0)
    return int64(-(-unscaled // divisor))


def int64(number: int) -> int:
    """Keep the low 64 bits of a number, like Go's sums. Source: framework/types.go ``Resource``."""
    return (number + 2**63) % 2**64 - 2**63


def _ten(exponent: int) -> int:
    return int(10**exponent)
