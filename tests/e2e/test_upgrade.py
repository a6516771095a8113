"""From an older chart to this one, back again, and out, while somebody writes workloads and the webhook fails closed.

tests/testdata/chart-before-controller.tgz is charts/evenspread as of 44d7865: without a controller, with a Secret of
the user's, and without a template that checks names. chart-0.1.0.tgz is the chart of the first release.
"""

import base64
import pathlib
from datetime import UTC, datetime

import pytest
from e2e.helm import WAIT, Helm, quiet
from e2e.kubelet import Kubelet
from e2e.load import writing
from e2e.objects import clean, constraint, path, workload
from e2e.registration import GROUP
from e2e.waiting import eventually

from certs.authority import issue_authority, issue_leaf

NAMESPACE = "upgraded"
RELEASE = "evenspread"
CHARTS = pathlib.Path(__file__).parents[1] / "testdata"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"
VALUES = (
    *("--set", "certificates.mode=existingSecret", "--set", "webhook.failurePolicy=Fail"),
    *("--set", "config.ceiling=deny", "--set", "drainSeconds=2"),
)


@pytest.fixture(name="helm", scope="module")
def _helm(plane, pod_addresses_are_local, tmp_path_factory):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    return Helm(plane, NAMESPACE, tmp_path_factory.mktemp("helm"))


@pytest.fixture(name="release", scope="module", params=["chart-before-controller.tgz", "chart-0.1.0.tgz"])
def _release(request, plane, helm, tmp_path_factory):
    """An older chart, as it was installed."""
    plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    plane.api.request("POST", SECRETS, certificate())
    kubelet = Kubelet(plane, NAMESPACE, tmp_path_factory.mktemp("upgraded"))
    try:
        with kubelet.at_work():
            installed = helm("install", RELEASE, *VALUES, *WAIT, chart=CHARTS / request.param)
        assert (installed.returncode, quiet(installed.stderr)) == (0, "")
        yield kubelet
    finally:
        kubelet.stop()
        helm("uninstall", RELEASE)
        plane.api.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        eventually(lambda: plane.api.send("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404)


def certificate():
    now = datetime.now(UTC)
    authority = issue_authority(now)
    leaf = issue_leaf(authority, [f"{RELEASE}-webhook.{NAMESPACE}.svc"], now)
    held = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.certificate}
    data = {name: base64.b64encode(pem).decode() for name, pem in held.items()}
    return {"metadata": {"name": f"{RELEASE}-webhook-tls"}, "data": data}


def denied(plane, namespace):
    """What the release is there for."""
    wrong = workload("Rollout", "web", constraint(maxSkew=0))
    return plane.api.send("POST", f"{path('Rollout', namespace)}?dryRun=All", wrong).status == 403


def refused(said):
    assert len(said) > 20
    return [each for each in said if each.status != 201]


def test_an_upgrade_stops_nobody(plane, namespace, helm, release):
    before = {each.process.pid for each in release.containers}
    with writing(plane, namespace, clean("Deployment")) as said, release.at_work():
        upgraded = helm("upgrade", RELEASE, "--reset-then-reuse-values", "--set", "podLabels.chart=new", *WAIT)

    assert (upgraded.returncode, quiet(upgraded.stderr), refused(said)) == (0, "", [])
    assert not before & {each.process.pid for each in release.containers}  # each replica was replaced
    assert denied(plane, namespace)


@pytest.mark.usefixtures("release")
def test_an_upgrade_that_is_refused_changes_nothing(plane, namespace, helm):
    before = plane.api.request("GET", VALIDATING)["items"]
    failed = helm("upgrade", RELEASE, "--reset-then-reuse-values", "--set", "replica=3")

    assert failed.returncode == 1
    assert 'replica: unknown value; did you mean "replicas"?' in failed.stderr
    assert plane.api.request("GET", VALIDATING)["items"] == before
    assert denied(plane, namespace)


def test_a_rollback_and_an_uninstall_amid_it_stop_nobody_and_leave_what_is_yours(plane, namespace, helm, release):
    """Helm 4 deletes webhook configurations before the rest, so that nothing is sent to pods that are gone."""
    with writing(plane, namespace, clean("Deployment")) as said:
        with release.at_work():
            back = helm("rollback", RELEASE, "1")
            (configuration,) = plane.api.request("GET", VALIDATING)["items"]
            eventually(lambda: len(release.containers) == 3)
        removed = helm("uninstall", RELEASE, *WAIT)
        eventually(lambda: not plane.api.request("GET", path("Pod", NAMESPACE))["items"])
    left = plane.api.request("GET", SECRETS)["items"]

    assert (back.returncode, back.stderr, removed.returncode, removed.stderr) == (0, "", 0, "")
    assert configuration["webhooks"][0]["failurePolicy"] == "Fail"
    assert refused(said) == []
    assert [each["metadata"]["name"] for each in left] == [f"{RELEASE}-webhook-tls"]
    assert plane.api.request("GET", VALIDATING)["items"] == []
