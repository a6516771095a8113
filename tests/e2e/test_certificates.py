"""The release's own CA beside the real API server: made, trusted, replaced, and mended, while pods are created.

Certificates live for seconds here; what takes a year in a cluster takes half a minute.
"""

import base64
import contextlib
import json
import ssl
import threading
import time

import pytest
from e2e.injected import RECORD
from e2e.load import dry_runs
from e2e.objects import ZONE, path, pod
from e2e.registration import GROUP
from e2e.released import released
from e2e.tls import greeted, trusted_by
from e2e.waiting import eventually, within

from certs.authority import CertificateError
from certs.rotation import certificates_in, read_secret_data

NAMESPACE = "rotating"
NAME = f"evenspread-webhook.{NAMESPACE}.svc"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/evenspread-ca"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations/evenspread"
DEPLOYMENT = path("Deployment", NAMESPACE, "evenspread-webhook")
DEFAULTS = {
    "mode": "inject",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}],
}
# Of the validating webhook: a call that fails is a pod that is refused. Of the other one: a pod without constraints.
VALUES = (
    *("--set", "certificates.self.caDuration=45s", "--set", "certificates.self.leafDuration=15s"),
    *("--set", "webhook.failurePolicy=Fail", "--set-json", f"config.defaults={json.dumps(DEFAULTS)}"),
)


@pytest.fixture(name="release", scope="module")
def _release(plane, pod_addresses_are_local, tmp_path_factory):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    with released(plane, NAMESPACE, tmp_path_factory.mktemp("rotating"), *VALUES) as kubelet:
        yield kubelet


def held(api):
    data = api.request("GET", SECRET).get("data", {})
    return read_secret_data({key: base64.b64decode(value) for key, value in data.items()})


def bundle(api):
    return trusted_by(api, VALIDATING)


@contextlib.contextmanager
def watching(plane, kubelet):
    """Meanwhile new connections are made to every replica, several times a second, with the bundle of that moment."""
    ended, seen, refused = threading.Event(), set(), []

    def watch():
        with contextlib.closing(plane.connect()) as api:
            before = bundle(api)
            while not ended.wait(0.2):
                now = bundle(api)
                for address in [each.address for each in kubelet.containers]:
                    for trusted in (before, now):
                        try:
                            seen.add(greeted(address, NAME, trusted))
                        except ssl.SSLError as error:
                            refused.append(str(error))
                        except OSError:
                            pass  # it starts, or has ended
                before = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen, refused
    finally:
        ended.set()
        thread.join()


def restarted(plane):
    """A rolling restart, to its end."""
    stamp = {"metadata": {"annotations": {"restarted": str(time.time())}}}
    changed = {"spec": {"template": stamp}}
    generation = plane.api.request("PATCH", DEPLOYMENT, changed, "application/merge-patch+json")["metadata"][
        "generation"
    ]

    def done():
        status = plane.api.request("GET", DEPLOYMENT)["status"]
        counts = [status.get(f"{what}Replicas", 0) for what in ("updated", "available")]
        return status.get("observedGeneration", 0) >= generation and [*counts, status["replicas"]] == [2, 2, 2]

    eventually(done, 60, every=0.2)


def test_ca_leaves_and_replicas_are_replaced_and_no_call_fails(plane, namespace, release):
    """A CA and several generations of leaves end, and all replicas are replaced, under 40 pods a second."""
    selecting = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    plane.api.request("POST", path("Service", namespace), selecting)
    first_pod = f"{path('Pod', namespace)}?dryRun=All", pod("first")
    eventually(lambda: RECORD in plane.api.request("POST", *first_pod)["metadata"].get("annotations", {}))
    first = held(plane.api).signing
    with dry_runs(plane, namespace, 40) as told, watching(plane, release) as (leaves, refused):
        restarted(plane)
        eventually(lambda: held(plane.api).signing != first, 60, every=0.2)
        signing = held(plane.api).since
        eventually(lambda: len(certificates_in(bundle(plane.api))) == 1, 60, every=0.2)

    assert {*told} == {(201, True)}, {each: told.count(each) for each in {*told}}
    assert refused == []
    assert len(told) > 500
    assert len(leaves) >= 6, "two replicas, restarted, each with several leaves"
    assert held(plane.api).since == signing
    print(f"{len(told)} pods, all injected; {len(leaves)} certificates, none refused")


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("wrong", ["", base64.b64encode(b"garbage").decode()], ids=["none", "garbage"])
def test_a_ca_bundle_that_somebody_breaks_is_mended(plane, wrong):
    """The API server takes either."""
    broken = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": wrong}]
    plane.api.request("PATCH", VALIDATING, broken, "application/json-patch+json")

    def mended():
        with contextlib.suppress(CertificateError):
            return {*certificates_in(bundle(plane.api))} == {*held(plane.api).trusted}
        return False

    within(20, mended, every=0.2)


def test_an_emptied_secret_gives_another_ca_at_once(plane, release):
    """What docs/install.md says to do with a CA whose key is in wrong hands."""
    first = held(plane.api).signing
    plane.api.request("PATCH", SECRET, [{"op": "remove", "path": "/data"}], "application/json-patch+json")
    within(20, lambda: (now := held(plane.api)) is not None and now.signing != first, every=0.2)

    def trusted():
        with contextlib.suppress(ssl.SSLError):
            return all(greeted(each.address, NAME, bundle(plane.api)) for each in release.containers)
        return False

    within(20, trusted, every=0.2)
