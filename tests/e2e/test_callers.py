"""An API server that shows the webhook a certificate is answered; a neighbour without one is not."""

import http.client
import json
import pathlib
import ssl
import urllib.parse

import pytest
from e2e.controlplane.authority import Authority
from e2e.controlplane.up import ControlPlane
from e2e.objects import constraint, path, workload
from e2e.registration import registered
from e2e.served import certified, serving

README = pathlib.Path(__file__).parents[2] / "charts" / "evenspread" / "README.md"
FOLDER = "/etc/kubernetes/admission"
STRICT = {"ceiling": "deny", "rules": {"selector-not-self": "deny"}}
OTHERS = constraint(labelSelector={"matchLabels": {"app": "other"}})


def recipe(folder, host):
    """The files of the chart's README, here and for a webhook of this address; returns the one for the flag."""
    for block in README.read_text().split("```yaml\n")[1:]:
        name, _, text = block.partition("```")[0].removeprefix(f"# {FOLDER}/").partition("\n")
        text = text.replace(FOLDER, str(folder)).replace("evenspread-webhook.evenspread.svc", host)
        (folder / name.partition(":")[0]).write_text(text)
    return folder / "config.yaml"


@pytest.fixture(name="callers", scope="module")
def _callers(tmp_path_factory):
    """A folder as on an API server, with a pair of an authority that signs nothing else."""
    folder, authority = tmp_path_factory.mktemp("admission"), Authority("callers")
    certificate, key = authority.issue("kube-apiserver")
    for name, content in (("caller.crt", certificate), ("caller.key", key), ("callers-ca.crt", authority.pem)):
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(name="guarded", scope="module")
def _guarded(callers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    flags = certified(folder, Authority())
    with serving(folder, STRICT, *flags, f"--client-ca={callers}/callers-ca.crt") as webhook:
        yield webhook


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, callers, guarded, tmp_path_factory):
    """Its API server is started with the recipe."""
    config = recipe(callers, f"{guarded.address}:{guarded.port}")
    flag = f"--admission-control-config-file={config}"
    with ControlPlane(tmp_path_factory.mktemp("callers"), binaries, apiserver=(flag,)) as plane:
        yield plane


def asked(server, identity=None):
    """The status of the answer to a review; the error where there is none."""
    context = ssl.create_default_context(cadata=server.authority.decode())
    if identity is not None:
        context.load_cert_chain(*identity)
    request = {"uid": "u", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "operation": "CREATE"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    connection = http.client.HTTPSConnection(urllib.parse.urlsplit(server.url).netloc, context=context, timeout=5)
    try:
        connection.request("POST", "/validate", json.dumps(review), {"Content-Type": "application/json"})
        return connection.getresponse().status
    except OSError as error:
        return type(error)
    finally:
        connection.close()


def test_the_api_server_gets_answers(own_plane, guarded):
    where = f"{path('Deployment', 'default')}?dryRun=All"
    with registered(own_plane, "default", guarded.server):
        denied = own_plane.api.send("POST", where, workload("Deployment", "web", OTHERS))
        allowed = own_plane.api.send("POST", where, workload("Deployment", "web", constraint()))

    assert (denied.status, allowed.status) == (403, 201)
    assert "selector-not-self" in denied.message
    assert guarded.reviews("validate") >= 2


def test_a_neighbour_without_its_certificate_gets_none(own_plane, callers, guarded):
    before = guarded.reviews("validate")

    stranger = asked(guarded.server)
    kubelet = asked(guarded.server, (own_plane.directory / "admin.crt", own_plane.directory / "admin.key"))

    assert issubclass(stranger, OSError)
    assert issubclass(kubelet, OSError), "a certificate of the cluster is no certificate of callers"
    assert guarded.reviews("validate") == before
    assert asked(guarded.server, (callers / "caller.crt", callers / "caller.key")) == 200
