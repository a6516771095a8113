"""One real control plane for the whole run; each test has a namespace of its own in it."""

import itertools
import pathlib

import pytest
from e2e.controlplane.up import ControlPlane, built
from e2e.kubectl import Kubectl
from e2e.objects import ROLLOUT_CRD
from e2e.waiting import eventually

NUMBERS = itertools.count(1)


def pytest_ignore_collect(config):
    """Only `make e2e` (-m e2e) runs these: the rest of the suite needs Python alone."""
    return None if config.option.markexpr == "e2e" else True


def pytest_itemcollected(item):
    item.add_marker("e2e")


@pytest.fixture(name="binaries", scope="session")
def _binaries() -> pathlib.Path:
    return built()


@pytest.fixture(name="plane", scope="session")
def _plane(binaries, tmp_path_factory):
    """Six nodes in three zones, and Argo's Rollout as a kind."""
    with ControlPlane(tmp_path_factory.mktemp("plane"), binaries) as plane:
        plane.add_nodes({"a": 2, "b": 2, "c": 2})
        plane.await_nodes()
        plane.api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ROLLOUT_CRD)
        eventually(lambda: plane.api.send("GET", "/apis/argoproj.io/v1alpha1/rollouts").status == 200)
        yield plane


@pytest.fixture(name="kubectl", scope="session")
def _kubectl(plane, tmp_path_factory):
    return Kubectl(plane.binaries / "kubectl", plane.admin, tmp_path_factory.mktemp("home"))


@pytest.fixture(name="namespace")
def _namespace(plane):
    """A namespace whose service account exists; it is deleted afterwards, without waiting."""
    name = f"shop-{next(NUMBERS)}"
    path = f"/api/v1/namespaces/{name}"
    plane.api.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    eventually(lambda: plane.api.send("GET", f"{path}/serviceaccounts/default").status == 200)
    yield name
    plane.api.send("DELETE", path)
