"""A share of one core, on clocks of our own."""

import pytest

from webhook.controller.share import Share


class Clocks:
    def __init__(self, share):
        self.processor = 0.0
        self.rested = []
        self.share = Share(share, self.rested.append, lambda: self.processor)

    def works(self, seconds):
        self.processor += seconds
        self.share.rest()


@pytest.mark.parametrize(("share", "rest"), [(0.25, 3.0), (0.5, 1.0), (1.0, 0.0)])
def test_work_is_followed_by_rest_in_proportion(share, rest):
    clocks = Clocks(share)
    for _ in range(10):
        clocks.works(0.1)
    assert sum(clocks.rested) == pytest.approx(rest)
    assert clocks.share.used == pytest.approx(1.0)


def test_short_rests_are_put_together():
    clocks = Clocks(0.5)
    for _ in range(25):
        clocks.works(0.001)
    assert [round(seconds, 3) for seconds in clocks.rested] == [0.01, 0.01] or len(clocks.rested) == 2


def test_no_rest_is_longer_than_somebody_would_wait_for_its_end():
    clocks = Clocks(0.01)
    clocks.works(10)
    assert clocks.rested == [5.0]


def test_what_was_too_long_a_rest_is_owed():
    clocks = Clocks(0.5)
    clocks.works(12)
    for _ in range(3):
        clocks.works(0)
    assert clocks.rested == [5.0, 5.0, 2.0]
