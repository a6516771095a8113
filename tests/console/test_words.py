"""Numbers, ages and names as people read them."""

import pytest

from webhook.console.words import age, duration, instant, short_names, written
from webhook.core.scan.scan_results import Stranded


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (8.9, "8 s"),
        (60, "1 min"),
        (43 * 60, "43 min"),
        (3600, "1 h"),
        (3 * 3600 + 5 * 60, "3 h 5 min"),
        (86400, "1 d"),
        (2 * 86400 + 4 * 3600 + 59 * 60, "2 d 4 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds, text):
    assert duration(seconds) == text


def test_an_age_counts_to_the_moment_that_is_shown():
    moment = instant("2026-11-20T09:00:00Z")
    assert age("2026-11-20T08:17:00Z", moment) == "43 min"
    assert age("2026-11-20T10:17:00+02:00", moment) == "43 min"
    assert age("2026-11-20T08:17:00", moment) == "43 min"
    assert (age("", moment), age("yesterday", moment), age("2026-11-20T08:17:00Z", None)) == ("", "", "")


def test_a_moment_is_written_in_utc():
    assert written(instant("2026-11-20T10:05:00+01:00")) == "20 Nov 2026 09:05 UTC"
    assert written(None) == ""


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ("eu-central-1a eu-central-1b", "a b"),
        ("zone-1 zone-10 zone-2", "1 10 2"),
        ("rack1 rack2", "1 2"),
        ("alpha alps", "alpha alps"),
        ("eu us", "eu us"),
        ("a ab", "a ab"),
        ("eu-central-1a", "eu-central-1a"),
        ("europe-west1-b europe-west1-c", "b c"),
        ("x.1 x.2", "1 2"),
        ("", ""),
    ],
)
def test_names_lose_what_all_of_them_begin_with(names, short):
    assert [*short_names(names.split()).values()] == short.split()


@pytest.mark.parametrize(
    ("fewest", "most", "text"),
    [
        (0, 0, "0"),
        (3, 3, "3"),
        (2, 5, "2 to 5"),
        (None, 5, "0 to 5"),
        (2, None, "2 or more"),
        (None, None, "not known"),
    ],
)
def test_how_many_pods_stay_pending(fewest, most, text):
    assert Stranded(fewest, most).text("not known") == text
