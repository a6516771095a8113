"""The CA over a year, with replicas that serve and API servers that verify; and with faults in between."""

import base64
import contextlib
from datetime import timedelta

import pytest
from cluster.stored import NOW, StoredApi, silent

from certs.authority import CertificateError, expires, trust_fault
from certs.rotation import Lifetimes, certificates_in, read_secret_data
from certs.store import live_paths, read_pair
from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.controller.authority import AuthorityUpkeep
from webhook.server.certificates import OwnCertificate

SECRET = "/api/v1/namespaces/platform/secrets/evenspread-ca"  # noqa: S105 a path
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/evenspread"
NAME = "evenspread-webhook.platform.svc"
LIVES = Lifetimes()


class Installed:
    """A release in a cluster: the chart's objects, a controller and two replicas."""

    def __init__(self, folder):
        webhook = {"name": "validate.evenspread.io", "clientConfig": {"service": {"name": "evenspread-webhook"}}}
        self.api = StoredApi(
            **{SECRET: {"metadata": {"name": "evenspread-ca"}}, VALIDATING: {"metadata": {}, "webhooks": [webhook]}}
        )
        secret = CaSecret(self.api, "platform", "evenspread-ca")
        self.upkeep = AuthorityUpkeep(self.api, "evenspread", (secret, LIVES))
        self.folders = [folder / str(number) for number in range(2)]
        self.replicas = [OwnCertificate(secret, (NAME,), each, LIVES) for each in self.folders]

    @property
    def held(self):
        data = self.api.objects[SECRET].get("data", {})
        return read_secret_data({key: base64.b64decode(value) for key, value in data.items()})

    @property
    def bundle(self):
        (webhook,) = self.api.objects[VALIDATING]["webhooks"]
        return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))

    def refused(self):
        """What the API server says of the replicas' certificates."""
        served = [read_pair(*live_paths(each)).certificate for each in self.folders]
        return [fault for leaf in served if (fault := trust_fault(leaf, self.bundle, NAME, self.api.now))]


@pytest.fixture(name="installed")
def _installed(tmp_path):
    return Installed(tmp_path)


def test_replicas_wait_for_a_ca_that_the_api_server_trusts(installed):
    trusted = []

    def seen(method, path):
        if (method, path) == ("PUT", SECRET):
            trusted.append(bool(installed.bundle))

    installed.api.before = seen
    for each in installed.replicas:
        with pytest.raises(ClusterError, match="holds no CA yet; the controller creates it"):
            each.reconcile()
    installed.upkeep.reconcile()
    for each in installed.replicas:
        each.reconcile()
    assert trusted == [True], "before it was in the Secret, and a replica could have it"
    assert installed.refused() == []
    assert installed.upkeep.expires == NOW + timedelta(days=365)
    assert (installed.upkeep.writes, installed.upkeep.waiting) == (1, "")


@pytest.mark.parametrize("gone", [False, True], ids=["emptied", "deleted and rendered anew"])
def test_a_ca_that_is_lost_stays_trusted_until_replicas_have_followed(installed, gone):
    def stand():
        return installed.refused(), len(certificates_in(installed.bundle))

    installed.upkeep.reconcile()
    for each in installed.replicas:
        each.reconcile()
    installed.api.passes(days=2)
    first = installed.held.signing
    if gone:
        del installed.api.objects[SECRET]
        for act in (installed.upkeep.reconcile, installed.replicas[0].reconcile):
            with pytest.raises(ClusterError, match="does not exist; the chart creates it"):
                act()
        assert stand() == ([], 1)
    installed.api.put(SECRET, {"metadata": {"name": "evenspread-ca"}})
    stands = [stand()]
    for act in (
        installed.upkeep.reconcile,
        *(each.reconcile for each in installed.replicas),
        installed.upkeep.reconcile,
    ):
        act()
        stands.append(stand())
    assert stands == [([], 1), *[([], 2)] * 4]
    assert installed.held.signing != first
    installed.api.passes(seconds=61)
    installed.upkeep.reconcile()
    assert stand() == ([], 1)
    assert certificates_in(installed.bundle) == installed.held.trusted


