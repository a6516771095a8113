"""Many pods at once, and the webhook killed under them."""

import os
import signal
import time

import pytest
from e2e.load import create_pods
from e2e.objects import path, pod
from e2e.registration import TIMEOUT, registered
from e2e.waiting import eventually

CONCURRENCY = 10


def created(plane, namespace):
    return plane.api.send("POST", path("Pod", namespace), pod("web", schedulerName="none"))


def test_200_pods_at_concurrency_10_are_created_without_an_error(plane, namespace, denying):
    before = denying.reviews("mutate"), denying.reviews("validate")
    with registered(plane, namespace, denying.server):
        made = create_pods(plane, namespace, 200, CONCURRENCY)
    reviews = denying.reviews("mutate") - before[0], denying.reviews("validate") - before[1]

    assert [each.answer.message for each in made if each.answer.status != 201] == []
    assert reviews >= (200, 200)


def test_a_killed_worker_loses_the_calls_in_flight_and_no_more(plane, namespace, passing):
    def kill_worker():
        os.kill(passing.workers()[0], signal.SIGKILL)

    with registered(plane, namespace, passing.server):
        made = create_pods(plane, namespace, 200, CONCURRENCY, meanwhile=kill_worker)

    failed = [each.answer for each in made if each.answer.status != 201]
    assert {answer.status for answer in failed} <= {500}
    assert len(failed) <= CONCURRENCY
    assert passing.process.poll() is None


def test_killed_and_started_again_under_load_no_pod_is_refused(plane, namespace, passing):
    lives = [passing]

    def kill_and_start():
        passing.kill()
        time.sleep(0.3)
        lives.append(passing.again())

    try:
        with registered(plane, namespace, passing.server, policy="Ignore"):
            made = create_pods(plane, namespace, 200, CONCURRENCY, meanwhile=kill_and_start)
            plane.api.request("POST", path("Pod", namespace), pod("after", schedulerName="none"))
            reviewed = lives[-1].reviews("validate")
    finally:
        lives[-1].kill()

    assert [each.answer.message for each in made if each.answer.status != 201] == []
    assert reviewed >= 1


@pytest.mark.parametrize(
    ("signalled", "within"),
    [pytest.param(signal.SIGSTOP, 2 * TIMEOUT + 1, id="stands still"), pytest.param(signal.SIGKILL, 1, id="is dead")],
)
def test_pods_are_created_while_the_webhook(plane, namespace, passing, signalled, within):
    with registered(plane, namespace, passing.server, policy="Ignore"):
        for pid in [passing.process.pid, *passing.workers()]:
            os.kill(pid, signalled)
        began = time.monotonic()
        answer = created(plane, namespace)
        took = time.monotonic() - began

    assert (answer.status, took < within) == (201, True)


def test_a_webhook_that_stood_still_goes_on(plane, namespace, passing):
    pids = [passing.process.pid, *passing.workers()]
    with registered(plane, namespace, passing.server):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        refused = created(plane, namespace)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        eventually(
            lambda: plane.api.send("POST", path("Pod", namespace), pod("web", schedulerName="none")).status == 201
        )

    assert (refused.status, refused.message.endswith("context deadline exceeded")) == (500, True)
