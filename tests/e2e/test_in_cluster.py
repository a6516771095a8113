"""As in a cluster: a Service, pods with addresses, a chart, and the APIs that reports are written to."""

import json
import pathlib
import subprocess

import pytest
import yaml
from e2e.double import answering, review, uid
from e2e.objects import path, pod, workload
from e2e.registration import GROUP
from e2e.waiting import eventually

CRDS = pathlib.Path(__file__).parent / "testdata" / "crds"


@pytest.mark.usefixtures("pod_addresses")
def test_the_api_server_reaches_a_webhook_through_its_service(plane, namespace, tmp_path):
    """The pods are fakes; the server that listens on their addresses is real."""
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "hook"))
    ports = [{"port": 443, "targetPort": 8443}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "web"}, "ports": ports},
    }
    plane.api.request("POST", path("Service", namespace), service)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    eventually(lambda: sum(len(each["endpoints"] or ()) for each in plane.api.request("GET", slices)["items"]) == 2)
    calls = []

    def deny(body):
        calls.append(json.loads(body)["request"]["name"])
        return review({"uid": uid(body), "allowed": False, "status": {"message": "seen", "code": 403}})

    names = (f"hook.{namespace}.svc",)
    everywhere = ("0.0.0.0", 8443)  # noqa: S104  on every pod's address, in a network namespace of its own
    with answering(tmp_path, deny, address=everywhere, names=names) as server:
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [
                {
                    "name": "hook.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "clientConfig": {
                        "service": {"namespace": namespace, "name": "hook", "path": "/validate"},
                        "caBundle": server.bundle,
                    },
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
            ],
        }
        where = f"{GROUP}/validatingwebhookconfigurations"
        plane.api.request("POST", where, configuration)
        try:
            dry = f"{path('Pod', namespace)}?dryRun=All"
            refused = eventually(
                lambda: (answer := plane.api.send("POST", dry, pod("web"))).status != 201 and answer, every=0.1
            )
        finally:
            plane.api.request("DELETE", f"{where}/hook")

    assert refused.message == 'admission webhook "hook.example.com" denied the request: seen'
    assert set(calls) == {"web"}


@pytest.mark.parametrize("file", sorted(CRDS.glob("*.yaml")), ids=lambda file: file.stem)
def test_an_api_for_reports_can_be_installed(plane, file):
    definition = yaml.safe_load(file.read_text())
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = definition["metadata"]["name"]
    group, kinds = definition["spec"]["group"], definition["spec"]["names"]["plural"]
    versions = [each["name"] for each in definition["spec"]["versions"] if each["served"]]
    plane.api.request("POST", where, definition)
    try:
        for version in versions:
            eventually(lambda at=f"/apis/{group}/{version}/{kinds}": plane.api.send("GET", at).status == 200)
    finally:
        plane.api.request("DELETE", f"{where}/{name}")
        eventually(lambda: plane.api.send("GET", f"{where}/{name}").status == 404)


def test_helm_installs_and_removes_a_chart(plane, namespace, binaries, tmp_path):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    (chart / "templates" / "deployment.json").write_text(json.dumps(workload("Deployment", "tiny")))
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(plane.admin), "PATH": "/usr/bin:/bin"}

    def helm(*arguments):
        return subprocess.run(
            [binaries / "helm", "-n", namespace, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    installed = helm("install", "tiny", str(chart), "--wait", "--timeout", "20s")
    status = plane.api.request("GET", path("Deployment", namespace, "tiny"))["status"]
    removed = helm("uninstall", "tiny", "--wait", "--timeout", "20s")

    assert (installed.returncode, status["availableReplicas"]) == (0, 2), installed.stderr
    assert (removed.returncode, removed.stdout) == (0, 'release "tiny" uninstalled\n')
