"""Kubernetes quantities: the text forms, and the two roundings that the scheduler reads.

    <sign><digits>[.<digits>]<suffix>      suffix: n u m "" k M G T P E | Ki Mi Gi Ti Pi Ei | e<int> E<int>

Upstream keeps a number in 64 bits where it can and in arbitrary precision where it must; the two forms round
and overflow differently, so both are kept here.

Source: k8s.io/apimachinery pkg/api/resource quantity.go, amount.go, math.go, scale_int.go.
"""

import re
from functools import lru_cache

from msgspec import Struct

from webhook.core.api.types import MAX_INT64

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"

# Nothing is given back: to try each way to share digits between the groups took a second for 800 of them.
_TEXT = re.compile(r"([+-]?0*+([0-9]*+)(?:(\.)([0-9]*+))?)([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

_NANO = -9
_MILLI = -3
_HUNDRED_ZEROS = 10**100
# Decimal digits that always fit 64 bits with room for one more factor (upstream's maxInt64Factors).
_SAFE_DIGITS = 18
# Factors that upstream multiplies by in one step, which keeps the overflowed product; others end in 0.
_ONE_STEP = frozenset({1, 2, 3, 6, 9})
# Beyond this a number would have as many digits, and adding it up would take as long; upstream computes it and stalls.
_MAX_EXPONENT = 1_000
# Characters: room for a sum of numbers of 1,000 digits and exponents of 1,000, written out in nanos. Python refuses to
# read numbers of more than 4,300 digits, and takes quadratic time up to there.
_MAX_LENGTH = 2_100
# Longer texts are read anew each time, so that nobody fills the cache with them; people write under ten characters.
_CACHED_LENGTH = 32


class Quantity(Struct, frozen=True, gc=False):
    """``unscaled * 10**exponent``; ``wide`` marks upstream's arbitrary-precision form.

    Shape: not normalised, so that it overflows where upstream does: ``100E`` is 100 * 10**18, whose value is 0.
    Source: amount.go ``int64Amount``, ``infDecAmount``.
    """

    unscaled: int
    exponent: int = 0
    wide: bool = False

    @property
    def value(self) -> int:
        """The number, rounded up to an integer, as ``Quantity.Value`` gives it. Source: quantity.go ``Value``."""
        return _scaled(self, 0)

    @property
    def milli(self) -> int:
        """The number in thousandths, rounded up, as ``Quantity.MilliValue`` gives it. Unit: milli-CPU for cpu.

        Source: quantity.go ``MilliValue``.
        """
        return _scaled(self, _MILLI)

    @property
    def nanos(self) -> int:
        """The number in units of 10**-9, in full; one past 10**1000 counts as so many digits."""
        return self.unscaled * _ten(min(self.exponent, _MAX_EXPONENT) - _NANO)


def quantity_from_nanos(nanos: int) -> Quantity:
    """The quantity of a sum in nanos.

    Up to 18 significant digits use the 64-bit form, which overflows like upstream's. Longer numbers use the wide form.

    Args:
        nanos: Units of 10**-9, of any size.

    Source: k8s.io/apimachinery pkg/api/resource quantity.go ``Add``; amount.go ``int64Amount.Add``.
    """
    unscaled, exponent = nanos, _NANO
    while unscaled and unscaled % 10 == 0:
        step = 100 if unscaled % _HUNDRED_ZEROS == 0 else 1
        unscaled, exponent = unscaled // _ten(step), exponent + step
    if abs(unscaled) < _ten(_SAFE_DIGITS):
        return Quantity(unscaled, exponent)
    return Quantity(nanos, _NANO, wide=True)


def parse_quantity(written: str | float) -> Quantity:
    """Read a quantity from JSON: a string, or a bare number.

    Errors: ValueError with upstream's text.
    Source: quantity.go ``ParseQuantity``.
    """
    text = written if isinstance(written, str) else repr(written)
    return _parse(text) if len(text) <= _CACHED_LENGTH else _parse.__wrapped__(text)


@lru_cache(maxsize=1024)  # of up to 500 bytes: a quantity may say 1e9999
def _parse(text: str) -> Quantity:
    """Split the text, and choose between the two forms as upstream does. Source: quantity.go ``ParseQuantity``."""
    match = _TEXT.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(FORMAT_WRONG)
    number, digits, _, fraction, suffix = match.groups()
    digits, fraction = digits or "0", fraction or ""
    base, exponent = _interpret(suffix)
    # ``precision`` is how many more decimal digits would fit 64 bits; below 0 upstream takes the wide form.
    if base == 10:
        precision, scale, mantissa = _SAFE_DIGITS - len(digits) - len(fraction), exponent, 1
    elif fraction:
        precision, scale, mantissa = -1, 0, 1
    else:
        # 10 binary digits are about 3 decimal ones (upstream's own estimate).
        precision, scale, mantissa = 15 - len(digits) - int(exponent * 3 / 10) - 1, 0, 1 << exponent
    scale -= len(fraction)
    if precision >= 0 and scale >= _NANO:
        unscaled = int(digits + fraction) * mantissa
        return Quantity(-unscaled if number.startswith("-") else unscaled, scale)
    return _wide(number, fraction, base, exponent)


def _interpret(suffix: str) -> tuple[int, int]:
    """Base and exponent of a suffix. Source: suffix.go ``interpret``."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or not -MAX_INT64 - 1 <= int(match[1]) <= MAX_INT64:
        raise ValueError(SUFFIX_WRONG)
    # Upstream narrows the exponent to 32 bits.
    return 10, (int(match[1]) + 2**31) % 2**32 - 2**31


def _wide(number: str, fraction: str, base: int, exponent: int) -> Quantity:
    """The arbitrary-precision form: rounded away from zero to nanos; binary suffixes are capped at 2**63 - 1.

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
    return Quantity(-unscaled if number.startswith("-") else unscaled, scale, wide=True)


def _scaled(quantity: Quantity, exponent: int) -> int:
    """The number in units of ``10**exponent``, with upstream's rounding and overflow.

    Source: amount.go ``AsScaledInt64``.
    """
    shift = quantity.exponent - exponent
    if quantity.wide:
        return _scaled_wide(quantity.unscaled, shift)
    if shift < 0:  # away from zero; no 64-bit number has more than 19 digits
        magnitude = -(-abs(quantity.unscaled) // _ten(min(-shift, 19)))
        return -magnitude if quantity.unscaled < 0 else magnitude
    product = quantity.unscaled * _ten(min(shift, 19))
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
    if unscaled < MAX_INT64 and -shift < 19:
        # Upstream truncates towards zero here and then adds one, below zero too.
        narrow = int64(unscaled)
        quotient = abs(narrow) // divisor * (-1 if narrow < 0 else 1)
        return quotient + (1 if narrow % divisor else 0)
    return int64(-(-unscaled // divisor))


def int64(number: int) -> int:
    """The low 64 bits of a number, since Go's sums wrap around.

    Source: framework/types.go ``Resource``.
    """
    return (number + 2**63) % 2**64 - 2**63


def _ten(exponent: int) -> int:
    return int(10**exponent)
