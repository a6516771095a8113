"""As in a cluster: a Service, pods with addresses, a chart, and the APIs that reports are written to."""

import contextlib
import json
import pathlib
import signal
import time

import pytest
import yaml
from e2e.double import answering, review, uid
from e2e.helm import WAIT, Helm
from e2e.load import creating_pods, refusals
from e2e.objects import path, pod, workload
from e2e.registration import Service, registered
from e2e.served import certified, serving
from e2e.waiting import eventually

SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
CRDS = pathlib.Path(__file__).parent / "testdata" / "crds"


def service(name, port, **selector):
    spec = {"ports": [{"port": 443, "targetPort": port}], **({"selector": selector} if selector else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def endpoints(plane, namespace):
    slices = plane.api.request("GET", SLICES.format(namespace))["items"]
    return [address for each in slices for endpoint in each["endpoints"] or () for address in endpoint["addresses"]]


def set_endpoints(plane, namespace, addresses):
    """What the endpointslice controller would write for a Service with a selector."""
    wanted = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "hook", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "ports": [{"port": 10250, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
    }
    where = f"{SLICES.format(namespace)}/hook?fieldManager=test&force=true"
    plane.api.request("PATCH", where, wanted, "application/apply-patch+yaml")


@pytest.mark.usefixtures("pod_addresses")
def test_the_api_server_reaches_a_webhook_through_its_service(plane, namespace, tmp_path):
    """The pods are fakes; the server that listens on their addresses is real."""
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "hook"))
    plane.api.request("POST", path("Service", namespace), service("hook", 8443, app="web"))
    eventually(lambda: len(endpoints(plane, namespace)) == 2)
    calls = []

    def deny(body):
        calls.append(json.loads(body)["request"]["name"])
        return review({"uid": uid(body), "allowed": False, "status": {"message": "seen", "code": 403}})

    everywhere = ("0.0.0.0", 8443)  # noqa: S104  on every pod's address, in a network namespace of its own
    with (
        answering(tmp_path, deny, address=everywhere, names=(f"hook.{namespace}.svc",)) as server,
        registered(plane, namespace, Service(namespace, "hook", server.authority), routes=("validate",)),
    ):
        refused = plane.api.send("POST", path("Pod", namespace), pod("web"))

    assert refused.message == 'admission webhook "validate.evenspread.io" denied the request: seen'
    assert "web" in calls


@pytest.mark.usefixtures("pod_addresses")
def test_a_rolling_restart_under_load_loses_no_request(plane, namespace, tmp_path):
    """A replica is told to end half a second before it is taken out of the Service, the worst that a cluster does."""
    plane.api.request("POST", path("Service", namespace), service("hook", 10250))
    name = f"hook.{namespace}.svc"
    addresses = ["10.64.100.1", "10.64.100.2", "10.64.100.3", "10.64.100.4"]
    with contextlib.ExitStack() as replicas:
        lives = []
        for address in addresses:
            folder = tmp_path / address
            folder.mkdir()
            flags = ("--drain-seconds=2", *certified(folder, plane.authority, name))
            lives.append(replicas.enter_context(serving(folder, {}, *flags, address=address)))
        set_endpoints(plane, namespace, addresses[:2])
        with (
            registered(plane, namespace, Service(namespace, "hook", plane.authority.pem)),
            creating_pods(plane, namespace) as answers,
        ):
            for old, new in ((0, 2), (1, 3)):
                serving_now = endpoints(plane, namespace)
                set_endpoints(plane, namespace, [*serving_now, addresses[new]])
                lives[old].process.send_signal(signal.SIGTERM)
                time.sleep(0.5)
                set_endpoints(plane, namespace, [at for at in (*serving_now, addresses[new]) if at != addresses[old]])
                assert lives[old].process.wait(20) == 0
        reviewed = [lives[number].reviews("validate") > 10 for number in (2, 3)]

    assert (refusals(answers), reviewed, len(answers) > 100) == ([], [True, True], True)


@pytest.mark.parametrize("file", sorted(CRDS.glob("*.yaml")), ids=lambda file: file.stem)
def test_an_api_for_reports_can_be_installed(plane, file):
    definition = yaml.safe_load(file.read_text())
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = definition["metadata"]["name"]
    group, kinds = definition["spec"]["group"], definition["spec"]["names"]["plural"]
    versions = [each["name"] for each in definition["spec"]["versions"] if each["served"]]
    eventually(lambda: plane.api.send("POST", where, definition).status == 201, 60, 0.5)  # an earlier one may be ending
    try:
        for version in versions:
            eventually(lambda at=f"/apis/{group}/{version}/{kinds}": plane.api.send("GET", at).status == 200)
    finally:
        plane.api.request("DELETE", f"{where}/{name}")
        eventually(lambda: plane.api.send("GET", f"{where}/{name}").status == 404)


def test_helm_installs_and_removes_a_chart(plane, namespace, tmp_path):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    (chart / "templates" / "deployment.json").write_text(json.dumps(workload("Deployment", "tiny")))
    helm = Helm(plane, namespace, tmp_path)

    installed = helm("install", "tiny", *WAIT, chart=chart)
    status = plane.api.request("GET", path("Deployment", namespace, "tiny"))["status"]
    removed = helm("uninstall", "tiny", *WAIT)

    assert (installed.returncode, status["availableReplicas"]) == (0, 2), installed.stderr
    assert (removed.returncode, removed.stdout) == (0, 'release "tiny" uninstalled\n')
