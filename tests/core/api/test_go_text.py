import pytest

from webhook.core.api.go_text import json_text, quote, time_fault


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("plain", '"plain"', id="plain"),
        pytest.param('a"b\\c', '"a\\"b\\\\c"', id="quotes and backslashes"),
        pytest.param("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"', id="escapes with a letter"),
        pytest.param("\x00\x7f", '"\\x00\\x7f"', id="other control characters"),
        pytest.param("\u00e9\U0001f600", '"\u00e9\U0001f600"', id="printable characters stay"),
        pytest.param("\u200b\u2028", '"\\u200b\\u2028"', id="unprintable ones do not"),
        pytest.param("\U000e0001", '"\\U000e0001"', id="beyond 16 bits"),
        pytest.param("\u00a0", '"\\u00a0"', id="a space that is not the space"),
    ],
)
def test_text_in_gos_quotes(text, quoted):
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("plain", '"plain"', id="text"),
        pytest.param('a"b\\c\n', '"a\\"b\\\\c\\n"', id="escapes"),
        pytest.param("<&>", '"\\u003c\\u0026\\u003e"', id="HTML"),
        pytest.param("\u2028\u00e9\u0001", '"\\u2028\u00e9\\u0001"', id="separators and control characters"),
        pytest.param(5, "5", id="a number"),
        pytest.param(["a", "b"], '["a","b"]', id="a list"),
        pytest.param(None, "null", id="null"),
    ],
)
def test_values_as_gos_json(value, text):
    assert json_text(value) == text


LAYOUT = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("2026-02-28T23:59:59Z", None, id="UTC"),
        pytest.param("2024-02-29T00:00:00.123456+01:00", None, id="a leap day, a fraction and an offset"),
        pytest.param("2026-01-01T5:00:00Z", None, id="an hour of one digit"),
        pytest.param("", f'parsing time "" as {LAYOUT}: cannot parse "" as "2006"', id="empty"),
        pytest.param(
            "2026-01-01", f'parsing time "2026-01-01" as {LAYOUT}: cannot parse "" as "T"', id="a date without a time"
        ),
        pytest.param(
            '\u00e9\n"\\\x7f',
            f'parsing time "\\xc3\\xa9\\x0a\\"\\\\\x7f" as {LAYOUT}: cannot parse '
            '"\\xc3\\xa9\\x0a\\"\\\\\x7f" as "2006"',
            id="quotes of its own",
        ),
        pytest.param("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range', id="month"),
        pytest.param("2026-02-29T00:00:00Z", 'parsing time "2026-02-29T00:00:00Z": day out of range', id="day"),
        pytest.param("2026-01-01T24:00:00Z", 'parsing time "2026-01-01T24:00:00Z": hour out of range', id="hour"),
        pytest.param("2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"', id="more"),
        pytest.param(
            "2026-01-01T00:00:00",
            f'parsing time "2026-01-01T00:00:00" as {LAYOUT}: cannot parse "" as "Z07:00"',
            id="no zone",
        ),
    ],
)
def test_what_go_says_against_a_time(text, fault):
    assert time_fault(text) == fault
