"""The facts of running pods, read from the API's JSON."""

import pytest

from webhook.core.decoders import converted
from webhook.core.pods_to_remove.running_pod import RemovalFields, RunningPod, active_pod

SECOND = 10**9


def raw(name="web-7d4b9c-x2x4z", annotations=None, spec=None, **status):
    return {
        "metadata": {"name": name, "uid": "u1", "labels": {"app": "web"}, "annotations": annotations},
        "spec": spec or {},
        "status": status,
    }


def read(pod):
    return active_pod(converted(pod, RemovalFields))


def test_every_field_of_a_pod_is_read():
    pod = raw(
        name="db-12",
        annotations={"controller.kubernetes.io/pod-deletion-cost": "-7"},
        spec={
            "nodeName": "n1",
            "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "setup"}],
        },
        phase="Running",
        conditions=[
            {"type": "PodScheduled", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:05Z"},
            {"type": "Ready", "status": "False"},
        ],
        containerStatuses=[{"name": "a", "restartCount": 1}, {"name": "b", "restartCount": 4}, {"name": "c"}],
        initContainerStatuses=[{"name": "setup", "restartCount": 9}, {"name": "proxy", "restartCount": 2}],
    )
    pod["metadata"]["creationTimestamp"] = "1970-01-01T01:00:03+01:00"
    assert read(pod) == RunningPod(
        name="db-12",
        uid="u1",
        node="n1",
        phase="Running",
        ready=True,
        ready_since=5 * SECOND,
        deletion_cost=-7,
        restarts=(4, 2),
        created=3 * SECOND,
        ordinal=12,
        labels={"app": "web"},
    )


def test_a_time_without_zone_is_utc():
    """Only files have one."""
    pod = raw(phase="Running")
    pod["metadata"]["creationTimestamp"] = "1970-01-01T00:00:03"
    assert read(pod).created == 3 * SECOND


def test_a_pod_without_any_field_is_active():
    assert read({}) == RunningPod(name="")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pods_are_not_active(phase):
    assert read(raw(phase=phase)) is None
    assert read(raw(phase="Running")) is not None


def test_terminating_pods_are_not_active():
    pod = raw(phase="Running")
    pod["metadata"]["deletionTimestamp"] = "2026-11-28T00:00:00Z"
    assert read(pod) is None


@pytest.mark.parametrize(
    ("written", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("-0", 0),
        ("-008", -8),
        ("008", 0),
        ("+5", 0),
        (" 5", 0),
        ("", 0),
        ("-", 0),
        ("1_0", 0),
        ("٣", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
        ("-2147483649", 0),
        ("9" * 5000, 0),
        ("-" + "0" * 5000 + "6", -6),
    ],
)
def test_deletion_cost(written, cost):
    assert read(raw(annotations={"controller.kubernetes.io/pod-deletion-cost": written})).deletion_cost == cost


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("db-0", 0),
        ("db-007", 7),
        ("db-2147483647", 2147483647),
        ("db-2147483648", None),
        ("db", None),
        ("db-x1", None),
        ("0", None),
        ("a-1-2", 2),
    ],
)
def test_ordinal(name, ordinal):
    assert read(raw(name=name)).ordinal == ordinal


@pytest.mark.parametrize(
    ("condition", "ready", "since"),
    [
        ({"status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z"}, True, SECOND),
        ({"status": "True", "lastTransitionTime": None}, True, None),
        ({"status": "True", "lastTransitionTime": "0001-01-01T00:00:00Z"}, True, None),
        ({"status": "False", "lastTransitionTime": "1970-01-01T00:00:01Z"}, False, None),
        ({"status": "Unknown"}, False, None),
    ],
)
def test_readiness(condition, ready, since):
    pod = read(raw(conditions=[{"type": "Ready", **condition}]))
    assert (pod.ready, pod.ready_since) == (ready, since)
