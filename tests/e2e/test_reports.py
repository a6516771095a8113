"""Reports that `audit -o report` prints, in the APIs that real dashboards read."""

import contextlib
import json
import pathlib
import subprocess

import yaml
from e2e.objects import constraint, path, workload
from e2e.served import NO_INSTALLATION, PROGRAM
from e2e.waiting import eventually

CRDS = pathlib.Path(__file__).parent / "testdata" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APIS = {
    "openreports.io/v1alpha1": "openreports.io_reports.yaml",
    "wgpolicyk8s.io/v1alpha2": "wgpolicyk8s.io_policyreports.yaml",
}


@contextlib.contextmanager
def served(plane, version):
    """An API for reports is installed: its version, and what its reports are called in paths."""
    definition = yaml.safe_load((CRDS / APIS[version]).read_text())
    plural = definition["spec"]["names"]["plural"]
    plane.api.request("POST", DEFINITIONS, definition)
    name, at = definition["metadata"]["name"], f"/apis/{version}/{plural}"
    try:
        eventually(lambda: plane.api.send("GET", at).status == 200)
        yield version, plural
    finally:
        plane.api.request("DELETE", f"{DEFINITIONS}/{name}")
        eventually(lambda: plane.api.send("GET", f"{DEFINITIONS}/{name}").status == 404)


def audit(plane, namespace, version):
    """The reports of one namespace, of those that the command line prints of the live cluster."""
    command = [PROGRAM, "audit", "--kubeconfig", plane.admin, "-o", "report", "--report-api", version]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert NO_INSTALLATION.fullmatch(ran.stderr)
    printed = ran.stdout.removeprefix("---\n").split("\n---\n")
    return "\n---\n".join(text for text in printed if f"\n  namespace: {namespace}\n" in text)


def accepted(plane, kubectl, namespace, version, plural, file):  # noqa: PLR0917 as the test has them
    """What is printed in one API is kept as it is; returns the UIDs of whom the reports belong to."""
    file.write_text(audit(plane, namespace, version))
    # Twice: what was there is replaced. kubectl asks the API server to refuse unknown and repeated fields.
    applied = [kubectl("apply", "--validate=strict", "-f", str(file)) for _ in range(2)]
    stored = items(plane, namespace, version, plural)
    table = kubectl("get", plural, "-n", namespace).out

    assert [(each.code, each.err) for each in applied] == [(0, ""), (0, "")]
    lines = [line for each in applied for line in each.out.splitlines()]
    assert [line.split()[-1] for line in lines] == ["created"] * 3 + ["unchanged"] * 3
    written = {each["metadata"]["name"]: each for each in yaml.safe_load_all(file.read_bytes())}
    assert {each["metadata"]["name"]: each["results"] for each in stored} == {
        name: each["results"] for name, each in written.items()
    }
    assert all(name in table for name in written)
    return sorted(each["metadata"]["ownerReferences"][0]["uid"] for each in stored)


def items(plane, namespace, version, plural):
    return plane.api.request("GET", f"/apis/{version}/namespaces/{namespace}/{plural}")["items"]


def test_reports_are_accepted_and_go_with_their_workload(plane, kubectl, namespace, tmp_path):
    wrong = constraint(labelSelector={"matchLabels": {"app": "old"}}, whenUnsatisfiable="ScheduleAnyway")
    for kind in ("Deployment", "StatefulSet", "Rollout"):
        plane.api.request("POST", path(kind, namespace), workload(kind, "web", wrong))
    listed = kubectl("get", "deployments,statefulsets,rollouts", "-n", namespace, "-o", "json").out
    owners = sorted(each["metadata"]["uid"] for each in json.loads(listed)["items"])
    # Both at once: the garbage collector looks for new APIs every 30 seconds.
    with contextlib.ExitStack() as stack:
        apis = [stack.enter_context(served(plane, version)) for version in APIS]
        for version, plural in apis:
            assert accepted(plane, kubectl, namespace, version, plural, tmp_path / f"{plural}.yaml") == owners
        plane.api.request("DELETE", path("Deployment", namespace, "web"))
        for version, plural in apis:
            eventually(lambda at=(version, plural): len(items(plane, namespace, *at)) == 2, timeout=90)
            left = {each["scope"]["kind"] for each in items(plane, namespace, version, plural)}
            assert left == {"StatefulSet", "Rollout"}
            kubectl("delete", plural, "-n", namespace, "-l", "app.kubernetes.io/managed-by=evenspread")
            assert items(plane, namespace, version, plural) == []
