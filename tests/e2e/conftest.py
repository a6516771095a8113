"""One real control plane for the whole run; each test has a namespace of its own in it."""

import copy
import itertools
import pathlib
import socket

import pytest
import yaml
from e2e.controlplane import flags
from e2e.controlplane.up import ControlPlane, built
from e2e.injected import injecting
from e2e.kubectl import Kubectl
from e2e.objects import ROLLOUT_CRD
from e2e.registration import registered
from e2e.served import certified, serving
from e2e.waiting import eventually

from webhook.core.rules.rule_set import RULES

NUMBERS = itertools.count(1)


def pytest_ignore_collect(config):
    """Only `make e2e` (-m e2e) runs these: the rest of the suite needs Python alone."""
    return None if config.option.markexpr == "e2e" else True


def pytest_itemcollected(item):
    item.add_marker("e2e")


@pytest.fixture(name="binaries", scope="session")
def _binaries() -> pathlib.Path:
    return built()


@pytest.fixture(name="pod_addresses_are_local", scope="session")
def _pod_addresses_are_local() -> bool:
    """Whether netns.sh has made the addresses of pods ours, so that a Service can be dialled."""
    with socket.socket() as sock:
        try:
            sock.bind(("10.64.0.1", 0))
        except OSError:
            return False
        return True


@pytest.fixture(name="pod_addresses")
def _pod_addresses(pod_addresses_are_local):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")


def with_probes(stages: str) -> str:
    """kwok runs no probes and calls every pod ready; those of the chart run, and are ready when our kubelet says so."""
    made = list(yaml.safe_load_all(stages))
    ready = next(stage for stage in made if stage["metadata"]["name"] == "pod-ready")
    ours = {"key": '.metadata.labels["app.kubernetes.io/name"]', "operator": "In", "values": ["evenspread"]}
    running = copy.deepcopy(ready)
    running["metadata"]["name"] = "pod-running"
    running["spec"]["selector"]["matchExpressions"].append(ours)
    ready["spec"]["selector"]["matchExpressions"].append({**ours, "operator": "NotIn"})
    template = running["spec"]["next"]["statusTemplate"].replace("ready: true", "ready: false")
    for kind in ("Ready", "ContainersReady"):
        template = template.replace(f'status: "True"\n  type: {kind}\n', f'status: "False"\n  type: {kind}\n')
    assert template.count('status: "False"') == 2
    running["spec"]["next"]["statusTemplate"] = template
    return yaml.safe_dump_all([*made, running])


def lasting_jobs(stages: str) -> str:
    """kwok completes the pods of Jobs at once, and the scheduler counts none of those; label `lasting` spares them."""
    made = list(yaml.safe_load_all(stages))
    completing = next(stage for stage in made if stage["metadata"]["name"] == "pod-complete")
    completing["spec"]["selector"]["matchExpressions"].append(
        {"key": '.metadata.labels["lasting"]', "operator": "DoesNotExist"}
    )
    return yaml.safe_dump_all(made)


@pytest.fixture(name="plane", scope="session")
def _plane(binaries, pod_addresses_are_local, tmp_path_factory):
    """Six nodes in three zones, and Argo's Rollout as a kind."""
    apiserver = flags.ENDPOINTS if pod_addresses_are_local else ()
    folder = tmp_path_factory.mktemp("plane")
    rollouts = {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "argoproj.io"}]}
    apiserver += flags.audit(folder, (rollouts,))
    (folder / "kwok.yaml").write_text(with_probes(lasting_jobs((binaries / "kwok-stages.yaml").read_text())))
    with ControlPlane(folder, binaries, apiserver=apiserver) as plane:
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


@pytest.fixture(name="denying", scope="session")
def _denying(plane, tmp_path_factory):
    """The webhook with every rule on deny."""
    folder = tmp_path_factory.mktemp("denying")
    rules = {rule.id: "deny" for rule in RULES}
    with serving(folder, {"ceiling": "deny", "rules": rules}, *certified(folder, plane.authority)) as webhook:
        yield webhook


@pytest.fixture(name="strict", scope="session")
def _strict(plane, tmp_path_factory):
    """The webhook with the ceiling on deny: what the API server itself would refuse is denied, the rest warned of."""
    folder = tmp_path_factory.mktemp("strict")
    # It does not watch: without the flag it would take the cluster for one of the newest release.
    release = plane.api.request("GET", "/version")["gitVersion"]
    flags = (f"--kube-version={release}", *certified(folder, plane.authority))
    with serving(folder, {"ceiling": "deny"}, *flags) as webhook:
        yield webhook


@pytest.fixture(name="webhook", scope="session")
def _webhook(plane, tmp_path_factory):
    """The webhook that watches the cluster and gives defaults."""
    with injecting(plane, tmp_path_factory.mktemp("injecting")) as webhook:
        yield webhook


@pytest.fixture(name="shop")
def _shop(plane, namespace, webhook):
    """A namespace in which pods get the defaults."""
    with registered(plane, namespace, webhook.server):
        yield namespace


@pytest.fixture(name="passing")
def _passing(plane, tmp_path):
    """A webhook of the test's own, to be killed, with the policy that everybody has who wrote none."""
    with serving(tmp_path, {}, *certified(tmp_path, plane.authority)) as webhook:
        yield webhook
