"""The order in which controllers remove pods. `make removals` compares it with the controllers' own code."""

import math

import pytest

from webhook.core.api.version import parse_version
from webhook.core.pods_to_remove.removal_order import (
    job_groups,
    removal_groups,
    stateful_set_groups,
)
from webhook.core.pods_to_remove.running_pod import RunningPod

SECOND = 10**9
NOW = 1_000_000 * SECOND


def ago(seconds):
    return NOW - seconds * SECOND


def running(name, *, ready=1000, created=1000, **facts):
    """A ready pod on a node of its own, with its ages in seconds. ``ready=None``: it is not ready."""
    times = {"ready": ready is not None, "ready_since": None if ready is None else ago(ready), "created": ago(created)}
    return RunningPod(**{"name": name, "node": f"node-{name}", "phase": "Running", **times, **facts})


def names(groups):
    """Groups as text: members of a group without a space, groups separated by one."""
    return " ".join("".join(sorted(pod.name for pod in group)) for group in groups)


@pytest.mark.parametrize(
    ("pods", "related", "groups"),
    [
        pytest.param([], {}, "", id="no pod"),
        pytest.param([running("a"), running("b"), running("c")], {}, "abc", id="equal pods are one group"),
        pytest.param([running("a"), running("b", node="")], {}, "b a", id="unassigned first"),
        pytest.param(
            [running("a", node=""), running("b", node="")], {"": 2}, "ab", id="unassigned pods are related alike"
        ),
        pytest.param(
            [running("a"), running("b", phase="Unknown"), running("c", phase="Pending")], {}, "c b a", id="phases"
        ),
        pytest.param(
            [running("a", phase=""), running("b", phase="Pending")], {}, "ab", id="another phase is as Pending"
        ),
        pytest.param([running("a"), running("b", ready=None)], {}, "b a", id="not ready before ready"),
        pytest.param(
            [running("a", deletion_cost=1), running("b"), running("c", deletion_cost=-1)], {}, "c b a", id="low costs"
        ),
        pytest.param(
            [running("a", ready=None, deletion_cost=9), running("b")], {}, "a b", id="not ready precedes the cost"
        ),
        pytest.param(
            [running("a", node="n1"), running("b", node="n2"), running("c", node="n2")],
            {"n1": 1, "n2": 2},
            "bc a",
            id="nodes with more related pods",
        ),
        pytest.param(
            [running("a", node="n1"), running("b", node="n2"), running("c", node="n2")],
            {},
            "abc",
            id="without an owner above, no pod is related",
        ),
        pytest.param(
            [running("a", deletion_cost=1), running("b", node="n1")], {"node-a": 5}, "b a", id="cost precedes relation"
        ),
        pytest.param([running("a", ready=3000), running("b", ready=1500)], {}, "b a", id="ready later first"),
        pytest.param(
            [running("a", ready=1000), running("b", ready=900)], {}, "ab", id="ready times in a bucket, without order"
        ),
        pytest.param(
            [running("a", ready=1000, restarts=(5, 0)), running("b", ready=900), running("c", ready=900)],
            {},
            "abc",
            id="with several ready times in a bucket, restarts do not decide",
        ),
        pytest.param(
            [running("a"), running("b", ready_since=None), running("c", ready_since=None, restarts=(1, 0))],
            {},
            "c b a",
            id="ready without time first",
        ),
        pytest.param(
            [running("a", ready=-5), running("b", ready=-9), running("c", ready=0), running("d", ready=1)],
            {},
            "abc d",
            id="times in the future are one bucket, with now",
        ),
        pytest.param(
            [running("a"), running("b", restarts=(1, 0)), running("c", restarts=(0, 3))], {}, "b c a", id="restarts"
        ),
        pytest.param(
            [running("a", created=3000), running("b", created=1500), running("c", created=1499)],
            {},
            "bc a",
            id="created later first, in buckets",
        ),
        pytest.param([running("a"), running("b", created=0), RunningPod(name="c")], {}, "c b a", id="no creation time"),
        pytest.param(
            [running("a", ready=None, created=9), running("b", ready=None, restarts=(2, 0))],
            {},
            "b a",
            id="pods that are not ready are ordered by restarts and creation",
        ),
    ],
)
def test_replica_sets(pods, related, groups):
    assert names(removal_groups(pods, related, NOW)) == groups
    assert names(removal_groups(pods[::-1], related, NOW)) == groups


def test_ages_of_more_than_292_years_are_one_bucket():
    old = [running(name, created=0) for name in "ab"]
    pods = [running("a", ready=None, created=400 * 365 * 86400), running("b", ready=None, created=900 * 365 * 86400)]
    assert names(removal_groups(pods, {}, NOW)) == "ab"
    assert names(removal_groups([*pods, *old], {}, NOW)) != ""


@pytest.mark.parametrize("power", [20, 40, 52])
def test_a_bucket_is_a_power_of_two_of_nanoseconds(power):
    ages = {"a": 2**power, "b": 2 ** (power + 1) - math.ceil(2 ** (power - 20)), "c": 2 ** (power + 1)}
    pods = [running(name, ready_since=NOW - age) for name, age in ages.items()]
    assert names(removal_groups(pods, {}, NOW)) == "ab c"


@pytest.mark.parametrize(("release", "groups"), [("1.31", "ab"), ("1.32", "b a")])
def test_restarts_of_sidecars_count_since_1_32(release, groups):
    pods, version = [running("a"), running("b", restarts=(0, 1))], parse_version(release)
    assert names(removal_groups(pods, {}, NOW, version)) == names(job_groups(pods, version)) == groups


def test_stateful_sets_remove_the_highest_ordinal_first():
    pods = [running(f"{number}", ordinal=number) for number in (2, 0, 10, 1)]
    assert names(stateful_set_groups([*pods, running("x")])) == "10 2 1 0"


@pytest.mark.parametrize(
    ("pods", "groups"),
    [
        pytest.param([running("a"), running("b")], "ab", id="equal pods are one group"),
        pytest.param([running("a", ready=1000), running("b", ready=999)], "b a", id="ready times exactly"),
        pytest.param([running("a"), running("b", created=999)], "b a", id="creation times exactly"),
        pytest.param([running("a"), running("b", deletion_cost=-5)], "ab", id="no costs"),
        pytest.param(
            [running("a"), running("b", restarts=(0, 1)), running("c", restarts=(1, 0))], "c b a", id="restarts"
        ),
        pytest.param([running("a"), running("b", ready_since=None), running("c", node="")], "c b a", id="zero times"),
        pytest.param([running("a", ready=None), running("b", ready=None, phase="Pending")], "b a", id="states"),
    ],
)
def test_jobs(pods, groups):
    assert names(job_groups(pods)) == groups
