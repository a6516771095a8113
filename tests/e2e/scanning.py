"""`evenspread controller` as processes of their own that scan, with the rights that the chart gives them."""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request
from typing import NamedTuple

from chart.rendered import ZERO, one
from e2e.controlplane.up import HOST, end_with_parent, free_ports, without_proxy
from e2e.served import PROGRAM
from e2e.waiting import eventually

NAMESPACE, NAME = "scanning", "evenspread-controller"
VALUES = {**ZERO, "crds": {"install": True}}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GRANTED = {
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "Lease": f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
}


def permit(plane, values=VALUES):
    """The account, the roles and the Lease of the chart with these values."""
    # It stays: one that is being deleted would be in the way of the next who asks for it.
    plane.api.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for kind, path in _GRANTED.items():
        plane.api.request("POST", path, one(kind, values, "controller", namespace=NAMESPACE))


def forbid(plane):
    """Take everything away again."""
    for path in _GRANTED.values():
        plane.api.send("DELETE", f"{path}/{NAME}")


class Scanning(NamedTuple):
    """One replica."""

    process: subprocess.Popen
    health: int
    folder: pathlib.Path

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def scans(self) -> int:
        """How many have ended."""
        return self.log.count('"scanned"')

    def page(self, path: str) -> str:
        """What its health port answers, whatever the status; waited for, since a machine may stand still.

        Errors: AssertionError if the process has ended, or does not answer at all.
        """
        return eventually(lambda: self._page(path), every=0.1)

    def _page(self, path: str) -> str:
        assert self.process.poll() is None, f"it has ended with {self.process.returncode}"
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.health}{path}", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError:
            return ""

    def metric(self, name: str, label: str = "") -> float | None:
        """The sum of a metric over the lines that have the label; None where there is none."""
        found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", self.page("/metrics"), re.MULTILINE)
        values = [float(value) for labels, value in found if label in labels]
        return sum(values) if values else None

    def scanned(self) -> None:
        """Wait until a scan that begins now has ended."""
        name = "evenspread_scan_last_success_timestamp_seconds"
        for _ in range(2):
            before = self.metric(name)
            eventually(lambda before=before: self.metric(name) not in {None, before}, timeout=60, every=0.1)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


@contextlib.contextmanager
def scanning(folder: pathlib.Path, kubeconfig: pathlib.Path, *more: str):
    """A replica that scans every two seconds."""
    folder.mkdir()
    (health,) = free_ports(1)
    command = [
        PROGRAM,
        "controller",
        "--scan",
        "--scan-full-interval",
        "2s",
        "--scan-interval",
        "2s",
        "--scan-share",
        "1",
        "--kubeconfig",
        kubeconfig,
        *more,
    ]
    command += ["--lease", f"{NAMESPACE}/{NAME}", "--health-bind", f"{HOST}:{health}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(each) for each in command],
            stderr=log,
            env=without_proxy(),
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
        )
    try:
        yield Scanning(process, health, folder)
    finally:
        process.kill()
        code, log = process.wait(), (folder / "log").read_text(errors="replace")
        print(f"{folder.name} ended with {code}. Its log:\n{log}")


def permissions(kubectl, *, without=()) -> None:
    """The chart's role, but for what it says of some API groups."""
    role = one("ClusterRole", VALUES, "controller", namespace=NAMESPACE)
    rules = [rule for rule in role["rules"] if not {*rule["apiGroups"]} & {*without}]
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    assert kubectl("patch", "clusterrole", NAME, "--type", "json", "-p", patch).code == 0
