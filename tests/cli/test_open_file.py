"""Files that stand for a cluster, and namespaces that it does not have."""

import gzip
import json

import pytest
import yaml

from webhook.snapshot.load import SnapshotError
from webhook.snapshot.open_file import load_snapshot

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
SHOPS = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shops"}}
CONSTRAINT = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"a": "x\ny"}},
    "spec": {"topologySpreadConstraints": [CONSTRAINT]},
}
OBJECTS = (NODE, SHOP, SHOPS, POD)
JSON = {"apiVersion": "v1", "kind": "List", "items": OBJECTS}
AS_YAML = yaml.safe_dump_all(OBJECTS).encode()
ABSENT = "no namespace 'shpo'; did you mean 'shop' or 'shops'?"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(json.dumps(JSON, indent=2).encode(), id="JSON"),
        pytest.param(gzip.compress(json.dumps(JSON).encode()), id="packed JSON"),
        pytest.param(AS_YAML, id="YAML documents"),
        pytest.param(b"# kubectl get\n---\n" + AS_YAML, id="comments above"),
        pytest.param(yaml.safe_dump(json.loads(json.dumps(JSON))).encode(), id="a List in YAML"),
        pytest.param(gzip.compress(AS_YAML), id="packed YAML"),
        pytest.param(b"---\n" + b"\n---\n".join(json.dumps(each, indent=1).encode() for each in OBJECTS), id="mixed"),
    ],
)
def test_a_snapshot_in_any_form(run, tmp_path, data):
    (tmp_path / "cluster").write_bytes(data)
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    arguments = ("check", "pod.json", "--snapshot", "cluster", "-o", "json")
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "topology-key-unknown" not in {row["rule"] for row in json.loads(out)}
    assert run("explain", "pod/web", "-n", "shop", "--snapshot", "cluster")[0] == 0
    assert run("snapshot", "--snapshot", "cluster", "-o", "taken.jsonl")[0] == 0
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "taken.jsonl").read_text().splitlines()]
    assert kinds == ["Snapshot", "Node", "Namespace", "Namespace", "Pod"]


@pytest.mark.parametrize(
    "data", [json.dumps(JSON).encode(), AS_YAML, gzip.compress(AS_YAML)], ids=["JSON", "YAML", "compressed"]
)
def test_a_snapshot_for_the_webhook_in_any_form(tmp_path, data):
    (tmp_path / "cluster").write_bytes(data)
    found = load_snapshot(str(tmp_path / "cluster"))
    assert found.objects == {"Node": 1, "Namespace": 2, "Pod": 1}
    with pytest.raises(SnapshotError, match=r"nowhere: No such file or directory$"):
        load_snapshot(str(tmp_path / "nowhere"))


def test_a_directory_as_a_cluster(run, tmp_path):
    for number, each in enumerate(OBJECTS):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(each))
    code, out, _ = run("explain", "pod/web", "-n", "shop", "--snapshot", ".")
    assert (code, "shop/web" in out) == (0, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"a: b: c\n", "cluster:1: not YAML: mapping values are not allowed in this context", id="broken"),
        pytest.param(b"a: b\n", "cluster:1: not a Kubernetes object: it has no apiVersion and no kind", id="no object"),
        pytest.param(b"\x1f\x8bnonsense", "cluster: cannot be unpacked: ", id="broken gzip"),
        pytest.param(None, "cluster: No such file or directory", id="not there"),
    ],
)
def test_what_cannot_be_read(run, tmp_path, data, said):
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    if data is not None:
        (tmp_path / "cluster").write_bytes(data)
    code, _, err = run("check", "pod.json", "--snapshot", "cluster")
    assert code == 3
    assert err.startswith(f"evenspread: {said}")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("check", "pod.json", "--snapshot", "c"), 2, f"snapshot c: {ABSENT}", id="check"),
        pytest.param(("audit", "c"), 2, f"the input: {ABSENT}", id="audit"),
        pytest.param(("explain", "pod/web", "--snapshot", "c"), 2, f"snapshot c: {ABSENT}", id="explain"),
        pytest.param(("check", "pod.json"), 0, "", id="nobody knows"),
    ],
)
def test_a_namespace_that_does_not_exist(run, tmp_path, arguments, code, said):
    (tmp_path / "c").write_text(json.dumps(JSON))
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    found, _, err = run(*arguments, "-n", "shpo")
    assert (found, err) == (code, said and f"evenspread: {said}\n")
    assert run(*arguments, "-n", "shop")[0] == 0


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        pytest.param((NODE, POD), 0, id="no namespace in a List"),
        pytest.param((NODE, SHOP), 2, id="one that nothing stands in"),
    ],
)
def test_what_a_list_says_of_namespaces(run, tmp_path, objects, code):
    (tmp_path / "c").write_text(json.dumps({**JSON, "items": objects}))
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    assert run("check", "pod.json", "--snapshot", "c", "-n", "zzz")[0] == code


def test_nothing_near(run):
    _, _, err = run("audit", "-n", "zzz", stdin=json.dumps(JSON).encode())
    assert err == "evenspread: the input: no namespace 'zzz'\n"
