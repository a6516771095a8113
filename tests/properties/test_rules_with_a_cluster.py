"""Rules that look at the cluster, on the recorded scenarios: whatever the objects hold, they answer."""

import gzip
from itertools import islice
from pathlib import Path

import pytest
from core.rules.pages import NEED_CLUSTER
from manifest import FIXED
from msgspec import to_builtins

from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.review.examination import examine
from webhook.core.scheduler.args import ArgsError

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


def scenarios(name):
    with gzip.open(VECTORS / name) as lines:
        for line in islice(lines, 0, None, 4):
            try:
                yield read_scenario(members(members(line)["scenario"]))
            except (DecodeError, ArgsError):
                continue


def deployment(pod, replicas):
    """The Deployment of which the scenario's pod could be one."""
    labels = dict(pod.labels)
    template = {"metadata": {"labels": labels}, "spec": to_builtins(pod.pod_spec)}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "web", "namespace": pod.meta.namespace or "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in VECTORS.glob("verdict-*.jsonl.gz")))
def test_every_rule_answers(name):
    spoken = set()
    for number, scenario in enumerate(scenarios(name)):
        manifest = deployment(scenario.pod, 2 + number % 9)
        found = examine(manifest, Context(policy=FIXED, index=scenario.index, version=RECORDED, now="2026-11-21"))
        spoken |= {each.finding.rule for each in found.findings}
    # Pods of the scenarios about volumes declare no constraint.
    assert spoken & NEED_CLUSTER or name == "verdict-storage.jsonl.gz"
