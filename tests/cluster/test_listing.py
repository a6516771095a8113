"""Lists that are read once, against what an API server can answer."""

import json

import pytest
from cluster.api import FakeApi, cut, html, refuse, short_body
from cluster.following import RESOURCES, server

from webhook.cluster.errors import ClusterError
from webhook.cluster.listing import list_objects
from webhook.cluster.resources import Resource

ROLLOUTS = Resource(kind="Rollout", name="", api_versions=("argoproj.io/v1alpha1",), required=False)


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        for number in range(250):
            api.put("pods", f"web-{number:03}", "shop")
        yield api


def listed(api, folder, resource="pods", **more):
    """The names that are listed, and the seconds that were waited for them."""
    waits = []
    resource = RESOURCES[resource] if isinstance(resource, str) else resource

    def keep(raw, of):
        return f"{of.api_version} {of.kind} {json.loads(bytes(raw))['metadata']['name']}"

    found = list_objects(server(api, folder), resource, keep, sleep=waits.append, **more)
    return found, waits


ALL = tuple(f"v1 Pod web-{number:03}" for number in range(250))


def test_pages_of_a_hundred_are_counted(api, tmp_path):
    counted = []
    found, waits = listed(api, tmp_path, progress=counted.append)

    assert (found.values, found.refused, waits, counted) == (ALL, "", [], [100, 100, 50])
    assert [request.query["limit"] for request in api.requests] == ["100"] * 3
    assert {request.what for request in api.requests} == {"list", "page"}


@pytest.mark.parametrize(
    ("fault", "waits", "pages"),
    [
        pytest.param(("page", refuse(410, "expired")), [0.5], ["100", "100", "500"], id="an expired token"),
        pytest.param(("page", refuse(400, "no token")), [0.5], ["100"] * 5, id="a token that it lost"),
        pytest.param(("page", refuse(429, Retry_After="7")), [7.0], ["100"] * 4, id="too many requests"),
        pytest.param(("list", refuse(429, Retry_After="900")), [30.0], ["100"] * 4, id="asked to wait for ever"),
        pytest.param(("list", refuse(503)), [0.5], ["100"] * 4, id="overloaded"),
        pytest.param(("page", cut), [0.5], ["100"] * 4, id="a connection that breaks"),
        pytest.param(("page", short_body), [0.5], ["100"] * 4, id="half a page"),
        pytest.param(("page", html), [0.5], ["100"] * 4, id="a proxy's page"),
        pytest.param(("list", refuse(401)), [], ["100"] * 4, id="a token that was rotated"),
    ],
)
def test_what_passes_is_waited_for(api, tmp_path, fault, waits, pages):
    api.strike(*fault)
    found, waited = listed(api, tmp_path)

    assert (found.values, waited) == (ALL, waits)
    assert [request.query["limit"] for request in api.requests] == pages


@pytest.mark.parametrize(
    ("status", "phrase"), [(403, "403 Forbidden"), (401, "401 Unauthorized"), (404, "404 Not Found")]
)
def test_what_may_not_be_read_is_done_without(api, tmp_path, status, phrase):
    api.strike("any", refuse(status, "in its own words"), times=9)
    found, waited = listed(api, tmp_path)

    assert (found.resource, found.values, found.refused, waited) == ("pods", (), phrase, [])
    assert found.detail == f"{status} in its own words"


@pytest.mark.parametrize(
    ("fault", "message", "tries"),
    [
        pytest.param(refuse(503, "busy"), "^503 busy$", 5, id="never well"),
        pytest.param(cut, "Remote end closed connection without response$", 5, id="never an answer"),
        pytest.param(refuse(418, "teapot"), "^418 teapot$", 1, id="nothing to wait for"),
    ],
)
def test_what_does_not_pass_is_an_error(api, tmp_path, fault, message, tries):
    api.strike("any", fault, times=9)
    with pytest.raises(ClusterError, match=message):
        listed(api, tmp_path)
    assert len(api.requests) == tries


def test_the_version_that_is_served_is_found(api, tmp_path):
    older = Resource(kind="Pod", name="pods", api_versions=("v2", "v1"))
    assert listed(api, tmp_path, older)[0].values == ALL


def test_the_plural_of_a_configured_kind_is_asked_for(api, tmp_path):
    assert listed(api, tmp_path, ROLLOUTS)[0].refused == "404 Not Found"
    api.absent.clear()
    api.put("rollouts", "web", "shop")
    found, _ = listed(api, tmp_path, ROLLOUTS)
    assert (found.resource, found.values) == ("rollouts", ("argoproj.io/v1alpha1 Rollout web",))
