"""Types commands as a person would, and makes a page of what is seen."""

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

from chart.rendered import CHART
from e2e.controlplane.up import ControlPlane
from e2e.helm import quiet
from e2e.kubelet import Kubelet
from e2e.served import PROGRAM
from e2e.waiting import eventually

PAGES = Path(__file__).parents[2] / "docs"


def changed(notes: str) -> str:
    """What an upgrade says that another does not."""
    told = re.findall(r"^  (?:denies|patches) .*\n|^Nothing is asked.*\n", notes, re.MULTILINE)
    return "".join([notes.partition("\n")[0], "\n…\n", *told, "…\n"])


class Terminal:
    """Types commands in a home with the chart, and keeps what is seen."""

    def __init__(self, plane: ControlPlane, home: Path, head: str) -> None:
        (home / "charts").symlink_to(CHART.parent)
        self._home = home
        self._environment = {"HOME": str(home), "KUBECONFIG": str(plane.admin), "NAMESPACE": "shop"}
        self._environment["PATH"] = f"{plane.binaries}:{PROGRAM.parent}:{os.environ['PATH']}"
        self._seen = [head]

    def begin(self, head: str) -> None:
        """Start another page."""
        self._seen = [head]

    def say(self, text: str) -> None:
        """Headings and paragraphs."""
        self._seen += [f"\n{textwrap.fill(each, 120)}\n" for each in text.split("\n\n")]

    def type(self, *commands: str) -> str:
        """Run the commands; gives what the last one printed."""
        printed = ""
        self._seen.append("\n```console\n")
        for command in commands:
            printed = self.run(command)
            shown = changed(printed) if command.startswith("helm upgrade") else printed
            self._seen.append(f"$ {command}\n{shown}")
        self._seen.append("```\n")
        return printed

    def run(self, command: str) -> str:
        """What a command prints, of which the page has nothing."""
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 the machine's
            cwd=self._home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # not into a file or pipe of the command
            text=True,
            timeout=120,
            check=False,
        )
        return quiet(done.stdout)

    def write(self, page: Path) -> None:
        """Write what was seen."""
        page.write_text(re.sub(r"[ \t]+$", "", "".join(self._seen), flags=re.MULTILINE))


def open_namespaces(plane: ControlPlane, *names: str) -> None:
    """Make them, and wait until pods can be created there."""
    for name in names:
        plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        where = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda where=where: plane.api.send("GET", where).status == 200)


def with_kubelet(plane: ControlPlane, namespace: str, home: Path, head: str) -> Iterator[Terminal]:
    """Yield a terminal while a kubelet runs the pods of the namespace."""
    kubelet = Kubelet(plane, namespace, home / "kubelet")
    try:
        with kubelet.at_work():
            yield Terminal(plane, home, head)
    finally:
        kubelet.stop()
