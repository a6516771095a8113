"""Scale-ins by the real controller: the pods it removes are those of the forecast, and the guard keeps zones even.

`EVENSPREAD_SEED=n` repeats a run, `SCALE_INS=200` makes a longer one. `-s` prints how even the zones were.
"""

import collections
import os
import random
import time

import pytest
from chart.rendered import one
from e2e.kubectl import Kubectl
from e2e.objects import ZONE, constraint, path, pod, workload
from e2e.scanning import NAME, NAMESPACE, VALUES, forbid, permit, scanning
from e2e.test_reports import served
from e2e.waiting import eventually
from msgspec import convert

from webhook.core.pods_to_remove.removal_order import removal_groups
from webhook.core.pods_to_remove.running_pod import RemovalFields, active_pod

SEED = int(os.environ.get("EVENSPREAD_SEED") or time.time())
SCALE_INS = int(os.environ.get("SCALE_INS") or 12)
MOST = 12
GUARDED = VALUES | {"controller": {"scaleIn": {"guard": True}}}
POLICIES = {
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
COST, MODE = "controller.kubernetes.io/pod-deletion-cost", "evenspread.io/scale-in"
# Between our clock at the forecast and the controller's when it sorts: ages may change their bucket.
DELAYS = range(6)


def running(api, namespace):
    """The active pods by name, once all of them are ready."""
    items = api.request("GET", path("Pod", namespace))["items"]
    pods = [pod for pod in (active_pod(convert(each, RemovalFields)) for each in items) if pod is not None]
    return {pod.name: pod for pod in pods} if all(pod.ready for pod in pods) else {}


def scaled(api, namespace, replicas):
    """The pods at that number of replicas."""
    patch = {"spec": {"replicas": replicas}}
    where = f"{path('Deployment', namespace)}/web/scale"
    api.request("PATCH", where, patch, "application/merge-patch+json")
    return eventually(lambda: pods if len(pods := running(api, namespace)) == replicas else None, 30, 0.1)


def annotate(api, namespace, name, cost):
    patch = {"metadata": {"annotations": {COST: cost}}}
    api.request("PATCH", f"{path('Pod', namespace)}/{name}", patch, "application/merge-patch+json")


def zones_of(api):
    nodes = api.request("GET", "/api/v1/nodes")["items"]
    return {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in nodes}


def skew(pods, zones):
    counts = collections.Counter(dict.fromkeys(zones.values(), 0))
    counts.update(zones[pod.node] for pod in pods)
    return max(counts.values()) - min(counts.values())


def guard_states(api, namespace, reports):
    """The guard's state in each result of a report that has one."""
    version, plural = reports
    items = api.request("GET", f"/apis/{version}/namespaces/{namespace}/{plural}")["items"]
    found = [result["properties"] for each in items for result in each["results"]]
    return [each["scaleInGuard"] for each in found if "scaleInGuard" in each]


def costs_keep_even(pods, zones):
    """Whether every pod has a cost of its own, and each removal by cost leaves a skew of at most 1."""
    order = sorted(pods.values(), key=lambda pod: pod.deletion_cost)
    costs = {pod.deletion_cost for pod in order} - {0}
    return len(costs) == len(order) > 0 and all(skew(order[gone:], zones) <= 1 for gone in range(len(order)))


def follows(groups, gone):
    """Whether the removed pods are whole groups, and then some of the next one."""
    left = set(gone)
    for group in groups:
        names = {pod.name for pod in group}
        if not names <= left:
            return left <= names
        left -= names
    return not left


def test_the_controller_removes_the_pods_of_the_forecast(plane, namespace):
    choose = random.Random(SEED)  # noqa: S311  cases, not secrets
    api, zones, skews, wrong = plane.api, zones_of(plane.api), collections.Counter(), []
    api.request("POST", path("Deployment", namespace), workload("Deployment", "web", constraint(), replicas=MOST))
    eventually(lambda: len(running(api, namespace)) == MOST, 60, 0.1)
    for _ in range(SCALE_INS):
        before = scaled(api, namespace, MOST)
        for name in choose.sample(sorted(before), choose.choice([0, 0, 2, 4])):
            annotate(api, namespace, name, str(choose.randint(-2, 2)))
        before, at = running(api, namespace), time.time_ns()
        related = collections.Counter(pod.node for pod in before.values())
        orders = [removal_groups(before.values(), related, at + delay * 10**9) for delay in DELAYS]
        kept = scaled(api, namespace, choose.randint(1, MOST - 1))
        gone = before.keys() - kept.keys()
        skews[skew(kept.values(), zones)] += 1
        if not any(follows(groups, gone) for groups in orders):
            wrong.append((sorted(gone), [[pod.name for pod in group] for group in orders[0]]))
    print(f"unguarded, by skew after a scale-in: {dict(sorted(skews.items()))}")
    assert wrong == [], f"EVENSPREAD_SEED={SEED} repeats it"
    assert skews.total() == SCALE_INS


@pytest.fixture(name="account")
def _account(plane):
    """The controller's account, with the chart's right to patch pods and the policy that limits it."""
    permit(plane, GUARDED)
    for kind, where in POLICIES.items():
        plane.api.request("POST", where, one(kind, GUARDED, "controller", namespace=NAMESPACE))
    yield eventually(lambda: plane.service_account(NAMESPACE, NAME))
    for where in POLICIES.values():
        plane.api.send("DELETE", f"{where}/{NAME}-scale-in")
    forbid(plane)


@pytest.fixture(name="reports")
def _reports(plane):
    with served(plane, "openreports.io/v1alpha1") as reports:
        yield reports


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("label", "pod/web", "x=y"), id="a label"),
        pytest.param(("annotate", "pod/web", "x=y"), id="another annotation"),
        pytest.param(("set", "image", "pod/web", "c=other"), id="an image"),
    ],
)
def test_the_account_changes_nothing_but_costs(plane, namespace, account, tmp_path, change):
    plane.api.request("POST", path("Pod", namespace), pod("web", schedulerName="none"))
    kubectl, where = Kubectl(plane.binaries / "kubectl", account, tmp_path), ("-n", namespace)
    refusal = f"evenspread may only change the annotation {COST}"
    # The API server applies a new policy a moment later.
    eventually(lambda: refusal in kubectl("annotate", "pod/web", f"now={time.time()}", "--overwrite", *where).err)
    assert refusal in kubectl(*change, *where).err
    cost = kubectl("annotate", "pod/web", f"{COST}=5", *where)
    assert cost.code == 0, cost


