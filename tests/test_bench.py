"""The benchmarks still run against the code that they measure; what they print is for people."""

import json
import os
import sys

import msgspec
import pytest

from bench import bytecodes, growth, verdict
from bench.static_review import CASES, ENGINE
from webhook import admission
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created

ZONE = "topology.kubernetes.io/zone"
counts_bytecodes = pytest.mark.skipif(
    "COVER_CORE" in os.environ, reason="probes are bytecodes; make test-all asks again"
)


def cluster(folder):
    """z1: web=1 | z2: web=0, and one more to come."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    spec = {"containers": [{"name": "c"}], "topologySpreadConstraints": [spread]}
    meta = {"namespace": "shop", "labels": {"app": "web"}}
    nodes = [
        {"metadata": {"name": f"n{number}", "labels": {ZONE: f"z{number}"}}, "status": {"allocatable": {"pods": "9"}}}
        for number in (1, 2)
    ]
    content = {
        "nodes": nodes,
        "pods": [{"metadata": {"name": "web-1", **meta}, "spec": {"nodeName": "n1", **spec}}],
        "namespaces": [{"metadata": {"name": "shop"}}],
        "services": [],
        "incoming": [{"metadata": {"name": "web-2", **meta}, "spec": spec}],
    }
    path = folder / "cluster.json"
    path.write_text(json.dumps(content))
    return path


def test_the_verdicts_that_are_timed_are_verdicts(tmp_path):
    index, (pod,), _, facts = verdict.load(cluster(tmp_path))

    for decide in (verdict.spread_only, verdict.all_filters):
        assert list(decide(index, pod)) == [1, 0]  # Unschedulable, feasible
    assert facts["list s"] >= 0


def test_the_table_is_printed_without_the_scheduler_too(tmp_path, capsys):
    verdict.compare(None, cluster(tmp_path), 1, beside=False)

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][:2] == ["PodTopologySpread", "all"]


@counts_bytecodes
def test_a_review_alone_has_few_bytecodes(monkeypatch):
    """Unlike a time, the number is the same on a busy machine. Newer releases of Python have other bytecodes."""
    monkeypatch.setattr(admission, "_IN_LINE_SECONDS", bytecodes.SECONDS)
    counted, functions = bytecodes.counted(bytecodes.review_of(ENGINE, CASES["two right constraints"]))

    assert functions <= 285
    assert counted <= bytecodes.ALONE or sys.version_info[:2] != (3, 11)


@pytest.mark.slow
@counts_bytecodes
def test_an_event_and_a_verdict_take_the_same_bytecodes_in_a_larger_cluster():
    counts = []
    for nodes in (30, 300):
        index, _ = growth.filled(nodes)
        here, there = (msgspec.json.decode(growth.pod(0, nodes, moved), type=Pod) for moved in (0, 3))
        incoming = as_created(here, RECORDED)
        event, _ = bytecodes.counted(bytecodes.moving(index, there, here))
        decided, _ = bytecodes.counted(verdict.all_filters, index, incoming)
        counts.append((event, decided))
    (small_event, small_verdict), (large_event, large_verdict) = counts

    assert large_event <= 1.02 * small_event
    assert large_verdict <= 1.1 * small_verdict
    assert small_event <= 3_000
