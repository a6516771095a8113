"""The benchmarks still run against the code that they measure; what they print is for people."""

import json

from bench import verdict

ZONE = "topology.kubernetes.io/zone"


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
