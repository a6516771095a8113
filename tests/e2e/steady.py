"""Two servers behind one Service, and a client that asks them at a steady rate as kube-apiserver would.

A Go net/http server is asked the same, a quarter as often, by a client of its own: where the machine stops for a moment
both show it.
"""

import concurrent.futures
import contextlib
import gc
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cluster.api import FakeApi
from e2e.controlplane.up import HOST
from e2e.waiting import eventually
from server.conftest import STRICT, Clock, Server, serving

from bench.serve import built, running
from bench.static_review import CASES
from certs.authority import LEAF_LIFE, issue_authority, issue_leaf
from certs.store import live_paths, write_pair

BODY = CASES["one warning"]  # denied, so that each request writes a line of the log
DRAIN_SECONDS = 3
ROOM = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class Load:
    """The client: bench/peer/steady.go says what it obeys."""

    def __init__(self, program: Path, ca: Path, body: Path, *ports: int, rate: int) -> None:
        where = " ".join(f"{HOST}:{port}" for port in ports)
        command = [program, "steady", "-ca", ca, "-body", body, "-rate", str(rate), "-peers", where]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def peers(self, *ports: int) -> None:
        """Where the Service leads from now on."""
        self._say(f"peers {' '.join(f'{HOST}:{port}' for port in ports)}")

    def trust(self, ca: Path) -> None:
        """As with another caBundle: new connections from now on."""
        self._say(f"trust {ca}")

    def burst(self, clients: int, requests: int) -> None:
        """So many clients of their own with so many requests each, all at once."""
        self._say(f"burst {clients} {requests}")

    def begin(self, phase: str, patience: int = 2) -> dict:
        """What came of the requests that were due since the phase before began, once all are answered.

        Unit: ``patience`` of the client is in seconds; those that take more than two are late.
        """
        return self._say(f"phase {patience}s {phase}")

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _say(self, line: str) -> dict:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class Town:
    """The two servers, what they read, and who asks them."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.api = FakeApi(tls=False, bookmark_seconds=5)
        self.authorities = [issue_authority(datetime.now(UTC), common_name=name) for name in ("one", "two")]
        bundles = [each.certificate for each in self.authorities]
        for name, content in {"one": bundles[0], "two": bundles[1], "both": b"".join(bundles)}.items():
            (folder / f"{name}.crt").write_bytes(content)
        self.policy(STRICT)
        self.clock = Clock(folder)  # of both servers
        self.certify()
        (folder / "review.json").write_bytes(BODY)
        self._blocks = [contextlib.ExitStack(), contextlib.ExitStack()]
        self._running: dict[int, Server] = {}
        self.load: Load
        self.beside: Load

    @property
    def servers(self) -> list[Server]:
        return [self._running[0], self._running[1]]

    @property
    def ports(self) -> list[int]:
        return [each.port for each in self.servers]

    def bundle(self, name: str) -> Path:
        """A CA bundle: one, two, or both."""
        return self.folder / f"{name}.crt"

    def policy(self, text: str) -> None:
        fresh = self.folder / "policy.new"
        fresh.write_text(text)
        fresh.replace(self.folder / "policy.yaml")

    def certify(self, authority: int = 0, life: timedelta = LEAF_LIFE) -> str:
        """Another leaf for both servers; its PEM."""
        leaf = issue_leaf(self.authorities[authority], ("localhost", HOST), datetime.now(UTC), life=life)
        write_pair(self.folder / "tls", leaf)
        return leaf.certificate.decode()

    def served(self) -> list[str]:
        """The PEM of both servers' leaves."""
        return [ssl.get_server_certificate((HOST, port)) for port in self.ports]

    def start(self, which: int, *, before: str = "", stalled: bool = False) -> None:
        """A process in that place, once it is ready; nobody is led to it yet."""
        certificate, key = map(str, live_paths(self.folder / "tls"))
        made = self._blocks[which].enter_context(
            serving(
                *("--cert", certificate, "--key", key, "--config", str(self.folder / "policy.yaml")),
                *("--kubeconfig", self.api.kubeconfig(self.folder), "--no-register"),
                *("--drain-seconds", str(DRAIN_SECONDS)),
                before=self.clock.code + before,
                stalled=stalled,
            )
        )
        eventually(lambda: made.get("/readyz")[0] == 200, 120)
        self._running[which] = made

    def again(self, which: int, *, before: str = "", stalled: bool = False) -> None:
        """Another process in the place of one that has ended."""
        self._blocks[which].close()
        self.start(which, before=before, stalled=stalled)
        self.load.peers(*self.ports)

    def without(self, which: int) -> None:
        """The Service leads nobody there any more."""
        self.load.peers(self.ports[1 - which])

    def pause(self, parts: int = 1) -> None:
        time.sleep(self.seconds / parts)

    def dialling(self, name: str, parts: int = 1) -> None:
        """A pause in which everything is asked over new connections, with that bundle."""
        until = time.monotonic() + self.seconds / parts
        while time.monotonic() < until:
            self.load.trust(self.bundle(name))
            time.sleep(0.2)

    def close(self) -> None:
        for each in self._blocks:
            each.close()
        self.api.__exit__()


@contextlib.contextmanager
def town(folder: Path, seconds: float, rate: int, pods: int) -> Iterator[Town]:
    """Everything started, and asked so often a second; a pause in it takes so many seconds."""
    with contextlib.ExitStack() as stack:
        made = Town(folder, seconds)
        stack.callback(made.close)
        _fill(made.api, pods)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            list(threads.map(made.start, (0, 1)))
        program = built()
        certificate, key = map(str, live_paths(folder / "tls"))
        command = [str(program), "serve", "-cert", certificate, "-key", key]
        _, line = stack.enter_context(running(command, {}, lambda line: ":" in line))
        given = program, made.bundle("both"), folder / "review.json"
        made.beside = Load(*given, int(line.rpartition(":")[2]), rate=rate // 4)
        stack.callback(made.beside.end)
        made.load = Load(*given, *made.ports, rate=rate)
        stack.callback(made.load.end)
        yield made


def _fill(api: FakeApi, pods: int) -> None:
    """A cluster of so many pods, thirty a node, which has room for eighty more.

    In a full one each review would also look for what is in the way, which is not what is measured here.
    """
    api.put("namespaces", "shop")
    for number in range(pods // 30):
        labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"z{number % 3}"}
        api.put("nodes", f"n{number}", metadata={"labels": labels}, status={"allocatable": ROOM})
    for number in range(pods):
        labels = {"app": f"app-{number // 150}"}
        spec = {"nodeName": f"n{number % (pods // 30)}", "containers": [{"name": "c"}]}
        api.put("pods", f"web-{number}", "shop", metadata={"labels": labels}, spec=spec)
    api.forget()  # no watch begins before all of it
    # The collector would look through millions of objects again and again, and nobody in this process could speak for
    # ten seconds, in the middle of a request too: the servers hang up on callers like that.
    gc.freeze()
