"""SpreadGroups among the files that are checked: they count as if they were there, and are read themselves."""

import json
import re
from pathlib import Path

import pytest
import yaml
from cli.snapshots import running, snapshot

STATE = "a: n1 | b: n2"
GROUP = {
    "apiVersion": "evenspread.io/v1alpha1",
    "kind": "SpreadGroup",
    "metadata": {"name": "cache"},
    "spec": {
        "selector": {"matchLabels": {"app": "redis"}},
        "shard": {"label": "shard"},
        "expected": {"shards": 3, "podsPerShard": 2},
        "caps": [{"topologyKey": "topology.kubernetes.io/zone", "lessThan": "1/2"}],
    },
}
LABELS = {"app": "redis", "shard": "0"}
SHARD = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "redis-0", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
CAN = "SpreadGroup cache: zone a can get 4 pods, but the cap is 2"


def redis(number, on):
    pod = running(f"redis-{number}-0", on)
    return pod | {"metadata": pod["metadata"] | {"labels": {"app": "redis", "shard": str(number)}}}


@pytest.fixture
def files(tmp_path):
    def write(*objects, cluster=()):
        (tmp_path / "in.yaml").write_text(yaml.safe_dump_all(objects))
        (tmp_path / "cluster.jsonl").write_bytes(snapshot(STATE, redis(1, "n1"), redis(2, "n1"), *cluster))
        return ("check", str(tmp_path / "in.yaml"), "--snapshot", str(tmp_path / "cluster.jsonl"))

    return write


def in_shop(group=GROUP, **spec):
    return group | {"metadata": {"name": "cache", "namespace": "shop"}, "spec": group["spec"] | spec}


def test_a_group_beside_its_workloads_counts_as_if_it_were_there(run, files):
    _, out, err = run(*files(SHARD))
    assert "group-cap" not in out
    for objects in ((SHARD, in_shop()), (in_shop(), SHARD)):
        _, out, err = run(*files(*objects))
        assert (CAN in out, err) == (True, "")
    _, out, _ = run(*files(SHARD, GROUP), "-n", "shop")
    assert CAN in out
    _, out, _ = run(*files(SHARD, GROUP))  # in the namespace default
    assert CAN not in out


def test_a_group_of_the_snapshot_counts(run, files):
    _, out, _ = run(*files(SHARD, cluster=(in_shop(),)))
    assert CAN in out


def test_audit_reads_groups_among_the_objects(run, tmp_path):
    lines = snapshot(STATE, redis(1, "n1"), redis(2, "n1"), SHARD, in_shop())
    (tmp_path / "all.jsonl").write_bytes(lines)
    _, out, _ = run("audit", str(tmp_path / "all.jsonl"), "-o", "json")
    assert [each["message"] for each in json.loads(out) if each.get("rule") == "group-cap" and "message" in each]


@pytest.mark.parametrize(
    ("group", "text", "fault"),
    [
        pytest.param(
            in_shop(expected={"shards": 0, "podsPerShard": 2}),
            "shards: 0",
            "spec.expected.shards: 0 is not between 1 and 200",
            id="no shard",
        ),
        pytest.param(
            in_shop(shard={"label": 5}), "label: 5", "spec.shard.label: Expected `str`, got `int`", id="a wrong type"
        ),
        pytest.param(GROUP | {"spec": None}, "apiVersion: evenspread.io/v1alpha1", "Object missing", id="no spec"),
    ],
)
def test_what_is_wrong_with_a_group_is_said_where_it_stands(run, files, group, text, fault):
    command = files(SHARD, group)
    code, _, err = run(*command)
    assert code == 3
    (line,) = re.findall(r"in\.yaml:(\d+):\d+: error: .*cannot be planned: " + re.escape(fault), err)
    assert Path(command[1]).read_text().splitlines()[int(line) - 1].strip() == text
