"""`evenspread doctor` beside the chart on a real control plane: each thing that is broken has its line, and its fix."""

import base64
import contextlib
import io
import json
import os
import pathlib
import subprocess
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from chart.rendered import CHART
from e2e.controlplane.authority import Authority
from e2e.controlplane.up import ControlPlane
from e2e.helm import WAIT, Helm
from e2e.kubectl import Kubectl
from e2e.kubelet import Kubelet
from e2e.test_chart import patched
from e2e.waiting import eventually

from certs.authority import issue_authority, issue_leaf
from webhook.cli.main import main

pytestmark = pytest.mark.usefixtures("kubelet")
NAMESPACE = "doctored"
NAME = "evenspread-webhook"
# Who drains keeps an address that kwok has given to another pod already.
VALUES = ("--set", "certificates.mode=existingSecret", "--set", "drainSeconds=0")
OWN_CA = ("--set", "certificates.mode=self", "--set", "drainSeconds=0")
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls"


def content(authority, name=f"{NAME}.{NAMESPACE}.svc"):
    certificate, key = authority.issue("webhook", names=(name,))
    data = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.pem}
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


@pytest.fixture(name="helm", scope="module")
def _helm(plane, tmp_path_factory):
    helm = Helm(plane, NAMESPACE, tmp_path_factory.mktemp("helm"))

    def run(command, *arguments):
        ran = helm(command, "evenspread", *arguments)
        assert ran.returncode == 0, ran.stderr
        return ran

    return run


@pytest.fixture(name="kubelet", scope="module")
def _kubelet(plane, helm, pod_addresses_are_local, tmp_path_factory):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    plane.api.request("POST", "/api/v1/namespaces", namespace)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-tls"}, "type": "kubernetes.io/tls"}
    where = SECRET.rpartition("/")[0]
    plane.api.request("POST", where, {**secret, "data": content(plane.authority)})
    kubelet = Kubelet(plane, NAMESPACE, tmp_path_factory.mktemp("kubelet"))
    try:
        with kubelet.at_work():
            helm("install", *VALUES, *WAIT)
            yield kubelet
    finally:
        kubelet.stop()
        helm("uninstall")
        plane.api.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture(name="doctor")
def _doctor(plane):
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["doctor", "--kubeconfig", str(plane.admin), "-o", "json", *arguments])
        assert err.getvalue() == ""
        lines = json.loads(out.getvalue())
        assert code == any(each["state"] == "problem" for each in lines)
        return lines

    return run


def problems(lines):
    return sorted({each["check"] for each in lines if each["state"] == "problem"})


