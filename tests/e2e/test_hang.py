"""One of two replicas hangs: what writes of workloads cost until its probe fails, and that they cost nothing then."""

import contextlib
import os
import signal
import time

import pytest
from e2e.load import writing
from e2e.objects import clean, constraint, workload
from e2e.registration import GROUP
from e2e.released import released
from e2e.served import descendants
from e2e.waiting import eventually

NAMESPACE = "hanging"
SLICES = (
    f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    "?labelSelector=kubernetes.io/service-name%3Devenspread-webhook"
)
VALIDATING = f"{GROUP}/validatingwebhookconfigurations/evenspread"
VALUES = ("--set", "config.ceiling=deny", "--set", "drainSeconds=0")
TIMEOUT = 2.0  # seconds, of the chart
WRONG = workload("Rollout", "web", constraint(maxSkew=0))


@pytest.fixture(name="release", scope="module")
def _release(plane, pod_addresses_are_local, tmp_path_factory):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    with released(plane, NAMESPACE, tmp_path_factory.mktemp("hanging"), *VALUES) as kubelet:
        yield kubelet


def led_to(plane):
    """How many replicas the Service leads to."""
    endpoints = [each for part in plane.api.request("GET", SLICES)["items"] for each in part["endpoints"] or ()]
    return sum(bool(each["conditions"]["ready"]) for each in endpoints)


@contextlib.contextmanager
def hanging(container):
    """All of its processes stand still during the block, and go on."""
    pids = [container.process.pid, *descendants(container.process.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
def test_a_replica_that_hangs_costs_what_the_policy_promises_until_its_probe_fails(plane, namespace, release, policy):
    change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}]
    plane.api.request("PATCH", VALIDATING, change, "application/json-patch+json")
    eventually(lambda: led_to(plane) == 2)
    with writing(plane, namespace, clean("Deployment")) as right, writing(plane, namespace, WRONG) as wrong:
        time.sleep(1)
        with hanging(release.containers[0]):
            began = time.monotonic()
            eventually(lambda: led_to(plane) == 1, 30)
            out = time.monotonic() + 0.1  # what was dialled before is answered or given up
            eventually(lambda: min(right[-1].began, wrong[-1].began) > out + 2)
        eventually(lambda: led_to(plane) == 2)
        time.sleep(1)

    calls = right + wrong
    late = [each for each in calls if each.took > TIMEOUT - 0.2]
    unanswered = [each for each in calls if each.message.endswith("context deadline exceeded")]
    let_in = [each for each in wrong if each.status == 201]
    assert late, "nobody was led to the replica that hangs"
    assert max(each.took for each in calls) < TIMEOUT + 1
    assert [each for each in late if not began - TIMEOUT < each.began < out] == []
    # What nobody answers passes or is refused by the policy, and everything else is what it should be.
    assert (unanswered == [], {*let_in} <= {*late}) == (policy == "Ignore", True)
    assert {each.status for each in right if each not in unanswered} == {201}
    assert {each.status for each in wrong if each not in [*unanswered, *let_in]} == {403}
    if policy == "Fail":
        assert ({*unanswered} <= {*late}, let_in) == (True, [])
    print(f"{policy}: out after {out - began:.1f} s; of {len(calls)} calls {len(late)} waited {TIMEOUT:g} s")
