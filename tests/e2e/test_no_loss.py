"""No write is refused and no pod misses its defaults while the release is installed, changed, switched off and on.

Somebody creates Deployments and pods all the time. The steps are those from observe to deny, the runbook's switches,
and what people do by hand. The kubelet brings a changed ConfigMap to running pods late, as a real one does.
"""

import base64
import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from chart.rendered import CHART
from e2e.controlplane.up import ControlPlane
from e2e.injected import RECORD
from e2e.kubelet import Kubelet
from e2e.objects import ZONE, clean, path, pod
from e2e.terminal import open_namespaces
from e2e.test_switches import SWITCHES
from e2e.waiting import eventually

from certs.authority import issue_authority, issue_leaf

NAMESPACE = "evenspread"
WRITTEN = "payments"
UPGRADE = "helm upgrade evenspread charts/evenspread -n evenspread --reset-then-reuse-values --wait"
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "observe-to-deny.md").read_text()
EVERYBODY = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]
ONE_NAMESPACE = [
    {
        "name": "payments",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "payments"}},
        "defaultConstraints": EVERYBODY,
    }
]
DEFAULTS = (
    "--set config.defaults.mode=inject "
    f"--set-json 'config.defaults.overrides={json.dumps(ONE_NAMESPACE, separators=(',', ':'))}'"
)
# Long enough for some twenty writes of each kind beside other work on two cores.
AFTER_SECONDS = 1.5
TOO_FEW = 10  # writes show nothing. A busy machine needs longer for more


class Step(NamedTuple):
    """A command, and whether pods get defaults once it has returned.

    Shape: without ``keeps`` they may lack them while it runs.
    """

    name: str
    command: str
    injects: bool
    keeps: bool = True


class Write(NamedTuple):
    """Somebody's write. Unit: seconds of the monotonic clock."""

    began: float
    ended: float
    status: int
    message: str
    lacks_defaults: bool


class Row(NamedTuple):
    step: str
    writes: int
    seconds: float
    refused: list[str]
    without: int


def steps_of_the_page() -> Iterator[Step]:
    """docs/how-to/observe-to-deny.md; each beside a fresh `helm upgrade`."""
    for number, changes in enumerate(
        (
            "--set config.ceiling=audit",
            "--set config.ceiling=warn",
            '--set-json \'config.namespaces=[{"match":{"names":["payments"]},"ceiling":"deny"}]\'',
            "--set config.ceiling=deny",
            DEFAULTS,
            f"--set-json 'config.defaults.defaultConstraints={json.dumps(EVERYBODY)}'",
            "--set webhook.failurePolicy=Fail",
            "--set crds.install=true",
        ),
        1,
    ):
        injects = number >= 5
        yield Step(f"step {number}", f"{UPGRADE} {changes}", injects, keeps=number > 5)


def switches() -> Iterator[Step]:
    for number, _, switch, undo in SWITCHES:
        off = number in "45"
        yield Step(f"switch {number}", switch.strip(), injects=not off, keeps=not off)
        yield Step(f"switch {number} undone", undo.strip(), injects=True, keeps=not off)


def by_hand() -> Iterator[Step]:
    for what in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        stays = what.startswith("valid")
        yield Step(f"{what} deleted", f"kubectl delete {what} evenspread", injects=stays, keeps=stays)
        yield Step("and upgraded", UPGRADE, injects=True, keeps=stays)
    yield Step("defaults off", f"{UPGRADE} --set config.defaults.mode=observe", injects=False, keeps=False)
    yield Step("defaults on", f"{UPGRADE} --set config.defaults.mode=inject", injects=True, keeps=False)
    yield Step("nothing changes", UPGRADE, injects=True)
    yield Step("pods replaced", f"{UPGRADE} --set podLabels.a=b", injects=True)
    yield Step("rolled back", "helm rollback evenspread -n evenspread --wait", injects=True)
    yield Step("all switched off", f"{UPGRADE} --set webhook.enabled=false", injects=False, keeps=False)
    yield Step("rolled back", "helm rollback evenspread -n evenspread --wait", injects=True, keeps=False)


