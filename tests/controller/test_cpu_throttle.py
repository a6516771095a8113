"""A share of one core, on a test clock and on the real clocks of threads."""

import threading
import time

import pytest

from webhook.controller.bounds import CpuThrottle


class Clocks:
    def __init__(self, share):
        self.processor = 0.0
        self.rested = []
        self.share = CpuThrottle(share, self.rested.append, lambda: self.processor)

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
    assert clocks.rested == pytest.approx([0.01, 0.01])


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


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def works(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_each_thread_has_a_processor_clock_of_its_own():
    """The scan's thread begins at 0 on its clock; the thread that made the share may be minutes ahead."""
    works(0.1)
    share, readings = CpuThrottle(1.0, lambda _: None), []

    def scans():
        share.rest()
        for _ in range(5):
            works(0.01)
            share.rest()
            readings.append(share.used)

    for _ in range(2):  # the second thread may get the identifier of the first
        in_a_thread(scans)
        works(0.05)  # in this thread, which is not the one that shares
    assert readings == sorted(readings)
    assert 0.1 <= share.used < 0.15


def test_a_thread_of_its_own_rests_from_the_beginning():
    works(0.1)
    rested = []
    share = CpuThrottle(0.5, rested.append)

    def scans():
        share.rest()
        works(0.02)
        share.rest()

    in_a_thread(scans)
    assert sum(rested) >= 0.02
