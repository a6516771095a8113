"""The benchmarks still run against the code that they measure; what they print is for people."""

import importlib
import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

from bench import bytecodes, growth, peers, verdict
from bench.static_review import CASES, ENGINE
from webhook import admission
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created

MODULES = sorted(f"bench.{path.stem}" for path in Path(growth.__file__).parent.glob("[a-z]*.py"))
ZONE = "topology.kubernetes.io/zone"
counts_bytecodes = pytest.mark.skipif(
    "COVER_CORE" in os.environ, reason="probes are bytecodes; make test-all asks again"
)


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_finds_the_code_that_it_measures(name):
    assert importlib.import_module(name).__doc__


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


def rounds(*milliseconds):
    """Rounds whose memory is constant: evenspread's is always the lowest."""
    return [peers.Figures(p50, 2 * p50, p50 / 2, 80) for p50 in milliseconds]


def test_evenspread_is_ahead_of_both_peers_by_medians_and_by_rounds():
    others = {"none": rounds(1, 1, 1), "Gatekeeper": [each._replace(memory=90) for each in rounds(5, 2, 9)]}
    kyverno = [each._replace(memory=300) for each in rounds(4, 7, 8)]
    found = {10: others | {"evenspread": rounds(3, 3, 3), "Kyverno": kyverno}}

    assert [" ".join(line.split()) for line in peers.table(found)] == [
        "none Gatekeeper evenspread Kyverno evenspread ahead",
        "p50, ms, 10 connections 1.00 5.00 3.00 7.00 yes, in 2 of 3 rounds",
        "p99, ms, 10 connections 2.00 10.00 6.00 14.00 yes, in 2 of 3 rounds",
        "processor time per pod, ms, 10 connections 0.50 2.50 1.50 3.50 yes, in 2 of 3 rounds",
        "memory, MiB, 10 connections 80.00 90.00 80.00 300.00 yes, in 3 of 3 rounds",
    ]


def test_evenspread_is_not_ahead_if_one_peer_needs_less():
    found = {1: {"evenspread": rounds(3), "Gatekeeper": rounds(2), "Kyverno": rounds(4)}}

    assert [line.split("  ")[-1] for line in peers.table(found)] == [
        "evenspread ahead",
        *["no, in 0 of 1 rounds"] * 4,
    ]


def test_the_comparison_runs_five_rounds_unless_asked_for_others():
    assert vars(peers.arguments([])) == {"rounds": 5, "pods": 100}
    assert vars(peers.arguments(["--rounds", "2", "--pods", "10"])) == {"rounds": 2, "pods": 10}
