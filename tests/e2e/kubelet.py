"""What a kubelet does for the pods of the chart: their volumes, and a process in the place of the container.

kwok says that a pod runs; nothing does. Here the program runs on the pod's own address, out of the image that
`make image` has built (image/run.py), with the arguments, the configuration, the certificate and the account that its
spec names, and with the memory limit of its spec where this machine lets one be set. A pod is ready when its /readyz
says so: conftest keeps kwok from saying it of these pods.
"""

import base64
import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import NamedTuple

from e2e.controlplane.api import ApiError
from e2e.controlplane.up import ControlPlane, end_with_parent
from e2e.memory_group import MemoryGroup, memory_group
from e2e.waiting import BUSY

from image import run

_GRACE_SECONDS = 30.0  # terminationGracePeriodSeconds of the chart's pods
IMAGE = pathlib.Path(__file__).parents[2] / "dist" / "image"


class Container(NamedTuple):
    role: str
    process: subprocess.Popen
    address: str
    health: int
    folder: pathlib.Path  # with its log, and its volumes by the paths that they have in it
    group: MemoryGroup | None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page on the health port; status 0 where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:{self.health}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def reviews(self, route: str) -> int:
        """How many requests the route has answered."""
        found = re.findall(rf'requests_total{{.*route="{route}".*}} (\S+)$', self.get("/metrics")[1], re.MULTILINE)
        return int(sum(map(float, found)))


