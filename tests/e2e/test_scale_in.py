"""The pods that the real controller removes when a Deployment scales in, and the pods that evenspread forecasts.

`EVENSPREAD_SEED=n` repeats a run, `SCALE_INS=200` makes a longer one.
"""

import collections
import os
import random
import time

from e2e.objects import constraint, path, workload
from e2e.waiting import eventually
from msgspec import convert

from webhook.core.pods_to_remove.removal_order import removal_groups
from webhook.core.pods_to_remove.running_pod import RemovalFields, active_pod

SEED = int(os.environ.get("EVENSPREAD_SEED") or time.time())
SCALE_INS = int(os.environ.get("SCALE_INS") or 12)
MOST = 12
COST = "controller.kubernetes.io/pod-deletion-cost"
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
    api, seen, wrong = plane.api, collections.Counter(), []
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
        seen["chance decides" if max(map(len, orders[0])) > 1 else "one order"] += 1
        if not any(follows(groups, gone) for groups in orders):
            wrong.append((sorted(gone), [[pod.name for pod in group] for group in orders[0]]))
    assert wrong == [], f"EVENSPREAD_SEED={SEED} repeats it"
    assert seen.total() == SCALE_INS
