"""What a kubelet does for the pods of the chart: their volumes, and a process in the place of the container.

kwok says that a pod runs; nothing does. Here the program runs on the pod's own address, with the arguments, the
configuration, the certificate and the account that its spec names, with a root that cannot be written, and with the
memory limit of its spec where this machine lets one be set.
"""

import base64
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import NamedTuple

from e2e.controlplane.up import ControlPlane, end_with_parent
from e2e.memory_group import MemoryGroup, memory_group
from e2e.served import PROGRAM
from e2e.waiting import eventually

# A mount namespace of its own: what is bound over /run stays writable, everything else on the root does not.
# Its number goes into the file that is named second: the entrance of its memory group.
CONTAINER = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'echo $$ >"$1" && shift && mount --bind "$0" /run && mount -o remount,ro,bind / && exec "$@"',
)


class Container(NamedTuple):
    process: subprocess.Popen
    address: str
    health: int
    folder: pathlib.Path  # what is /run in it
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

    def __init__(self, plane: ControlPlane, namespace: str, folder: pathlib.Path) -> None:
        self._plane = plane
        self._core = f"/api/v1/namespaces/{namespace}"
        self._folder = folder
        self._running: dict[str, Container] = {}

    @property
    def containers(self) -> list[Container]:
        return [*self._running.values()]

    def reviews(self, route: str) -> int:
        return sum(each.reviews(route) for each in self.containers)

    def sync(self, seconds: float = 30) -> None:
        """Bring volumes up to date, end containers whose pods are gone, start those of new ones, wait for all."""
        pods = {pod["metadata"]["name"]: pod for pod in self._plane.api.request("GET", f"{self._core}/pods")["items"]}
        for name in self._running.keys() - pods.keys():
            self._end(self._running.pop(name))
        for name, pod in pods.items():
            folder = self._folder / name
            self._mount(pod, folder)
            if name not in self._running:
                self._running[name] = self._start(pod, folder)
        for each in self.containers:
            eventually(lambda each=each: each.process.poll() is None and each.get("/readyz")[0] == 200, seconds)

    def stop(self) -> None:
        for each in self.containers:
            self._end(each)
        self._running.clear()

    @staticmethod
    def _end(container: Container) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(container.process.pid, signal.SIGKILL)
        container.process.wait(10)
        if container.group is not None:
            container.group.remove()

    def _mount(self, pod: dict, folder: pathlib.Path) -> None:
        """The volumes below /run, the account's token among them; /tmp is the program's TMPDIR."""
        spec = pod["spec"]
        paths = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        for volume in spec["volumes"]:
            where = paths[volume["name"]]
            for name, content in self._files(pod, volume).items():
                _replace(folder / where.removeprefix("/var").removeprefix("/run/") / name, content)
        (folder / "tmp").mkdir(parents=True, exist_ok=True)

    def _files(self, pod: dict, volume: dict) -> dict[str, bytes]:
        if "configMap" in volume:
            data = self._plane.api.request("GET", f"{self._core}/configmaps/{volume['configMap']['name']}")["data"]
            return {name: text.encode() for name, text in data.items()}
        if "secret" in volume:
            data = self._plane.api.request("GET", f"{self._core}/secrets/{volume['secret']['secretName']}")["data"]
            return {each["path"]: base64.b64decode(data[each["key"]]) for each in volume["secret"]["items"]}
        if "projected" in volume:  # what the ServiceAccount admission plugin adds
            account = f"{self._core}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            token = self._plane.api.request("POST", account, body)["status"]["token"]
            return {"token": token.encode(), "ca.crt": self._plane.authority.pem}
        return {}

    def _start(self, pod: dict, folder: pathlib.Path) -> Container:
        container, address = pod["spec"]["containers"][0], pod["status"]["podIP"]
        api = urllib.parse.urlsplit(self._plane.url)
        environment = {
            "KUBERNETES_SERVICE_HOST": str(api.hostname),
            "KUBERNETES_SERVICE_PORT": str(api.port),
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "TMPDIR": "/run/tmp",
        }
        arguments = [each.replace("0.0.0.0", address) for each in container["args"]]  # noqa: S104  a pod has a network
        group = memory_group()
        if group is not None:
            group.limit(int(container["resources"]["limits"]["memory"].removesuffix("Mi")))
        entrance = os.devnull if group is None else group.entrance
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*CONTAINER, folder, entrance, PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
            )
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        return Container(process, address, ports["health"], folder, group)


def _replace(file: pathlib.Path, content: bytes) -> None:
    """As the kubelet does: a reader sees the old file or the new one."""
    if file.exists() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}")
    fresh.write_bytes(content)
    fresh.replace(file)