def test_two_controllers_that_make_a_ca_at_once_agree(installed):
    other = AuthorityUpkeep(installed.api, "evenspread", (CaSecret(installed.api, "platform", "evenspread-ca"), LIVES))

    def the_other_is_faster(method, path):
        if (method, path) == ("PUT", SECRET):
            installed.api.before = lambda *_: None
            other.reconcile()
            for each in installed.replicas:
                each.reconcile()

    installed.api.before = the_other_is_faster
    installed.upkeep.reconcile()
    assert installed.refused() == []
    assert installed.held.signing.certificate in installed.bundle
    installed.api.passes(seconds=61)
    installed.upkeep.reconcile()
    assert certificates_in(installed.bundle) == installed.held.trusted


@pytest.mark.slow
def test_years_go_by_without_a_refused_certificate(installed):
    installed.upkeep.reconcile()
    authorities = set()
    for _ in range(3 * 365):
        for each in installed.replicas:
            each.reconcile()
        assert installed.refused() == []
        installed.api.passes(days=1)
        installed.upkeep.reconcile()
        authorities.add(installed.held.signing.certificate)
    assert len(authorities) == 5
    assert installed.upkeep.writes == 1 + 2 * 4, "announced and ended, for each that followed"


def test_a_bundle_that_somebody_breaks_is_mended_within_a_look(installed):
    installed.upkeep.reconcile()
    for broken in ("", "Z2FyYmFnZQ=="):
        made = installed.api.objects[VALIDATING]
        made["webhooks"][0]["clientConfig"]["caBundle"] = broken
        installed.upkeep.reconcile()
        assert certificates_in(installed.bundle) == installed.held.trusted


def test_nothing_is_written_while_all_is_well(installed):
    installed.upkeep.reconcile()
    before = installed.api.writes()
    for _ in range(20):
        installed.api.passes(seconds=10)
        installed.upkeep.reconcile()
    assert installed.api.writes() == before
    assert installed.upkeep.seconds == 10.0


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("fault", [silent, lambda *_: 409, lambda *_: 500], ids=["gone", "conflict", "error"])
@pytest.mark.sampled
def test_a_fault_at_any_request_of_a_rotation_is_made_good(installed, fault, nth):
    """The n-th request of the days in which the next CA is announced, takes over and is alone fails."""
    installed.upkeep.reconcile()
    for each in installed.replicas:
        each.reconcile()
    installed.api.passes(days=243, hours=18)
    for each in installed.replicas:
        each.reconcile()
    first, count = installed.held.signing, [0]

    def at_the_nth(method, path):
        count[0] += 1
        return fault(method, path) if count[0] == nth else None

    installed.api.before = at_the_nth
    for _ in range(14 * 24):
        for act in (installed.upkeep.reconcile, *(each.reconcile for each in installed.replicas)):
            with contextlib.suppress(ClusterError, CertificateError):
                act()
        installed.api.passes(minutes=40)
        assert installed.refused() == []
    for _ in range(3):
        installed.upkeep.reconcile()
    assert installed.held.signing != first
    assert len(certificates_in(installed.bundle)) == 1


def test_the_next_ca_does_not_sign_while_the_bundle_cannot_be_written(installed):
    installed.upkeep.reconcile()
    first = installed.held.signing
    installed.api.passes(days=244)
    installed.api.before = lambda method, _: 403 if method == "PATCH" else None
    for _ in range(48):
        with pytest.raises(ClusterError, match="says 403"):
            installed.upkeep.reconcile()
        installed.api.passes(hours=1)
    assert (installed.held.signing, installed.held.coming is not None) == (first, True)
    assert expires(first.certificate) > installed.api.now
