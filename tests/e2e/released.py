"""The chart as Helm installs it, in a namespace of its own; its pods are processes out of the image."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from e2e.controlplane.up import ControlPlane
from e2e.helm import WAIT, Helm, quiet
from e2e.kubelet import Kubelet
from e2e.waiting import eventually


@contextlib.contextmanager
def released(plane: ControlPlane, namespace: str, folder: Path, *values: str) -> Iterator[Kubelet]:
    """Until the end of the block, in which its pods are looked after."""
    helm = Helm(plane, namespace, folder)
    where = f"/api/v1/namespaces/{namespace}"
    eventually(lambda: plane.api.send("GET", where).status == 404, 60, every=0.5)
    plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    eventually(lambda: plane.api.send("GET", f"{where}/serviceaccounts/default").status == 200)
    kubelet = Kubelet(plane, namespace, folder / "pods")
    try:
        with kubelet.at_work():
            installed = helm("install", "evenspread", *values, *WAIT)
            assert (installed.returncode, quiet(installed.stderr)) == (0, "")
            yield kubelet
    finally:
        kubelet.stop()
        helm("uninstall", "evenspread")
        plane.api.send("DELETE", where)
