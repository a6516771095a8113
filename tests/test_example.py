from collections import Counter
from pathlib import Path

import pytest
from build import pod

import webhook.example
from tools.example_cluster import TAKEN_AT, TEAMS, text
from webhook.config import load_policy
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import ZONE
from webhook.core.context import Context
from webhook.core.defaulting.injection import Skip, inject
from webhook.snapshot.open_file import load_snapshot

FILES = Path(webhook.example.__file__).parent
CLUSTER = FILES / "cluster.jsonl"


def test_the_file_is_what_the_script_writes():
    assert CLUSTER.read_text(encoding="utf-8") == text(), "run python -m tools.example_cluster"


def test_the_cluster():
    made = load_snapshot(str(CLUSTER))
    assert str(made.version) == str(RECORDED)
    assert made.index.taken_at == made.taken_at == TAKEN_AT
    nodes = made.index.nodes.all()
    assert Counter(node.labels.get(ZONE) for node in nodes) == {
        "eu-central-1a": 4,
        "eu-central-1b": 4,
        "eu-central-1c": 3,
        None: 1,
    }
    assert [node.name for node in nodes if node.spec.unschedulable] == ["worker-c2"]
    waiting = [pod.meta.labels["app"] for pod in made.index.pods.waiting("payments")]
    assert Counter(waiting) == {"ledger": 2, "fraud-scoring": 2}
    assert made.objects["Pod"] == sum(team.replicas for team in TEAMS)


@pytest.mark.parametrize(
    ("labelled", "owned", "namespace", "given"),
    [
        pytest.param(
            "app=web pod-template-hash=6d9f7c5b8",
            "ReplicaSet/web-6d9f7c5b8",
            "shop",
            [("topology.kubernetes.io/zone", "DoNotSchedule"), ("kubernetes.io/hostname", "ScheduleAnyway")],
            id="a pod of web",
        ),
        pytest.param("app=grafana", "DaemonSet/node-exporter", "monitoring", "daemon-set", id="a DaemonSet's pod"),
        pytest.param("app=prometheus", "StatefulSet/prometheus", "batch", "owner-unknown", id="an owner elsewhere"),
    ],
)
def test_what_the_policy_gives_to_pods(labelled, owned, namespace, given):
    policy = load_policy(str(FILES / "policy.yaml")).policy
    within = Context(policy=policy, version=RECORDED, index=load_snapshot(str(CLUSTER)).index)
    made = inject(pod(labelled, owner=owned), namespace, within, waited=True)
    if isinstance(made, Skip):
        assert made.reason == given
    else:
        assert [(one.topology_key, one.when_unsatisfiable) for one in made.constraints] == given
        assert made.patch