def test_a_guarded_workload_stays_even(plane, namespace, account, reports, tmp_path):
    choose = random.Random(SEED)  # noqa: S311  cases, not secrets
    api, zones, where = plane.api, zones_of(plane.api), f"{path('Deployment', namespace)}/web"
    guarded = workload("Deployment", "web", constraint(), replicas=MOST)
    guarded["metadata"]["annotations"] = {MODE: "guard"}
    api.request("POST", path("Deployment", namespace), guarded)
    skews = collections.Counter()
    with scanning(tmp_path / "guard", account, "--guard-scale-in"):
        for _ in range(SCALE_INS):
            scaled(api, namespace, MOST)
            eventually(lambda: costs_keep_even(running(api, namespace), zones), 60, 0.2)
            skews[skew(scaled(api, namespace, choose.randint(1, MOST - 1)).values(), zones)] += 1
        print(f"guarded, by skew after a scale-in: {dict(sorted(skews.items()))}")
        assert guard_states(api, namespace, reports) == []
        other = min(running(api, namespace))
        annotate(api, namespace, other, "7")
        eventually(lambda: guard_states(api, namespace, reports) == ["stopped"], 60, 0.2)
        off = {"metadata": {"annotations": {MODE: "off"}}}
        api.request("PATCH", where, off, "application/merge-patch+json")
        left = {other: 7}
        eventually(
            lambda: (
                {name: pod.deletion_cost for name, pod in running(api, namespace).items() if pod.deletion_cost} == left
            ),
            60,
            0.2,
        )
        eventually(lambda: guard_states(api, namespace, reports) == [], 60, 0.2)
    assert (max(skews), skews.total()) == (1, SCALE_INS), f"EVENSPREAD_SEED={SEED} repeats it"
