"""A webhook that is gone, mute or mad, registered with Ignore: the API server goes on working."""

import json
import time

import pytest
from e2e.controlplane.authority import Authority
from e2e.double import answering, http, review, uid
from e2e.objects import path, pod
from e2e.registration import TIMEOUT, registered

AT_ONCE = 1.0
NOBODY = "https://127.0.0.1:1"
TIMED_OUT = 2 * TIMEOUT + 1.0  # both routes, one after the other


@pytest.mark.parametrize(
    ("answer", "within"),
    [
        pytest.param(lambda _: None, TIMED_OUT, id="hangs"),
        pytest.param(lambda _: http(b"<html>not found</html>"), AT_ONCE, id="answers a page"),
        pytest.param(lambda _: b"\x00\xff\x00garbage\r\n\r\n", AT_ONCE, id="answers no HTTP"),
        pytest.param(lambda _: http(b""), AT_ONCE, id="answers nothing"),
        pytest.param(lambda _: http(b"{}", "500 Internal Server Error"), AT_ONCE, id="answers 500"),
        pytest.param(lambda _: http(b"{}", "404 Not Found"), AT_ONCE, id="answers 404"),
        pytest.param(lambda _: http(b"{}", "429 Too Many Requests"), AT_ONCE, id="answers 429"),
        pytest.param(lambda _: review(None), AT_ONCE, id="answers a review without a response"),
        pytest.param(lambda _: review({"uid": "nope", "allowed": False}), AT_ONCE, id="answers for another uid"),
        pytest.param(
            lambda body: review({"uid": uid(body), "allowed": False}, "admission.k8s.io/v1beta1"),
            AT_ONCE,
            id="answers an older version",
        ),
    ],
)
def test_pods_are_created_when_the_webhook(plane, namespace, tmp_path, answer, within):
    calls = []

    def counted(body):
        calls.append(body)
        return answer(body)

    with answering(tmp_path, counted) as server, registered(plane, namespace, server, policy="Ignore"):
        began = time.monotonic()
        created = plane.api.send("POST", path("Pod", namespace), pod("web", schedulerName="none"))
        took = time.monotonic() - began

    assert (created.status, created.warnings, took < within) == (201, (), True)
    assert {json.loads(body)["request"]["name"] for body in calls} == {"web"}


@pytest.mark.parametrize(
    ("changed", "within"),
    [
        pytest.param(lambda server: server._replace(url=NOBODY), AT_ONCE, id="is refused"),
        pytest.param(
            lambda server: server._replace(authority=Authority().pem), AT_ONCE, id="has another authority's certificate"
        ),
        pytest.param(lambda server: server, TIMED_OUT, id="never shakes hands"),
    ],
)
def test_pods_are_created_when_the_connection(plane, namespace, tmp_path, changed, within):
    calls = []
    mute = within == TIMED_OUT

    with (
        answering(tmp_path, calls.append, names=() if mute else ("127.0.0.1",)) as server,
        registered(plane, namespace, changed(server), policy="Ignore"),
    ):
        began = time.monotonic()
        created = plane.api.send("POST", path("Pod", namespace), pod("web", schedulerName="none"))
        took = time.monotonic() - began

    assert (created.status, created.warnings, took < within, calls) == (201, (), True, [])