@pytest.fixture(name="mend")
def _mend(plane, tmp_path):
    """What a line says to do, done as it stands there."""
    (tmp_path / "charts").symlink_to(CHART.parent)
    for name, value in content(plane.authority).items():
        (tmp_path / name).write_bytes(base64.b64decode(value))
    paths = f"{plane.binaries}:{os.environ['PATH']}"
    environment = os.environ | {"HOME": str(tmp_path), "KUBECONFIG": str(plane.admin), "PATH": paths}

    def run(fix):
        ran = subprocess.run(
            ["bash", "-euc", fix],  # noqa: S607  that of the machine, as a reader has it
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{fix}\n{ran.stderr}"

    return run


def test_of_the_chart_as_it_is_nothing_is_wrong(doctor):
    lines = doctor()

    assert problems(lines) == []
    assert [each["check"] for each in lines if each["state"] != "ok"] == ["reports"]
    assert {each["check"] for each in lines} == {
        *("Kubernetes", "version", "registration", "admission", "caBundle", "certificate", "served certificate"),
        *("endpoints", "network", "controller", "leader", "health", "permissions", "policy", "reports"),
    }


class Hands(NamedTuple):
    """Of somebody who breaks things."""

    plane: ControlPlane
    kubectl: Kubectl

    def __call__(self, *arguments):
        assert self.kubectl("-n", NAMESPACE, *arguments).code == 0

    def change(self, what, *operations):
        self("patch", *what.split(), "--type=json", "-p", json.dumps(operations))


@pytest.fixture(name="hands")
def _hands(plane, kubectl):
    return Hands(plane, kubectl)


def replace(where, value):
    return {"op": "replace", "path": where, "value": value}


# What others' fixes mend too.
BY_THE_REST = {"admission", "controller", "health", "reachable", "served certificate"}
CONFIGURATION = "validatingwebhookconfiguration evenspread"


def another_ca(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/clientConfig/caBundle", content(Authority())["ca.crt"]))


def a_certificate_that_ended(hands):
    ca = issue_authority(datetime.now(UTC) - timedelta(days=30))
    leaf = issue_leaf(ca, (f"{NAME}.{NAMESPACE}.svc",), datetime.now(UTC) - timedelta(days=20))
    data = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": ca.certificate}
    patched(hands.plane, SECRET, {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}})


def no_replica(hands):
    hands("scale", f"deployment/{NAME}", "--replicas=0")


def no_service(hands):
    hands("delete", "service", NAME)


def a_network_policy(hands):
    hands.change(f"networkpolicy {NAME}", replace("/spec/ingress/0/ports/0/port", 9999))


def no_binding(hands):
    hands("delete", "clusterrolebinding", NAME)


def a_matching_by_hand(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/matchPolicy", "Exact"))


def a_long_timeout(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/timeoutSeconds", 30))


def closed_with_one_replica(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/failurePolicy", "Fail"))
    hands("scale", f"deployment/{NAME}", "--replicas=1")


def no_exclusions(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/namespaceSelector", {}))


def no_configuration(hands):
    hands("delete", *CONFIGURATION.split())


def closed(hands):
    hands.change(CONFIGURATION, replace("/webhooks/0/failurePolicy", "Fail"))


def no_controller(hands):
    hands("scale", "deployment/evenspread-controller", "--replicas=0")


def no_lease(hands):
    hands("delete", "lease", "evenspread-controller")


def a_policy_with_a_fault(hands):
    hands.change(f"configmap {NAME}", replace("/data/policy.yaml", "kind: SpreadPolicy\nceilng: warn\n"))


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        pytest.param(
            [another_ca, a_network_policy, no_binding, a_policy_with_a_fault, a_matching_by_hand, no_exclusions],
            ["caBundle", "drift", "exclusions", "network", "permissions", "policy"],
            id="much at once",
        ),
        pytest.param(
            [a_certificate_that_ended],
            ["caBundle", "certificate", "served certificate"],
            id="a certificate that ended",
        ),
        pytest.param([no_replica], ["endpoints", "reachable"], id="no replica"),
        pytest.param([no_service], ["endpoints"], id="no Service"),
        pytest.param(
            [closed_with_one_replica, a_long_timeout], ["availability", "drift", "timeout"], id="closed, and alone"
        ),
        pytest.param([no_configuration], ["registration"], id="no configuration"),
        pytest.param(
            [closed, no_replica],
            ["availability", "drift", "endpoints", "reachable"],
            id="closed, no replica",
        ),
        pytest.param([no_lease], ["leader"], id="no Lease"),
    ],
)
def test_what_is_broken_has_its_line_and_what_the_line_says_mends_it(hands, doctor, mend, broken, expected):
    for each in broken:
        each(hands)
    # An API server with an open connection may still have its dry run reviewed; pods report what they notice.
    symptoms = {"admission", "controller", "health"} - {*expected}
    lines = eventually(lambda: seen if {*problems(seen := doctor())} - symptoms == {*expected} else None, 60, every=0.5)
    wrong = [each for each in lines if each["state"] == "problem"]
    assert all(each[part] for part in ("where", "what", "why", "fix") for each in wrong)

    for fix in dict.fromkeys(each["fix"] for each in wrong if each["check"] not in BY_THE_REST):
        mend(fix)
    eventually(lambda: problems(doctor()) == [], 60, every=0.5)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        pytest.param(
            "Ignore", ("was admitted without a review", "admits writes without a review (failurePolicy Ignore)")
        ),
        pytest.param("Fail", ("was refused: failed to call webhook", "refuses matching writes")),
    ],
)
def test_what_the_api_server_does_without_an_answer(hands, doctor, mend, policy, told):
    hands.change(CONFIGURATION, replace("/webhooks/0/failurePolicy", policy))
    no_replica(hands)
    lines = eventually(lambda: seen if "admission" in problems(seen := doctor()) else None, 60, every=0.5)
    wrong = {each["check"]: each for each in lines if each["state"] == "problem"}
    assert wrong["admission"]["what"].startswith(told[0])
    assert all(told[1] in wrong[check]["why"] for check in ("admission", "endpoints"))
    for check in ("endpoints", "availability", "drift"):
        if check in wrong:
            mend(wrong[check]["fix"])
    eventually(lambda: problems(doctor()) == [], 60, every=0.5)


def test_report_apis_that_are_missing_are_a_note(kubectl, doctor):
    crd = pathlib.Path(__file__).parent / "testdata" / "crds" / "openreports.io_reports.yaml"
    before = [each["state"] for each in doctor() if each["check"] == "reports"]
    assert kubectl("apply", "--server-side", "-f", str(crd)).code == 0
    eventually(lambda: [each["state"] for each in doctor() if each["check"] == "reports"] == ["ok"], 30, every=0.5)
    # The API server may take minutes to end a definition, so nobody waits for it here.
    assert kubectl("delete", "--wait=false", "-f", str(crd)).code == 0

    assert before == ["note"]


def test_what_may_not_be_read_is_unknown_and_hides_nothing_else(kubectl, doctor):
    """Somebody who may read webhook configurations and the namespace's Service and Deployment, and no more."""
    rules = ("--verb=get,list", "--resource=validatingwebhookconfigurations,mutatingwebhookconfigurations,services")
    assert kubectl("create", "clusterrole", "looker", *rules).code == 0
    assert kubectl("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--user=looker").code == 0
    found = eventually(lambda: seen if len(seen := doctor("--as", "looker")) > 5 else None, 30)
    for kind in ("clusterrolebinding", "clusterrole"):
        assert kubectl("delete", kind, "looker").code == 0

    states = {each["check"]: each["state"] for each in found}
    assert (states["Kubernetes"], states["registration"]) == ("ok", "ok")
    for check in ("version", "caBundle", "endpoints", "network", "reachable", "policy"):
        assert states[check] == "unknown", check
    assert [each["what"] for each in found if each["check"] == "policy"] == ["could not be read: 403 Forbidden"]
    assert problems(found) == []


def test_the_release_that_makes_its_own_ca_is_right_too(doctor, helm):
    """Its controller fills in the CA, and no Secret holds what replicas serve."""
    helm("upgrade", *OWN_CA, *WAIT)  # without a value Helm keeps those of the release
    lines = eventually(lambda: seen if problems(seen := doctor()) == [] else None, 60, every=0.5)

    assert [each["check"] for each in lines if each["state"] != "ok"] == ["reports"]
    assert [each["check"] for each in lines].count("served certificate") == 2


def test_a_ca_secret_that_was_deleted_is_made_again(doctor, hands, mend):
    """After the test above: the release makes its own CA."""
    hands("delete", "secret", "evenspread-ca")
    lines = eventually(lambda: seen if "CA" in problems(seen := doctor()) else None, 60, every=0.5)
    # The replicas and the controller say soon that they miss it.
    assert {*problems(lines)} <= {"CA", "health"}
    (line,) = [each for each in lines if each["check"] == "CA"]
    assert line["what"] == "does not exist"
    mend(line["fix"])
    eventually(lambda: problems(doctor()) == [], 90, every=0.5)


def test_the_controller_that_keeps_the_ca_has_to_run(doctor, hands, mend):
    hands("scale", "deployment/evenspread-controller", "--replicas=0")
    lines = eventually(lambda: seen if "controller" in problems(seen := doctor()) else None, 60, every=0.5)
    (line,) = [each for each in lines if each["check"] == "controller"]
    assert line["what"] == "has 0 replicas"
    mend(line["fix"])
    eventually(lambda: problems(doctor()) == [], 90, every=0.5)


def test_admission_policies_of_the_chart(doctor, helm, hands, mend):
    """The binding of a mode with other selectors than the webhook, and then no bindings and no policies."""
    helm("upgrade", *OWN_CA, "--set", "admission.static=policies", *WAIT)

    def state():
        return [(each["what"], each["state"]) for each in doctor() if each["check"] == "admission policies"]

    eventually(lambda: [each for _, each in state()] == ["ok"], 60, every=0.5)
    bindings = "validatingadmissionpolicybinding"
    hands.change(f"{bindings} evenspread-deny", replace("/spec/matchResources/namespaceSelector", {}))
    what = "spec.matchResources.namespaceSelector.matchExpressions differs from the webhook configuration"
    assert state() == [(what, "problem")]
    mend(next(each["fix"] for each in doctor() if each["what"] == what))
    assert [each for _, each in state()] == ["ok"]
    hands("delete", bindings, *(f"evenspread-{mode}" for mode in ("deny", "warn", "audit")))
    # The garbage collector deletes the policies of the bindings.
    eventually(lambda: state() == [("does not exist", "problem")] * 3, 60, every=0.5)
    mend(next(each["fix"] for each in doctor() if each["what"] == "does not exist"))
    eventually(lambda: [each for _, each in state()] == ["ok"], 90, every=0.5)


def test_commands_use_the_policy_that_is_installed(plane, helm, tmp_path):
    """The ConfigMap of the chart decides, and the line on the standard error names it."""
    helm("upgrade", *OWN_CA, "--set", "config.rules.selector-not-self=deny", "--set", "config.ceiling=deny", *WAIT)
    spec = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}
    spec["topologySpreadConstraints"][0]["labelSelector"] = {"matchLabels": {"app": "other"}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": spec | {"containers": [{"name": "web", "image": "web"}]},
    }
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    made["spec"] = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    (tmp_path / "web.json").write_text(json.dumps(made))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        arguments = ("--rule", "selector-not-self", "-o", "json", "--kubeconfig", str(plane.admin))
        main(["check", str(tmp_path / "web.json"), *arguments])
    assert [each["mode"] for each in json.loads(out.getvalue())] == ["deny"]
    assert f"policy of ConfigMap {NAMESPACE}/{NAME}" in err.getvalue()
