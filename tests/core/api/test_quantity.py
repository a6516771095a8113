import time

import pytest

from webhook.core.api.quantity import FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG, parse_quantity, quantity_from_nanos


@pytest.mark.parametrize(
    ("written", "value", "milli"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("100m", 1, 100, id="a tenth of a CPU rounds up to a whole one"),
        pytest.param("1500m", 2, 1500, id="milli"),
        pytest.param("1001u", 1, 2, id="micro rounds up to milli"),
        pytest.param("1n", 1, 1, id="nano rounds up to milli"),
        pytest.param("2", 2, 2000, id="no suffix"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="a binary suffix with a fraction"),
        pytest.param("128Mi", 134217728, 134217728000, id="a binary suffix"),
        pytest.param("0.1Ki", 103, 102400, id="a binary suffix rounds up"),
        pytest.param("1k", 1000, 1000000, id="a decimal suffix"),
        pytest.param("1e3", 1000, 1000000, id="a decimal exponent"),
        pytest.param("12E-1", 2, 1200, id="a negative exponent"),
        pytest.param("1E", 10**18, 0, id="E is exa when nothing follows; milli does not fit 64 bits"),
        pytest.param(".5", 1, 500, id="no digit before the point"),
        pytest.param("5.", 5, 5000, id="no digit after the point"),
        pytest.param("+3", 3, 3000, id="a plus sign"),
        pytest.param("+", 0, 0, id="a sign alone is zero"),
        pytest.param("-1500m", -2, -1500, id="negative rounds away from zero"),
        pytest.param("-0.0000000000001", 1, 1, id="a tiny negative number becomes one"),
        pytest.param("0.0000000000001", 1, 1, id="less than a nano is a nano"),
        pytest.param("0.00000000000000000000", 0, 0, id="zero in arbitrary precision"),
        pytest.param("1" * 900, 8198552921648689607, 8198552921648689496, id="many digits"),
        pytest.param("00001", 1, 1000, id="leading zeros"),
        pytest.param("100E", 0, 0, id="past 64 bits the value is 0"),
        pytest.param("9300000000G", -9146744073709551616, 0, id="past 64 bits in one step the product wraps"),
        pytest.param("9223372036854775807Ki", 2**63 - 1, -1000, id="binary suffixes are capped at 64 bits"),
        pytest.param("123456789012345678901", -5670419503621182411, -7269072992350064888, id="wide numbers wrap"),
        pytest.param("1e4294967299", 1000, 1000000, id="exponents are narrowed to 32 bits"),
        pytest.param("1e-2147483648", 1, 1, id="a number too small for any digit"),
        pytest.param(2, 2, 2000, id="a JSON number"),
        pytest.param(0.5, 1, 500, id="a JSON number with a fraction"),
        pytest.param(1e22, 0, 0, id="a large JSON number"),
    ],
)
def test_a_quantity_is_rounded_up(written, value, milli):
    quantity = parse_quantity(written)
    assert (quantity.value, quantity.milli) == (value, milli)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param("", FORMAT_WRONG, id="nothing"),
        pytest.param("ten", FORMAT_WRONG, id="a word"),
        pytest.param("1" * 2101, FORMAT_WRONG, id="too many digits, in upstream's words though it would take them"),
        pytest.param("1 Gi", FORMAT_WRONG, id="a space"),
        pytest.param("1_000", FORMAT_WRONG, id="an underscore, which Python would take"),
        pytest.param("\u0661", FORMAT_WRONG, id="a digit of another script"),
        pytest.param("1.2.3", FORMAT_WRONG, id="two points"),
        pytest.param("1mi", SUFFIX_WRONG, id="an unknown suffix"),
        pytest.param("1e", SUFFIX_WRONG, id="an exponent without digits"),
        pytest.param("1e9223372036854775808", SUFFIX_WRONG, id="an exponent past 64 bits"),
        pytest.param(".e-12", NUMERIC_WRONG, id="no digits, in arbitrary precision"),
    ],
)
def test_a_text_that_is_no_quantity_is_refused_in_upstreams_words(written, text):
    with pytest.raises(ValueError) as caught:
        parse_quantity(written)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("written", "digits"),
    [
        pytest.param("1e999999999", 1010, id="a thousand million digits"),
        pytest.param("1e2147483647", 1010, id="the largest exponent"),
        pytest.param("9" * 900 + "e2147483647", 1909, id="in the wide form"),
        pytest.param("1e-2147483648", 1, id="the smallest"),
        pytest.param("1E", 28, id="what people write, in full"),
    ],
)
def test_no_number_has_more_digits_than_can_be_added_up(written, digits):
    """A template of a custom resource is checked by nobody before it comes here."""
    assert len(str(parse_quantity(written).nanos)) == digits


@pytest.mark.parametrize("written", ["0" * 900 + "x", "1" * 900 + "x", "0." + "0" * 900 + "x", "1k" + "0" * 900 + "x"])
def test_a_long_text_that_is_none_is_refused_at_once(written):
    """Of 800 zeros and a letter each way to share the digits between parts of the expression was tried: 1.3 s."""
    began = time.process_time()
    with pytest.raises(ValueError):
        parse_quantity(written)
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    ("nanos", "value", "milli"),
    [
        pytest.param(1_500_000_000, 2, 1500, id="rounded up"),
        pytest.param(-1_500_000_000, -2, -1500, id="away from zero"),
        pytest.param(10**28, 0, 0, id="ten 10**18 overflow to 0"),
        pytest.param(10**1008, 0, 0, id="10**999 overflows to 0"),
        pytest.param(10**1008 + 10**6, 1, 1, id="10**999 and a thousandth: the low 64 bits, rounded up"),
        pytest.param((10**999 - 1) * 10**9, -1, -1000, id="999 digits: the low 64 bits"),
        pytest.param(-(10**1008) - 10**9, -1, -1000, id="below zero"),
        pytest.param(0, 0, 0, id="nothing"),
    ],
)
def test_a_sum_of_any_size_is_rounded_and_overflows_as_upstreams(nanos, value, milli):
    assert (quantity_from_nanos(nanos).value, quantity_from_nanos(nanos).milli) == (value, milli)
