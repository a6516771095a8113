"""cert-manager's own controllers issue the chart's certificate, and its injector has the API server trust it.

Not a part of `make e2e`: they take minutes to build. `make e2e-cert-manager` runs this.
"""

import pathlib
import ssl
import subprocess

import pytest
import yaml
from e2e.controlplane.up import end_with_parent, without_proxy
from e2e.objects import constraint, path, workload
from e2e.registration import GROUP
from e2e.released import released
from e2e.tls import greeted, trusted_by
from e2e.waiting import eventually

NAMESPACE = "managed"
NAME = f"evenspread-webhook.{NAMESPACE}.svc"
CERTIFICATES = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BUILD = pathlib.Path(__file__).parent / "certmanager" / "build.sh"


@pytest.fixture(name="cert_manager", scope="module")
def _cert_manager(plane, pod_addresses_are_local, tmp_path_factory):
    """cert-manager, at work in the cluster."""
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    folder = pathlib.Path(subprocess.run([BUILD], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    for file in sorted(folder.glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        plane.api.request("POST", DEFINITIONS, definition)
        where = f"/apis/cert-manager.io/v1/{definition['spec']['names']['plural']}"
        eventually(lambda where=where: plane.api.send("GET", where).status == 200)
    log = tmp_path_factory.mktemp("cert-manager") / "log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [folder / "cert-manager"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=without_proxy() | {"KUBECONFIG": str(plane.admin)},
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
        )
    try:
        eventually(lambda: "cert-manager's controllers run" in log.read_text() or process.poll() is not None, 30)
        assert process.poll() is None, log.read_text()[-2000:]
        yield log
    finally:
        process.kill()
        process.wait()


@pytest.fixture(name="release", scope="module")
def _release(plane, cert_manager, tmp_path_factory):
    folder = tmp_path_factory.mktemp("managed")
    try:
        with released(plane, NAMESPACE, folder, "--set", "certificates.mode=certManager") as kubelet:
            yield kubelet
    except AssertionError:
        print(cert_manager.read_text()[-2000:])
        raise


def bundle(plane):
    return trusted_by(plane.api, f"{GROUP}/validatingwebhookconfigurations/evenspread")


def test_it_issues_the_certificate_and_the_api_server_trusts_it(plane, namespace, release):
    eventually(lambda: bundle(plane))

    def warned():
        rollout = workload("Rollout", "web", constraint(maxSkew=0))
        return plane.api.send("POST", f"{path('Rollout', namespace)}?dryRun=All", rollout).warnings

    assert [text.partition(":")[0] for text in eventually(warned)] == ["evenspread/max-skew"]
    assert plane.api.send("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/evenspread-ca").status == 404
    assert len(release.of("controller")) == 1, "which only scans"


def test_a_renewed_certificate_is_served_and_trusted_at_once(plane, release):
    """As `cmctl renew` asks for it."""
    before = {greeted(each.address, NAME, bundle(plane)) for each in release.containers}
    issuing = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "message": "Certificate re-issuance manually triggered",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = plane.api.request("GET", f"{CERTIFICATES}/evenspread-webhook")
    status["status"]["conditions"].append(issuing)
    plane.api.request("PUT", f"{CERTIFICATES}/evenspread-webhook/status", status)
    refused = []

    def renewed():
        try:
            now = {greeted(each.address, NAME, bundle(plane)) for each in release.containers}
        except ssl.SSLError as error:
            refused.append(error)
            return False
        return not now & before

    eventually(renewed, 30, every=0.1)
    assert refused == []
