"""Start and stop a real control plane on loopback.

    python -m e2e.controlplane.up start DIR [--nodes 2 --zones a,b,c] [--audit] [--endpoints]
    export KUBECONFIG=DIR/admin.kubeconfig
    python -m e2e.controlplane.up stop DIR

or, from a test:

    with ControlPlane(directory, binaries) as plane:
        plane.add_nodes({"a": 2, "b": 2, "c": 2})
        plane.await_nodes()

Everything listens on 127.0.0.1 and free ports; every process ends with `stop` (by pid) and, when started from Python,
with the process that started it.
"""

import argparse
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from typing import Self

from cryptography.hazmat.primitives.asymmetric import ec
from e2e.controlplane import flags
from e2e.controlplane.api import Api, ApiError
from e2e.controlplane.authority import Authority, private_pem, public_pem
from e2e.waiting import BUSY

HOST = flags.HOST
_PORTS = range(11_000, 30_000)  # below those of Services and of connections, above those of Kubernetes
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
SERVED_NAMES = (HOST, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1")


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens.

    Linux gives none of them to a connection, unless somebody told it to: what is started on them takes a second until
    it listens, and other tests open thousands of connections meanwhile.
    """
    found = list[int]()
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):  # tests that run beside these draw others
        if len(found) == count:
            return found
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind((HOST, port))
            found.append(port)
    raise OSError(f"no {count} ports are free")


def end_with_parent() -> None:
    """Between fork and exec: the kernel ends this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def without_proxy() -> dict[str, str]:
    """The environment; a proxy set for the build would be asked for webhooks that are not on loopback."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


class ControlPlane:
    def __init__(
        self,
        directory: pathlib.Path,
        binaries: pathlib.Path,
        *,
        detach: bool = False,
        apiserver: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory.resolve()
        self.binaries = binaries.resolve()
        self.detach = detach
        self.apiserver = apiserver  # further flags: flags.ENDPOINTS, flags.audit(directory)
        self.admin = self.directory / "admin.kubeconfig"
        self.api: Api | None = None  # as admin; for the thread that started it
        self.timings: dict[str, float] = {}
        self._processes: dict[str, subprocess.Popen] = {}
        self._begun = 0.0

    # -- life

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = 60) -> Self:
        self.stop()  # what an earlier start may have left in this directory
        self._begun = time.monotonic()
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in ("etcd", "logs", "pids"):
            shutil.rmtree(self.directory / leftover, ignore_errors=True)
        for folder in ("logs", "pids"):
            (self.directory / folder).mkdir()
        names = ("etcd", "peer", "api", "scheduler", "controllers", "kwok")
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.url = f"https://{HOST}:{ports['api']}"
        self.etcd = f"http://{HOST}:{ports['etcd']}"
        self._write_credentials()
        self._mark("certificates")
        here = self.directory
        self._spawn("etcd", flags.etcd(here, ports))
        self._spawn("kube-apiserver", [*flags.apiserver(here, ports), *self.apiserver])
        self._await("/readyz", timeout)
        self._mark("API server ready")
        for name, arguments in (
            ("kube-controller-manager", flags.controllers(here, ports)),
            ("kube-scheduler", flags.scheduler(here, ports)),
            ("kwok", flags.kwok(here, ports, self.binaries)),
        ):
            self._spawn(name, arguments)
        self._await("/api/v1/namespaces/default/serviceaccounts/default", timeout)
        self._mark("default service account")
        return self

    def stop(self, grace: float = 10) -> None:
        """End what this directory's pid files name, in reverse order of start."""
        for name in [name for name in reversed(COMPONENTS) if (self.directory / "pids" / name).exists()]:
            file = self.directory / "pids" / name
            pid = int(file.read_text())
            process = self._processes.get(name)
            # Nothing here is worth a graceful shutdown (the API server alone would wait for its watches).
            if process is not None or _runs(pid, name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if process is not None:
                process.wait(grace)
            file.unlink()
        self._processes.clear()
        if self.api is not None:
            self.api.close()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def kill(self, name: str) -> None:
        """SIGKILL to one component, until `revive`."""
        process = self._processes[name]
        process.kill()
        process.wait(10)

    def revive(self, name: str, timeout: float = 60) -> None:
        """Start a component that was killed, as it was, and wait for the API."""
        self._spawn(name, self._processes[name].args[1:])
        self._await("/readyz", timeout)

    def _mark(self, what: str) -> None:
        self.timings[what] = round(time.monotonic() - self._begun, 2)

    def _spawn(self, name: str, arguments: list[str]) -> None:
        with (self.directory / "logs" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self.binaries / name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=without_proxy(),
                start_new_session=self.detach,
                preexec_fn=None if self.detach else end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
            )
        self._processes[name] = process
        (self.directory / "pids" / name).write_text(str(process.pid))

    def _await(self, path: str, timeout: float) -> None:
        deadline = time.monotonic() + BUSY * timeout
        while True:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    tail = (self.directory / "logs" / f"{name}.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{tail}")
            with contextlib.suppress(OSError, ApiError):
                self.api.request("GET", path)
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} did not answer within {BUSY * timeout:g} s; see {self.directory / 'logs'}")
            time.sleep(0.05)

    # -- credentials

    def _write_credentials(self) -> None:
        self.authority = Authority()
        (self.directory / "ca.crt").write_bytes(self.authority.pem)
        self._pair("apiserver", *self.authority.issue("kube-apiserver", names=SERVED_NAMES))
        self._pair("front-proxy", *self.authority.issue("front-proxy-client"))
        key = ec.generate_private_key(ec.SECP256R1())
        self._private("sa.key", private_pem(key))
        (self.directory / "sa.pub").write_bytes(public_pem(key))
        self.kubeconfig("admin", "admin", ("system:masters",))
        self.kubeconfig("scheduler", "system:kube-scheduler")
        self.kubeconfig("controllers", "system:kube-controller-manager")
        self.kubeconfig("kwok", "kwok-controller", ("system:masters",))
        self.api = self.connect()

    def _private(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _pair(self, name: str, certificate: bytes, key: bytes) -> None:
        (self.directory / f"{name}.crt").write_bytes(certificate)
        self._private(f"{name}.key", key)

    def kubeconfig(self, name: str, user: str, groups: tuple[str, ...] = ()) -> pathlib.Path:
        """A kubeconfig with a client certificate for any user and groups (RBAC decides what it may do)."""
        certificate, key = self.authority.issue(user, groups)
        self._pair(name, certificate, key)
        credentials = {
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
        return self._kubeconfig(name, credentials)

    def service_account(self, namespace: str, name: str, seconds: int = 3600) -> pathlib.Path:
        """A kubeconfig that holds a bound token of an existing service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        token = self.api.request("POST", path, body)["status"]["token"]
        return self._kubeconfig(f"{namespace}.{name}", {"token": token})

    def _kubeconfig(self, name: str, user: dict[str, str]) -> pathlib.Path:
        path = self.directory / f"{name}.kubeconfig"
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(self.authority.pem).decode(),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}],
            "current-context": "local",
        }
        self._private(path.name, json.dumps(content, indent=1).encode())
        return path

    # -- the API

    def connect(self) -> Api:
        """A further connection as admin: each thread needs its own, and closes it."""
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        context.load_cert_chain(self.directory / "admin.crt", self.directory / "admin.key")
        return Api(self.url, context)

    def add_nodes(self, zones: dict[str, int], cpu: str = "8", memory: str = "32Gi", pods: str = "110") -> None:
        """Nodes `node-<zone>-<n>` with the well-known labels; kwok makes them Ready."""
        amounts = {"cpu": cpu, "memory": memory, "pods": pods}
        for zone, count in zones.items():
            for number in range(count):
                name = f"node-{zone}-{number}"
                labels = {
                    "kubernetes.io/hostname": name,
                    "topology.kubernetes.io/zone": zone,
                    "topology.kubernetes.io/region": "local",
                    "kubernetes.io/os": "linux",
                }
                node = {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": labels},
                    "status": {"allocatable": amounts, "capacity": amounts},
                }
                self.api.request("POST", "/api/v1/nodes", node)

    def await_nodes(self, timeout: float = 30) -> None:
        deadline = time.monotonic() + BUSY * timeout
        while time.monotonic() < deadline:
            nodes = self.api.request("GET", "/api/v1/nodes")["items"]
            if nodes and all(_ready(node) for node in nodes):
                self._mark("nodes ready")
                return
            time.sleep(0.05)
        raise TimeoutError("nodes are not Ready")


def _runs(pid: int, name: str) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(f"/{name}".encode())
    except OSError:
        return False


def _ready(node: dict) -> bool:
    conditions = node["status"].get("conditions", ())
    return not node["spec"].get("taints") and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def built(*names: str) -> pathlib.Path:
    """The folder with the binaries, built where they are missing.

    Shape: of the release that EVENSPREAD_RELEASE names, else of the newest.
    Errors: subprocess.CalledProcessError when they cannot be built; the script has said why.
    """
    here, release = pathlib.Path(__file__).parent, os.environ.get("EVENSPREAD_RELEASE")
    command = [here / "older.sh", release] if release else [here / "build.sh", *names]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(ran.stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("start", "stop"))
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--zones", default="a,b,c")
    parser.add_argument("--nodes", type=int, default=2, help="nodes for each zone")
    parser.add_argument("--audit", action="store_true", help="write audit.log with whole pods")
    parser.add_argument("--endpoints", action="store_true", help="reach webhook Services through their pods (netns.sh)")
    arguments = parser.parse_args()
    if arguments.command == "stop":
        ControlPlane(arguments.directory, arguments.directory).stop()
        return
    apiserver = flags.ENDPOINTS if arguments.endpoints else ()
    if arguments.audit:
        apiserver += flags.audit(arguments.directory)
    plane = ControlPlane(arguments.directory, built(), detach=True, apiserver=apiserver)
    try:
        plane.start()
        plane.add_nodes({zone: arguments.nodes for zone in arguments.zones.split(",") if zone})
        plane.await_nodes()
    except BaseException:
        plane.stop()
        raise
    print(json.dumps(plane.timings), file=sys.stderr)
    print(f"export KUBECONFIG={plane.admin} PATH={plane.binaries}:$PATH")


if __name__ == "__main__":
    main()
