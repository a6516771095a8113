"""A time limit: who it stops, and whom not."""

import threading

import pytest

from webhook.core.budget import OutOfTimeError, check_time, time_limit


def over():
    return True


def test_without_a_limit():
    check_time()


def test_a_limit_that_passes():
    ticks = iter([False, True])
    with time_limit(lambda: next(ticks)):
        check_time()
        with pytest.raises(OutOfTimeError):
            check_time()
    check_time()


def test_a_limit_within_another():
    with time_limit(over):
        with time_limit(lambda: False):
            check_time()
        with pytest.raises(OutOfTimeError):
            check_time()


def test_the_limit_of_another_thread():
    ended = []
    with time_limit(over):
        thread = threading.Thread(target=lambda: ended.append(check_time()))
        thread.start()
        thread.join()
    assert ended == [None]


def test_no_rule_takes_it_for_a_failure():
    assert not issubclass(OutOfTimeError, Exception)
