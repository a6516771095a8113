"""Many pods at once, and the webhook killed under them."""

import contextlib
import os
import signal
import socket
import ssl
import time

import pytest
from e2e.controlplane.authority import Authority
from e2e.load import creating_pods, refusals
from e2e.objects import path, pod
from e2e.registration import TIMEOUT, registered
from e2e.waiting import eventually

CONCURRENCY = 10


def created(plane, namespace):
    return plane.api.send("POST", path("Pod", namespace), pod("web", schedulerName="none"))


def test_200_pods_at_concurrency_10_are_created_without_an_error(plane, namespace, denying):
    before = denying.reviews("mutate"), denying.reviews("validate")
    with (
        registered(plane, namespace, denying.server),
        creating_pods(plane, namespace, count=200, concurrency=CONCURRENCY) as answers,
    ):
        pass
    reviews = denying.reviews("mutate") - before[0], denying.reviews("validate") - before[1]

    assert (len(answers), refusals(answers)) == (200, [])
    assert reviews >= (200, 200)


def test_a_killed_worker_loses_the_calls_on_its_connections_and_no_more(plane, namespace, passing):
    """A connection loses one call: in flight at the kill, or written before the API server has seen the close.

    Each of the CONCURRENCY creations holds one connection at a time; the pool has at most as many idle ones again.
    """
    with (
        registered(plane, namespace, passing.server),
        creating_pods(plane, namespace, concurrency=CONCURRENCY) as answers,
    ):
        eventually(lambda: len(answers) > 50)
        (killed,) = passing.workers()
        os.kill(killed, signal.SIGKILL)
        until = len(answers) + 150
        eventually(lambda: len(answers) > until)

    lost = [answer for answer in answers if answer.status != 201]
    assert {answer.status for answer in lost} <= {500}
    assert len(lost) <= 2 * CONCURRENCY, refusals(answers)
    assert refusals(answers[-100:]) == []
    assert (passing.process.poll(), passing.workers() == [killed]) == (None, False)


def test_killed_and_started_again_under_load_no_pod_is_refused(plane, namespace, passing):
    with (
        registered(plane, namespace, passing.server, policy="Ignore"),
        creating_pods(plane, namespace, concurrency=CONCURRENCY) as answers,
    ):
        eventually(lambda: len(answers) > 50)
        passing.kill()
        until = len(answers) + 50
        eventually(lambda: len(answers) > until)
        second = passing.again()
        try:
            eventually(lambda: second.reviews("validate") > 50)
        finally:
            second.kill()

    assert refusals(answers) == []


def standing_still(webhook):
    for pid in [webhook.process.pid, *webhook.workers()]:
        os.kill(pid, signal.SIGSTOP)
    return webhook.server


def dead(webhook):
    webhook.kill()
    return webhook.server


def distrusted(webhook):
    return webhook.server._replace(authority=Authority().pem)


@pytest.mark.parametrize(
    ("fault", "within"),
    [
        pytest.param(standing_still, 2 * TIMEOUT + 1, id="stands still"),
        pytest.param(dead, 1, id="is dead"),
        pytest.param(distrusted, 1, id="has a certificate that nobody trusts"),
    ],
)
def test_pods_are_created_while_the_webhook(plane, namespace, passing, fault, within):
    with registered(plane, namespace, fault(passing), policy="Ignore"):
        began = time.monotonic()
        answer = created(plane, namespace)
        took = time.monotonic() - began

    assert (answer.status, took < within) == (201, True)


def test_a_webhook_that_stood_still_goes_on(plane, namespace, passing):
    with registered(plane, namespace, standing_still(passing)):
        refused = created(plane, namespace)
        for pid in [passing.process.pid, *passing.workers()]:
            os.kill(pid, signal.SIGCONT)
        eventually(lambda: created(plane, namespace).status == 201)

    assert (refused.status, refused.message.endswith("context deadline exceeded")) == (500, True)


def served_certificate(webhook):
    return ssl.get_server_certificate((webhook.address, webhook.port))


def test_a_certificate_is_replaced_under_load_without_a_refusal(plane, namespace, passing):
    """For a second the key belongs to another certificate than the one beside it."""
    first = served_certificate(passing)
    certificate, key = plane.authority.issue("webhook", names=(passing.address,))
    with registered(plane, namespace, passing.server), creating_pods(plane, namespace) as answers:
        (passing.folder / "tls.key").write_bytes(key)
        time.sleep(1)
        assert served_certificate(passing) == first
        (passing.folder / "tls.crt").write_bytes(certificate)
        eventually(lambda: served_certificate(passing) == certificate.decode(), 3)
        until = len(answers) + 50
        eventually(lambda: len(answers) > until)

    assert refusals(answers) == []


def test_500_silent_connections_hold_up_no_pod(plane, namespace, passing):
    """The API server's own client opens connections that it never uses."""
    with contextlib.ExitStack() as silent, registered(plane, namespace, passing.server):
        for _ in range(500):
            silent.enter_context(socket.create_connection((passing.address, passing.port), 5))
        with creating_pods(plane, namespace, count=50) as answers:
            pass

    assert (len(answers), refusals(answers)) == (50, [])