class Kubelet:
    """For the pods of one namespace."""

    def __init__(
        self, plane: ControlPlane, namespace: str, folder: pathlib.Path, *, brings_changes: bool = True
    ) -> None:
        """Without ``brings_changes`` a running pod keeps its ConfigMap: a real kubelet takes a minute or two."""
        self._brings_changes = brings_changes
        self._plane = plane
        # One thread does it all, and lives as long as what it starts: containers end with the thread that started them.
        self._worker = concurrent.futures.ThreadPoolExecutor(1)
        self._api = plane.connect()
        self._core = f"/api/v1/namespaces/{namespace}"
        self._folder = folder
        self._running: dict[str, Container] = {}
        self._ready: dict[str, bool] = {}
        self._leaving: list[Container] = []
        self._killed_at: dict[int, float] = {}

    @property
    def containers(self) -> list[Container]:
        """Of the webhook."""
        return self.of("webhook")

    def of(self, role: str) -> list[Container]:
        return [each for each in [*self._running.values()] if each.role == role]

    def reviews(self, route: str) -> int:
        return sum(each.reviews(route) for each in self.containers)

    @contextlib.contextmanager
    def at_work(self):
        """Within the block it does all the time what a kubelet does; what the block waits for can come."""
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(0.1):
                self._turn()

        working = self._worker.submit(work)
        try:
            yield
        finally:
            ended.set()
            working.result()

    def sync(self, seconds: float = 30) -> None:
        """Bring volumes up to date, end containers whose pods are gone, start those of new ones, wait for all."""
        deadline = time.monotonic() + BUSY * seconds
        while not self._worker.submit(self._turn).result() or self._leaving:
            if time.monotonic() > deadline:
                raise AssertionError({name: self._running[name].get("/readyz") for name in self._running})
            time.sleep(0.05)

    def stop(self) -> None:
        for each in [*self._running.values(), *self._leaving]:
            self._end(each)
        self._running.clear()
        self._ready.clear()
        self._leaving.clear()
        self._api.close()

    def _turn(self) -> bool:
        """Whether all pods have a container that is ready."""
        pods = {pod["metadata"]["name"]: pod for pod in self._api.request("GET", f"{self._core}/pods")["items"]}
        for name in self._running.keys() - pods.keys():
            self._ready.pop(name, None)
            self._leaving.append(self._running.pop(name))
            self._leaving[-1].process.send_signal(signal.SIGTERM)
            self._killed_at[self._leaving[-1].process.pid] = time.monotonic() + _GRACE_SECONDS
        for each in [*self._leaving]:
            # The first process of a namespace misses a signal that comes before it listens to signals.
            if each.process.poll() is not None or time.monotonic() > self._killed_at[each.process.pid]:
                self._leaving.remove(each)
                self._end(each)
        placed = {name: pod for name, pod in pods.items() if pod["status"].get("podIP")}
        for name, pod in placed.items():
            folder = self._folder / name
            try:
                self._mount(pod, folder, anew=name not in self._running)
            except ApiError as error:
                if error.answer.status != 404:
                    raise
                continue  # a pod waits for its volumes; one that runs keeps what it has
            # kwok gives an address away when its pod is deleted; in a cluster it is free when the container has ended.
            held = any(each.address == pod["status"]["podIP"] for each in self._leaving)
            if name not in self._running and not held:
                self._running[name] = self._start(pod, folder)
        for name, each in self._running.items():
            ready = each.process.poll() is None and each.get("/readyz")[0] == 200
            if ready != self._ready.get(name, False):
                self._tell(name, ready=ready)
                self._ready[name] = ready
        return len(placed) == len(pods) and all(self._ready.get(name, False) for name in pods)

    def _tell(self, name: str, *, ready: bool) -> None:
        said = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
        patch = {"status": {"conditions": said}}
        self._api.send("PATCH", f"{self._core}/pods/{name}/status", patch, "application/strategic-merge-patch+json")

    @staticmethod
    def _end(container: Container) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(container.process.pid, signal.SIGKILL)
        container.process.wait(10)
        if container.group is not None:
            container.group.remove()

    def _mount(self, pod: dict, folder: pathlib.Path, *, anew: bool) -> None:
        """The volumes below /run, the account's token among them."""
        spec = pod["spec"]
        paths = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        for volume in spec["volumes"]:
            if not anew and ("projected" in volume or ("configMap" in volume and not self._brings_changes)):
                continue
            where = paths[volume["name"]]
            for name, content in self._files(pod, volume).items():
                _replace(folder / where.lstrip("/") / name, content)

    def _files(self, pod: dict, volume: dict) -> dict[str, bytes]:
        if "configMap" in volume:
            data = self._api.request("GET", f"{self._core}/configmaps/{volume['configMap']['name']}")["data"]
            return {name: text.encode() for name, text in data.items()}
        if "secret" in volume:
            data = self._api.request("GET", f"{self._core}/secrets/{volume['secret']['secretName']}")["data"]
            return {each["path"]: base64.b64decode(data[each["key"]]) for each in volume["secret"]["items"]}
        if "projected" in volume:  # what the ServiceAccount admission plugin adds
            account = f"{self._core}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            token = self._api.request("POST", account, body)["status"]["token"]
            return {"token": token.encode(), "ca.crt": self._plane.authority.pem}
        return {}

    def _start(self, pod: dict, folder: pathlib.Path) -> Container:
        container, address = pod["spec"]["containers"][0], pod["status"]["podIP"]
        api = urllib.parse.urlsplit(self._plane.url)
        options = [f"--env=KUBERNETES_SERVICE_HOST={api.hostname}", f"--env=KUBERNETES_SERVICE_PORT={api.port}"]
        for each in container["volumeMounts"]:
            given = folder / each["mountPath"].lstrip("/")
            # What is not there is an emptyDir.
            options.append(f"--bind={given}:{each['mountPath']}" if given.exists() else f"--tmpfs={each['mountPath']}")
        arguments = [each.replace("0.0.0.0", address) for each in container["args"]]  # noqa: S104  a pod has a network
        group = memory_group()
        if group is not None:
            group.limit(int(container["resources"]["limits"]["memory"].removesuffix("Mi")))
            options.append(f"--cgroup={group.entrance}")
        with (folder / "log").open("ab") as log:
            assert IMAGE.is_dir(), "there is no image: make image"
            process = subprocess.Popen(
                [sys.executable, run.__file__, IMAGE, *options, "--", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
            )
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        return Container(container["name"], process, address, ports["health"], folder, group)


def _replace(file: pathlib.Path, content: bytes) -> None:
    """As the kubelet does: a reader sees the old file or the new one."""
    if file.exists() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}")
    fresh.write_bytes(content)
    fresh.replace(file)
