"""Helm, as people call it."""

import re
import subprocess

from chart.rendered import CHART
from e2e.waiting import BUSY

WAIT = ("--wait", "--timeout", f"{45 * BUSY}s")


class Helm:
    """The program, for releases in one namespace."""

    def __init__(self, plane, namespace, home):
        self._namespace = namespace
        self._program = plane.binaries / "helm"
        self._environment = {"HOME": str(home), "KUBECONFIG": str(plane.admin), "PATH": "/usr/bin:/bin"}

    def __call__(self, command, release, *arguments, namespace=None, chart=CHART):
        charts = (chart,) if command in {"install", "upgrade"} else ()
        return subprocess.run(
            [self._program, command, release, *charts, "-n", namespace or self._namespace, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60 * BUSY,
            check=False,
        )


def quiet(stderr):
    """What helm says, without what its client library logs of a watch that helm itself gives up: `--wait` is done."""
    return re.sub(r"^[IWE]\d{4} [^\n]*\bcontext canceled\b[^\n]*\n", "", stderr, flags=re.MULTILINE)
