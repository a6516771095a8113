"""`evenspread webhook` as a process of its own: the program that users start, not a part of it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request
from typing import NamedTuple

from e2e.controlplane.authority import Authority
from e2e.controlplane.up import HOST, end_with_parent, free_ports, without_proxy
from e2e.registration import Server
from e2e.waiting import eventually

POLICY = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy"}
PROGRAM = pathlib.Path(sys.executable).parent / "evenspread"
# What a command says of a cluster without an installation.
NO_INSTALLATION = re.compile(r"cluster \S+: note: no ConfigMap of the evenspread chart: using the built-in policy.*\n")


class Webhook(NamedTuple):
    """One life of the process; `again` gives it another one on the same ports, with the same certificate."""

    process: subprocess.Popen
    arguments: tuple[str, ...]
    folder: pathlib.Path
    address: str
    port: int
    health: int

    @property
    def server(self) -> Server:
        return Server(f"https://{self.address}:{self.port}", (self.folder / "ca.crt").read_bytes())

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def configure(self, policy: dict) -> None:
        """Another policy, once it is in use."""
        loaded = self.log.count("configuration loaded")
        (self.folder / "policy.json").write_text(json.dumps(POLICY | policy))
        eventually(lambda: self.log.count("configuration loaded") > loaded)

    def again(self) -> "Webhook":
        return self._replace(process=_start(self.folder, self.arguments, self.health))

    def reviews(self, route: str) -> float:
        """How many requests the route has answered in this life."""
        return self.metric("evenspread_admission_requests_total", f'route="{route}"')

    def metric(self, name: str, label: str = "") -> float:
        """The sum of a metric over all of its labels, or over those lines that have this one."""
        with urllib.request.urlopen(f"http://{HOST}:{self.health}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for labels, value in found if label in labels)

    def workers(self) -> list[int]:
        return descendants(self.process.pid)

    def kill(self) -> None:
        """SIGKILL to all of it at once, as when the machine runs out of memory."""
        for pid in [self.process.pid, *self.workers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(5)


def _start(folder: pathlib.Path, arguments: tuple[str, ...], health: int) -> subprocess.Popen:
    """Started and ready."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [PROGRAM, "webhook", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=without_proxy(),
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
        )

    def ready() -> bool:
        if process.poll() is not None:
            raise AssertionError(f"it ended with {process.returncode}:\n{(folder / 'log').read_text()[-2000:]}")
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{HOST}:{health}/readyz", timeout=5) as answer,
        ):
            return answer.status == 200
        return False

    eventually(ready, 20)
    return process


def certified(folder: pathlib.Path, authority: Authority, *names: str) -> tuple[str, str]:
    """Flags for a certificate of the authority; without them the program makes an authority of its own."""
    certificate, key = authority.issue("webhook", names=names or (HOST,))
    for name, content in (("ca.crt", authority.pem), ("tls.crt", certificate), ("tls.key", key)):
        (folder / name).write_bytes(content)
    return f"--cert={folder}/tls.crt", f"--key={folder}/tls.key"


@contextlib.contextmanager
def serving(folder: pathlib.Path, policy: dict, *arguments: str, address: str = HOST):
    """The program with a policy file, until the end of the block; in a cluster its ports would be the chart's."""
    (folder / "policy.json").write_text(json.dumps(POLICY | policy))
    port, health = free_ports(2) if address == HOST else (10250, free_ports(1)[0])
    flags = (f"--config={folder}/policy.json", f"--bind={address}:{port}", f"--health-bind={HOST}:{health}", *arguments)
    webhook = Webhook(_start(folder, flags, health), flags, folder, address, port, health)
    try:
        yield webhook
    finally:
        webhook.kill()


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    found = _children(pid)
    for each in found:
        found += _children(each)
    return found


def _children(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError):  # it is dead
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
