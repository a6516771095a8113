"""The certificate that a replica issues to itself: when, of which CA, and what happens if it cannot."""

import asyncio
import threading
from datetime import timedelta

import pytest
from cluster.stored import NOW, StoredApi, silent

from certs.authority import expires, trust_fault
from certs.rotation import Lifetimes, next_authorities, read_secret_data, usable_authorities
from certs.store import live_paths, read_pair
from webhook.admission import Engine
from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.ca_secret import CaSecret, _decoded
from webhook.core.api.version import RECORDED
from webhook.core.policy.policy import Policy
from webhook.metrics import Metrics
from webhook.server import certificates
from webhook.server.certificates import OwnCertificate
from webhook.server.state import ServerState

PATH = "/api/v1/namespaces/platform/secrets/evenspread-ca"
EMPTY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "evenspread-ca"}}
NAME = "evenspread-webhook.platform.svc"
LIVES = Lifetimes()


@pytest.fixture(name="api")
def _api():
    return StoredApi(**{PATH: EMPTY})


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    return replica(api, tmp_path)


def replica(api, directory):
    return OwnCertificate(CaSecret(api, "platform", "evenspread-ca"), (NAME,), directory, LIVES)


def served(directory):
    return read_pair(*live_paths(directory)).certificate


def made(api):
    """What the controller does: the Secret has a CA."""
    CaSecret(api, "platform", "evenspread-ca").update(lambda held, now: usable_authorities(held, now, LIVES))


def stored(api):
    return read_secret_data(_decoded(api.objects[PATH]["data"]))


def test_replicas_that_start_together_have_leaves_of_one_ca(api, tmp_path):
    made(api)
    replicas = [replica(api, tmp_path / str(number)) for number in range(3)]
    for each in replicas:
        each.reconcile()
    bundle = stored(api).bundle
    leaves = [served(tmp_path / str(number)) for number in range(3)]
    assert len({*leaves}) == 3
    assert [trust_fault(leaf, bundle, NAME, NOW) for leaf in leaves] == [None, None, None]
    assert len(api.writes()) == 1, "the controller's"
    assert replicas[0].authority_expires == NOW + timedelta(days=365)


def test_it_is_replaced_at_two_thirds_of_its_life_and_not_before(api, replica, tmp_path):
    made(api)
    replica.reconcile()
    first = served(tmp_path)
    api.passes(days=4, hours=15)
    replica.reconcile()
    assert served(tmp_path) == first
    api.passes(hours=2)
    replica.reconcile()
    assert expires(served(tmp_path)) == api.now + timedelta(days=7)


@pytest.mark.parametrize("hours", [24 * 3650, -24 * 3650], ids=["ten years on", "ten years back"])
def test_a_clock_of_the_cluster_that_jumps_is_followed(api, replica, tmp_path, hours):
    made(api)
    replica.reconcile()
    api.passes(hours=hours)
    made(api)
    replica.reconcile()
    assert trust_fault(served(tmp_path), stored(api).bundle, NAME, api.now) is None


def test_a_replica_moves_to_the_ca_that_signs_now(api, replica, tmp_path):
    made(api)
    replica.reconcile()
    secret = CaSecret(api, "platform", "evenspread-ca")
    api.passes(days=244)
    secret.update(lambda held, now: next_authorities(held, now, LIVES, published=True))
    replica.reconcile()
    former = served(tmp_path)
    api.passes(hours=1)
    secret.update(lambda held, now: next_authorities(held, now, LIVES, published=True))
    replica.reconcile()
    both = stored(api).bundle
    assert [trust_fault(leaf, both, NAME, api.now) for leaf in (former, served(tmp_path))] == [None, None]
    assert trust_fault(served(tmp_path), stored(api).signing.certificate, NAME, api.now) is None


def kept(replica, until):
    """Let it keep the certificate until something holds."""

    async def run():
        task = asyncio.create_task(replica.keep())
        async with asyncio.timeout(10):
            while not until():  # noqa: ASYNC110 what is looked at is no event
                await asyncio.sleep(0.002)
        task.cancel()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(silent, "https://api: no answer in time", id="the API server is gone"),
        pytest.param(lambda *_: 403, "403 Secret platform/evenspread-ca: says 403", id="forbidden"),
        pytest.param(
            lambda *_: 404, "404 Secret platform/evenspread-ca does not exist; the chart creates it", id="gone"
        ),
        pytest.param(lambda *_: 1 / 0, "division by zero", id="a fault of ours"),
    ],
)
def test_without_a_ca_it_waits_and_says_for_what(api, replica, monkeypatch, fault, said):
    monkeypatch.setattr(certificates, "_FIRST_WAIT_SECONDS", 0.001)
    state = ServerState(Engine(policy=Policy(), version=RECORDED), Metrics())
    state.own_certificate = replica
    made(api)
    api.before = fault
    kept(replica, lambda: said in replica.fault)
    ready, text = state.readiness()
    assert not ready
    assert f"certificate: waiting for Secret platform/evenspread-ca: {said}\n" in text
    api.before = lambda *_: None
    kept(replica, replica.issued.is_set)
    ready, text = state.readiness()
    assert ready
    assert "certificate: ok\n" in text


def test_a_certificate_that_is_served_outlives_the_api_server(api, tmp_path):
    made(api)
    quick = Lifetimes(authority=timedelta(minutes=1), leaf=timedelta(seconds=0.1))
    replica = OwnCertificate(CaSecret(api, "platform", "evenspread-ca"), (NAME,), tmp_path, quick)
    state = ServerState(Engine(policy=Policy(), version=RECORDED), Metrics())
    state.own_certificate = replica
    kept(replica, replica.issued.is_set)
    first = served(tmp_path)
    api.before = silent
    kept(replica, lambda: replica.fault)
    ready, text = state.readiness()
    assert ready
    assert "certificate: https://api: no answer in time\n" in text
    assert served(tmp_path) == first


def test_it_serves_what_it_has_while_the_secret_is_empty(api, replica, tmp_path):
    """Another CA is the controller's to make: the API server must trust it first."""
    made(api)
    replica.reconcile()
    first = served(tmp_path)
    api.put(PATH, EMPTY)
    with pytest.raises(
        ClusterError, match=r"^Secret platform/evenspread-ca holds no CA yet; the controller creates it$"
    ):
        replica.reconcile()
    assert served(tmp_path) == first
    made(api)
    replica.reconcile()
    assert trust_fault(served(tmp_path), stored(api).bundle, NAME, NOW) is None


def test_it_follows_the_secret_at_once(api, replica, tmp_path, monkeypatch):
    """Longer than the test may take: nothing comes of a look by the clock."""
    monkeypatch.setattr(certificates, "_FIRST_WAIT_SECONDS", 60.0)
    timer = threading.Timer(0.3, made, (api,))
    timer.start()
    kept(replica, replica.issued.is_set)
    timer.join()
    assert trust_fault(served(tmp_path), stored(api).bundle, NAME, NOW) is None


def test_a_secret_that_somebody_else_filled_is_used(api, replica, tmp_path):
    made(api)
    before = stored(api)
    replica.reconcile()
    assert stored(api) == before
    assert trust_fault(served(tmp_path), before.bundle, NAME, NOW) is None
