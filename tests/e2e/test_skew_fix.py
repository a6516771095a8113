"""The commands of `evenspread skew --fix`, run one by one against the real scheduler and controllers.

After each command, at most one pod is not ready. After each step, no pod is Pending. At the end, zones are within
maxSkew.
"""

import collections
import os
import subprocess
import time

import pytest
from e2e.objects import HOST, constraint, path, workload
from e2e.served import PROGRAM
from e2e.test_scale_in import annotate, running, scaled, skew, zones_of
from e2e.waiting import BUSY, eventually
from msgspec import convert

from webhook.core.pods_to_remove.running_pod import RemovalFields, active_pod

MOST = 12
HEADING = "run the commands in this order; evenspread runs none of them:\n\n"


def shell(plane, command):
    environment = os.environ | {"PATH": f"{plane.binaries}:{os.environ['PATH']}"}
    return subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60 * BUSY, check=False, env=environment
    )


def fix(plane, namespace):
    """The page, and its commands."""
    page = shell(plane, f"{PROGRAM} skew deployment/web -n {namespace} --fix --kubeconfig {plane.admin}").stdout
    commands = page.partition(HEADING)[2].strip()
    return page, commands.split(" &&\n") if commands else []


def disrupt(plane, namespace, most):
    """A PodDisruptionBudget, once its controller has seen the pods."""
    spec = {"maxUnavailable": most, "selector": {"matchLabels": {"app": "web"}}}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    where = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    plane.api.request("POST", where, made)
    eventually(lambda: plane.api.request("GET", f"{where}/web").get("status", {}).get("observedGeneration"))


def scale_in(plane, namespace, kept, *constraints, pause=0.0):
    """Leave these pods in each zone, by deletion costs. ``pause`` is the time between creation and scale-in."""
    api, zones, left = plane.api, zones_of(plane.api), collections.Counter(kept)
    api.request("POST", path("Deployment", namespace), workload("Deployment", "web", *constraints, replicas=MOST))
    pods = eventually(lambda: len(found := running(api, namespace)) == MOST and found, 60, 0.1)
    time.sleep(pause)
    for pod in pods.values():
        left[zones[pod.node]] -= 1
        if left[zones[pod.node]] < 0:
            annotate(api, namespace, pod.name, "-1")
    pods = scaled(api, namespace, sum(kept.values()))
    assert collections.Counter(zones[pod.node] for pod in pods.values()) == collections.Counter(kept)


def ready(api, namespace):
    items = api.request("GET", path("Pod", namespace))["items"]
    pods = (active_pod(convert(each, RemovalFields)) for each in items)
    return [pod for pod in pods if pod is not None and pod.ready]


@pytest.mark.parametrize(
    ("kept", "constraints", "evictions"),
    [
        pytest.param({"a": 4, "b": 1}, [constraint(), constraint(topologyKey=HOST)], 2, id="an empty zone"),
        pytest.param({"a": 4, "b": 4, "c": 1}, [constraint()], 2, id="two full zones"),
        pytest.param({"a": 4, "b": 1, "c": 1}, [constraint(maxSkew=2)], 1, id="room left by maxSkew"),
    ],
)
def test_the_commands_repair_zones(plane, namespace, kept, constraints, evictions):
    api, pods = plane.api, sum(kept.values())
    scale_in(plane, namespace, kept, *constraints)
    disrupt(plane, namespace, 1)
    page, commands = fix(plane, namespace)
    assert (len(commands), sum("/eviction " in command for command in commands)) == (3 * evictions, evictions), page
    for number, command in enumerate(commands, start=1):
        done = shell(plane, command)
        assert done.returncode == 0, done
        assert len(ready(api, namespace)) >= pods - 1
        if number % 3 == 0:
            eventually(lambda: len(running(api, namespace)) == pods, 30, 0.1)
    assert skew(running(api, namespace).values(), zones_of(api)) <= constraints[0]["maxSkew"]
    assert fix(plane, namespace) == (f"no hard constraint above maxSkew in {namespace}\n", [])


def test_a_budget_that_allows_no_eviction(plane, namespace):
    scale_in(plane, namespace, {"a": 4, "b": 1}, constraint())
    disrupt(plane, namespace, 0)
    page, commands = fix(plane, namespace)
    reason = "PodDisruptionBudgets do not allow the evictions now"
    assert (page, commands) == (f"Deployment {namespace}/web: no evictions repair zone[0]: {reason}\n", [])
