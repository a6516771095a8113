"""How many pods of a workload run in each zone."""

import json

import pytest
from cli.snapshots import snapshot
from manifest import PLAIN, TODAY, workload

from webhook.answers.scanned import workload_document
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload
from webhook.snapshot.open_file import load_snapshot


@pytest.mark.parametrize(
    ("state", "kind", "zones"),
    [
        pytest.param("a: a0=1 a1=2 | b: b0=1 | c: c0", "Deployment", {"a": 3, "b": 1, "c": 0}, id="in three"),
        pytest.param("a: ~a0=1 | b: b0=1", "Deployment", {"a": 1, "b": 1}, id="tainted nodes have pods too"),
        pytest.param("a: a0=1 a1=2", "Deployment", {}, id="in the only one"),
        pytest.param("a: a0=1 | b: b0=1", "CronJob", {}, id="of pods that cannot be told from others"),
    ],
)
def test_the_pods_in_each_zone(tmp_path, state, kind, zones):
    file = tmp_path / "cluster.jsonl"
    file.write_bytes(snapshot(state))
    within = scan_context(Context(policy=PLAIN, version=RECORDED, now=TODAY, index=load_snapshot(str(file)).index))
    found = scan_workload(json.dumps(workload(kind, "app=web", "zone hard 1 app=web")).encode(), within)
    assert found.zones == zones
    assert workload_document(found).zones == zones
