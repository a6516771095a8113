"""A limit of processor time: who it stops, and whom not."""

import threading
import time

import pytest

from webhook.core.time_limit import OutOfTimeError, check_time, time_limit


def run_for(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        check_time()


def test_without_a_limit():
    run_for(0.01)


def test_a_limit_that_passes():
    with pytest.raises(OutOfTimeError), time_limit(0.001):
        run_for(0.1)
    run_for(0.01)


def test_waiting_takes_no_processor_time():
    with time_limit(0.01):
        time.sleep(0.03)
        check_time()


def test_a_limit_within_another():
    with time_limit(0.001):
        with time_limit(10):
            run_for(0.01)
        with pytest.raises(OutOfTimeError):
            check_time()


def test_the_limit_of_another_thread():
    ended = []
    with time_limit(0):
        thread = threading.Thread(target=lambda: ended.append(run_for(0.01)))
        thread.start()
        thread.join()
    assert ended == [None]


def test_no_rule_takes_it_for_a_failure():
    assert not issubclass(OutOfTimeError, Exception)
