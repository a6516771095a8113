"""The CA's Secret, with others at it at the same time."""

import base64
from datetime import timedelta

import pytest
from cluster.stored import NOW, StoredApi, silent

from certs.rotation import Lifetimes, read_secret_data, usable_authorities
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.writing.ca_secret import CaSecret

PATH = "/api/v1/namespaces/platform/secrets/evenspread-ca"
EMPTY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "evenspread-ca", "labels": {"app": "x"}}}
LIVES = Lifetimes()


def step(held, now):
    return usable_authorities(held, now, LIVES)


def secret(api):
    return CaSecret(api, "platform", "evenspread-ca")


def data(api):
    return {key: base64.b64decode(value) for key, value in api.objects[PATH]["data"].items()}


def test_an_empty_secret_is_filled_by_one_update():
    api = StoredApi(**{PATH: EMPTY})
    authorities, now = secret(api).update(step)

    assert now == NOW
    assert read_secret_data(data(api)) == authorities
    assert api.objects[PATH]["metadata"]["labels"] == {"app": "x"}
    assert api.asked == [("GET", PATH), ("PUT", PATH)]
    assert secret(api).update(step) == (authorities, NOW)
    assert api.asked == [("GET", PATH), ("PUT", PATH), ("GET", PATH)]


def test_who_is_second_takes_what_the_first_wrote():
    api = StoredApi(**{PATH: EMPTY})
    first = []

    def somebody_is_quicker(method, _path):
        if method == "PUT" and not first:
            first.append("at it")
            first[0] = secret(api).update(step)

    api.before = somebody_is_quicker
    assert secret(api).update(step) == first[0]
    assert len(api.writes()) == 2


def test_who_loses_every_time_says_so():
    api = StoredApi(**{PATH: EMPTY})
    api.before = lambda method, _: 409 if method == "PUT" else None
    with pytest.raises(
        ClusterError, match=r"^Secret platform/evenspread-ca: every update conflicts with another writer$"
    ):
        secret(api).update(step)


@pytest.mark.parametrize(
    ("refused", "status", "said"),
    [
        pytest.param("GET", 404, "does not exist; the chart creates it", id="absent"),
        pytest.param("GET", 403, "says 403", id="may not be read"),
        pytest.param("PUT", 403, "says 403", id="may not be written"),
        pytest.param("PUT", 500, "says 500", id="a fault of the API server"),
    ],
)
def test_a_refusal_names_the_secret(refused, status, said):
    api = StoredApi(**{PATH: EMPTY})
    api.before = lambda method, _: status if method == refused else None
    with pytest.raises(RefusedError, match=rf"^{status} Secret platform/evenspread-ca.* {said}$") as caught:
        secret(api).update(step)
    assert caught.value.status == status


def test_a_lost_api_server_is_an_error():
    api = StoredApi(**{PATH: EMPTY})
    api.before = silent
    with pytest.raises(ClusterError, match="no answer in time"):
        secret(api).update(step)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"tls.crt": "!"}, id="no base64"),
        pytest.param({"tls.crt": None}, id="null"),
        pytest.param({"tls.crt": "eA==", "tls.key": "eA=="}, id="no certificate"),
        pytest.param("text", id="no data"),
        pytest.param(None, id="null data"),
    ],
)
def test_what_is_no_ca_is_replaced(content):
    api = StoredApi(**{PATH: {**EMPTY, "data": content}})
    authorities, _ = secret(api).update(step)
    assert read_secret_data(data(api)) == authorities


def test_the_api_servers_clock_judges():
    api = StoredApi(**{PATH: EMPTY})
    first, _ = secret(api).update(step)
    api.passes(days=400)
    second, now = secret(api).update(step)
    assert second.signing != first.signing
    assert now == NOW + timedelta(days=400)