def of_its_own_ca() -> Iterator[Step]:
    yield Step("CA Secret deleted", "kubectl -n evenspread delete secret evenspread-ca", injects=True)
    yield Step("and upgraded", UPGRADE, injects=True)
    emptied = '[{"op":"remove","path":"/data"}]'
    empty = f"kubectl -n evenspread patch secret evenspread-ca --type=json -p='{emptied}' && sleep 8"
    yield Step("CA Secret emptied", empty, injects=True)


def of_certificates() -> Iterator[Step]:
    """Another `certificates.mode` under `Fail`, in three upgrades. In one step, it refuses writes for 20 s."""
    for mode in ("existingSecret", "self"):
        yield Step(f"to {mode}: Ignore", f"{UPGRADE} --set webhook.failurePolicy=Ignore", injects=True)
        yield Step(f"to {mode}", f"{UPGRADE} --set certificates.mode={mode}", injects=True, keeps=False)
        yield Step(f"to {mode}: Fail", f"{UPGRADE} --set webhook.failurePolicy=Fail", injects=True)


class Cluster:
    """A cluster without evenspread, a person with a shell, and somebody who writes."""

    def __init__(self, plane: ControlPlane, home: Path) -> None:
        (home / "charts").symlink_to(CHART.parent)
        self._plane = plane
        self._home = home
        self._environment = {"HOME": str(home), "KUBECONFIG": str(plane.admin), "NAMESPACE": WRITTEN}
        self._environment["PATH"] = f"{plane.binaries}:{os.environ['PATH']}"
        self._writes: list[Write] = []
        self.rows: list[Row] = []

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Meanwhile somebody creates Deployments and pods, only as a trial."""
        ended = threading.Event()

        def work(made: dict) -> None:
            with contextlib.closing(self._plane.connect()) as api:
                while not ended.wait(0.02):
                    began = time.monotonic()
                    answer = api.send("POST", f"{path(made['kind'], WRITTEN)}?dryRun=All", made)
                    annotated = answer.body.get("metadata", {}).get("annotations", {})
                    lacks = made["kind"] == "Pod" and RECORD not in annotated
                    self._writes.append(Write(began, time.monotonic(), answer.status, answer.message, lacks))

        threads = [threading.Thread(target=work, args=(made,)) for made in (clean("Deployment"), pod("web"))]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            ended.set()
            for each in threads:
                each.join()

    def play(self, steps: Iterable[Step]) -> None:
        """Type the command of each step, and count what was lost while it ran and once it had returned."""
        injected = False
        for step in steps:
            first, began = len(self._writes), time.monotonic()
            self._type(step.command)
            returned = time.monotonic()
            time.sleep(AFTER_SECONDS)
            eventually(lambda: len(self._writes) > first + TOO_FEW, 60)  # noqa: B023 called at once
            last = time.monotonic()
            made = [each for each in self._writes[first:] if each.ended <= last]
            counted = (injected and step.keeps and step.injects, step.injects)
            lost = [each for each in made if each.lacks_defaults and counted[each.began > returned]]
            refused = [each.message for each in made if each.status != 201]
            self.rows.append(Row(step.name, len(made), returned - began, refused, len(lost)))
            print(f"  {self.rows[-1].step}: {len(made)} writes, {returned - began:.1f} s,", end=" ")  # with -s
            print(f"{len(refused)} refused, {len(lost)} without defaults", *refused[:1], flush=True)
            assert len(made) > TOO_FEW
            injected = step.injects

    def _type(self, command: str) -> None:
        ran = subprocess.run(
            ["bash", "-euc", command],  # noqa: S607 the machine's
            cwd=self._home,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"


def secret_of_ours() -> dict:
    now = datetime.now(UTC)
    authority = issue_authority(now)
    leaf = issue_leaf(authority, [f"evenspread-webhook.{NAMESPACE}.svc"], now)
    held = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.certificate}
    data = {name: base64.b64encode(pem).decode() for name, pem in held.items()}
    return {"metadata": {"name": "evenspread-webhook-tls"}, "data": data}


@pytest.fixture(name="cluster")
def _cluster(plane, pod_addresses_are_local, tmp_path):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    open_namespaces(plane, NAMESPACE, WRITTEN)
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    plane.api.request("POST", path("Service", WRITTEN), service)
    kubelet = Kubelet(plane, NAMESPACE, tmp_path / "pods", brings_changes=False)
    made = Cluster(plane, tmp_path)
    try:
        with kubelet.at_work():
            yield made
    finally:
        kubelet.stop()
        subprocess.run(
            [plane.binaries / "helm", "uninstall", "evenspread", "-n", NAMESPACE],
            env={"HOME": str(tmp_path), "KUBECONFIG": str(plane.admin)},
            capture_output=True,
            check=False,
        )
        for name in (NAMESPACE, WRITTEN):
            plane.api.send("DELETE", f"/api/v1/namespaces/{name}")
        eventually(lambda: plane.api.send("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404, 60, every=0.5)
        eventually(lambda: plane.api.send("GET", f"/api/v1/namespaces/{WRITTEN}").status == 404, 60, every=0.5)


# What is played after an installation, by its name.
_LONG = os.environ.get("NO_LOSS") == "full"
# Without NO_LOSS=full, as in CI: three of the four parts, and both failure policies.
_SHORT = {("the page", "self", "Ignore"), ("switches", "self", "Fail"), ("the CA", "self", "Fail")}
PARTS = {
    "the page": steps_of_the_page,
    "switches": switches,
    "by hand": by_hand,
    "the CA": of_its_own_ca,
    "certificates": of_certificates,
}
# Parts that begin with the release's own certificates; the last one chooses the failure policy itself.
_OF_SELF = {"the CA", "certificates"}
CASES = [
    pytest.param(part, mode, policy, id=f"{part}, {mode}, {policy}")
    for part in PARTS
    for mode in ("self", "existingSecret")
    for policy in ("Ignore", "Fail")
    if (part not in _OF_SELF or mode == "self")
    and (part, policy) != ("certificates", "Ignore")
    and (_LONG or (part, mode, policy) in _SHORT)
]


@pytest.mark.parametrize(("part", "mode", "policy"), CASES)
def test_nothing_is_lost(plane, cluster, part, mode, policy):
    if mode == "existingSecret" or part == "certificates":
        plane.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", secret_of_ours())
    given = f"--set certificates.mode={mode} --set webhook.failurePolicy={policy} --set config.ceiling=deny"
    if part != "the page":  # which turns them on itself
        given += f" --set config.rules.selector-not-self=deny {DEFAULTS}"
    install = f"helm install evenspread charts/evenspread -n evenspread --create-namespace --wait {given}"
    uninstall = "helm uninstall evenspread -n evenspread"
    begin = Step("install", install, injects=part != "the page", keeps=False)
    end = Step("uninstall", uninstall, injects=False, keeps=False)
    with cluster.writing():
        cluster.play([begin, *PARTS[part](), end])

    assert [(row.step, row.refused[:1], row.without) for row in cluster.rows if row.refused or row.without] == []


@pytest.mark.parametrize(
    "said",
    [
        "--set config.ceiling=audit",
        "--set config.ceiling=warn",
        '--set-json \'config.namespaces=[{"match":{"names":["payments"]},"ceiling":"deny"}]\'',
        "--set config.ceiling=deny",
        "--set config.defaults.mode=inject",
        "config.defaults.defaultConstraints",
        "--set webhook.failurePolicy=Fail",
        "--set crds.install=true",
        UPGRADE,
    ],
)
def test_the_steps_are_those_of_the_page(said):
    assert said in PAGE
