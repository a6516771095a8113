"""The console for a browser: over a file, or over a cluster that changes."""

import json
import os
from contextlib import contextmanager

from manifest import workload
from msgspec.structs import replace

from cli.snapshots import ZONE, node, running  # isort: skip  # of the tests, not of the program
from webhook.cli.commands.webhook.example import CLUSTER, POLICY
from webhook.cli.console_sources import WHAT_IF_WORKER, computed_once, shown_file
from webhook.cli.frame import Frame
from webhook.config import load_policy
from webhook.console.app import create_console
from webhook.console.rendering import single_file
from webhook.console.serving import ConsoleServer
from webhook.console.what_if import Simulator

EXAMPLE = CLUSTER
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "' onmouseover='window.hacked=1",
    "{{ 7*7 }}<!--",
    "\u202egnp.exe" + "x" * 300,
)
_HARD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def cluster_of(names, folder):
    """A snapshot with a Deployment of each name, all of its pods in one zone, and each name wherever there is room."""
    lines = [{"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "resources": []}]
    lines += [node("n1", names[0]), node("n2", "b")]
    for number, name in enumerate(names):
        labels = f"app=app-{number}"
        spread = {**_HARD, "labelSelector": {"matchLabels": {"app": f"app-{number}"}}}
        lines.append(workload("Deployment", labels, spread, meta={"name": name, "namespace": "shop"}, replicas=2))
        for pod in range(2):
            made = running(f"app-{number}-{pod}", "n1")
            made["metadata"] |= {"labels": {"app": f"app-{number}"}}
            lines.append(made)
    file = folder / "cluster.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return file


def looked_at(file):
    """What the console shows of a file."""
    return shown_file(str(file), Frame(policy=load_policy(str(POLICY)).policy, today="2026-11-23"))


def file_of(file):
    """The file that `audit -o html` makes of it."""
    found = looked_at(file)
    return single_file(found, found.scan)


class Changing:
    """A live cluster: what it shows can be replaced."""

    def __init__(self, shown):
        self.shown = replace(shown, live=True)

    def __call__(self):
        return self.shown

    def change(self):
        """Another scan has ended."""
        self.shown = replace(self.shown, source="another cluster")


@contextmanager
def serving(file, source=None):
    """The address of a console over a file, or over a source."""
    simulator = Simulator(WHAT_IF_WORKER, ("--snapshot", os.path.relpath(file), "--config", os.path.relpath(POLICY)))
    app = create_console(source or computed_once(lambda: looked_at(file)), simulator)
    with ConsoleServer("127.0.0.1", 0, app) as server:
        server.start()
        try:
            yield server.url
        finally:
            server.shutdown()
