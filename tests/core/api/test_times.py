"""Times as the API writes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from webhook.core.api.times import api_time, micro_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1970-01-01T00:00:00Z"), (1.9999999, "1970-01-01T00:00:01Z"), (1795953600.5, "2026-11-29T12:00:00Z")],
)
def test_a_time_has_no_fraction(seconds, text):
    assert api_time(seconds) == text


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2))])
def test_a_micro_time_always_has_a_fraction_and_is_in_utc(zone):
    moment = datetime(2026, 11, 29, 12, tzinfo=UTC).astimezone(zone)
    assert micro_time(moment) == "2026-11-29T12:00:00.000000Z"
