"""``evenspread snapshot``: a cluster as a file, which says what the cluster itself would."""

import gzip
import json
import re
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cluster.api import NOT_INSTALLED, FakeApi, cut, refuse

from webhook.cluster.resources import watched
from webhook.core.policy.policy import Policy
from webhook.snapshot.open_file import load_snapshot

CLUSTER = Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl"
OBJECTS = [json.loads(line) for line in CLUSTER.read_text().splitlines()][1:]


def is_listed(made):
    return made.get("status", {}).get("phase") != "Succeeded"


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        api.absent.clear()
        for each in OBJECTS:
            fields = {name: value for name, value in each.items() if name not in {"apiVersion", "kind"}}
            meta = fields["metadata"]
            api.put(f"{each['kind'].lower()}s", meta["name"], meta.get("namespace", ""), **fields)
        yield api


@pytest.fixture(name="kubeconfig")
def _kubeconfig(api, tmp_path):
    return api.kubeconfig(tmp_path)


def findings(out):
    """What was found and what could not be, without the places."""
    entries = json.loads(out)
    return sorted(
        json.dumps({k: v for k, v in each.items() if k not in {"file", "line", "column"}}) for each in entries
    )


class TestALiveCluster:
    @pytest.mark.slow
    def test_audit_of_the_cluster_and_of_its_snapshot_agree(self, run, kubeconfig, tmp_path):
        whole = tmp_path / "whole.jsonl"
        now = datetime.now(UTC).isoformat()  # some taints count only when they are old
        asked = [each.name for each in watched(Policy()) if each.name]
        header = {"kind": "Snapshot", "kubernetesVersion": "v1.34.2", "takenAt": now, "resources": asked}
        whole.write_text("".join(json.dumps(each) + "\n" for each in (header, *filter(is_listed, OBJECTS))))
        expected = findings(run("audit", str(whole), "-o", "json")[1])

        code, live, err = run("audit", "-o", "json", "--kubeconfig", kubeconfig)
        assert (code, err) == (1, NOT_INSTALLED)
        assert run("snapshot", "-o", "taken.jsonl.gz", "--kubeconfig", kubeconfig)[0] == 0
        _, taken, _ = run("audit", "taken.jsonl.gz", "-o", "json")
        assert findings(live) == findings(taken) == expected
        assert len(expected) > 20

    def test_the_page_names_no_lines_of_a_file_that_is_not_there(self, run, kubeconfig):
        _, out, _ = run("audit", "--kubeconfig", kubeconfig)
        assert "\nDeployment shop/cart\n" in out

    def test_check_with_the_snapshot_and_with_the_cluster_agree(self, run, kubeconfig):
        run("snapshot", "-o", "taken.jsonl", "--kubeconfig", kubeconfig)
        manifest = json.dumps(
            next(
                each
                for each in OBJECTS
                if each["metadata"]["name"] == "postgres" and "spec" in each and each["kind"] == "StatefulSet"
            )
        ).encode()
        live = run("check", "-", "-o", "json", "--kubeconfig", kubeconfig, stdin=manifest)
        taken = run("check", "-", "-o", "json", "--snapshot", "taken.jsonl", stdin=manifest)
        assert live == (*taken[:2], NOT_INSTALLED)
        assert "no node has topology.kubernetes.io/hostname" in live[1]

    def test_only_get_and_list_are_asked_for(self, api, run, kubeconfig):
        run("snapshot", "-o", "taken.jsonl", "--kubeconfig", kubeconfig)
        assert {request.what for request in api.requests} <= {"list", "page", "other"}

    def test_what_may_not_be_read_is_said_and_stands_in_the_file(self, api, run, kubeconfig):
        api.forbidden |= {"nodes"}
        lost = "rules about nodes and domains are not evaluated"
        said = f"{NOT_INSTALLED}cluster x: note: nodes: 403 Forbidden: {lost}\n"
        _, _, err = run("snapshot", "-o", "taken.jsonl", "--kubeconfig", kubeconfig)
        assert err.startswith(said)
        assert json.loads(Path("taken.jsonl").read_text().partition("\n")[0])["missing"] == {"nodes": "403 Forbidden"}
        _, live, err = run("audit", "--summary", "--kubeconfig", kubeconfig)
        assert err == said
        assert " for other reasons" in live
        _, live, err = run("audit", "--summary", "-v", "--kubeconfig", kubeconfig)
        assert "not evaluated, nodes: 403 Forbidden: " in live
        _, taken, err = run("audit", "--summary", "-v", "taken.jsonl")
        assert (taken, err) == (live, "")

    def test_custom_resources_are_done_without_where_they_cannot_be_discovered(self, api, run, kubeconfig):
        api.strike("other", refuse(403, "no"), times=2)
        api.strike("other", lambda *_: False)
        _, _, err = run("audit", "--kubeconfig", kubeconfig)
        assert "cluster x: note: custom resources: 403 no: workloads of other kinds are not checked\n" in err

    @pytest.mark.slow
    def test_a_cluster_that_is_lost_on_the_way_leaves_no_file(self, api, run, kubeconfig):
        api.strike("list", cut, resource="pods", times=9)
        code, _, err = run("snapshot", "-o", "taken.jsonl", "--kubeconfig", kubeconfig)
        assert code == 4
        assert err.startswith(f"{NOT_INSTALLED}evenspread: cluster x cannot be read: http://127.0.0.1:")
        assert [*Path().glob("*taken*")] == []

    def test_files_or_a_cluster(self, run, kubeconfig):
        code, _, err = run("audit", "a.json", "--kubeconfig", kubeconfig)
        assert code == 2
        assert "files and a live cluster exclude each other: remove one of them" in err


class TestTheFile:
    def test_it_is_for_its_owner_alone_and_says_what_it_holds(self, run, kubeconfig):
        code, out, err = run("snapshot", "-o", "taken.jsonl.gz", "--kubeconfig", kubeconfig)
        assert (code, out) == (0, "")
        first, second = err.removeprefix(NOT_INSTALLED).splitlines()
        assert first == (
            "cluster x, Kubernetes v1.34.2: 153 objects (83 Pod, 18 Service, 12 Node, 10 ReplicaSet, 30 of other kinds)"
        )
        assert second.startswith("taken.jsonl.gz: 8.")
        assert " KiB unpacked), " in second
        assert stat.S_IMODE(Path("taken.jsonl.gz").stat().st_mode) == 0o600
        lines = gzip.decompress(Path("taken.jsonl.gz").read_bytes()).splitlines()
        header = json.loads(lines[0])
        assert (header["kind"], header["kubernetesVersion"], header["missing"]) == ("Snapshot", "v1.34.2", {})
        assert {"pods", "limitranges", "cronjobs"} <= {*header["resources"]}
        assert len(lines) == 154
        assert not any(b"image" in line for line in lines)

    def test_without_a_name_it_goes_to_the_standard_output(self, run, kubeconfig):
        code, out, _ = run("snapshot", "--kubeconfig", kubeconfig)
        assert code == 0
        assert len(out.splitlines()) == 154

    def test_an_older_file_is_replaced_only_by_a_whole_one(self, run, monkeypatch):
        Path("taken.jsonl").write_text("old")

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("webhook.cli.commands.snapshot.os.fsync", full)
        code, _, err = run("snapshot", "-o", "taken.jsonl", "--snapshot", str(CLUSTER))
        assert (code, err) == (5, "evenspread: the results could not be written: No space left on device\n")
        assert Path("taken.jsonl").read_text() == "old"
        assert [*Path().iterdir()] == [Path("taken.jsonl")]

    def test_an_interrupt_leaves_nothing(self, run, monkeypatch):
        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("webhook.cli.commands.snapshot.take_file", interrupted)
        assert run("snapshot", "-o", "taken.jsonl", "--snapshot", str(CLUSTER))[0] == 130
        assert [*Path().iterdir()] == []

    def test_where_it_cannot_be_is_said_before_anything_is_read(self, api, run, kubeconfig):
        code, _, err = run("snapshot", "-o", "nowhere/taken.jsonl", "--kubeconfig", kubeconfig)
        assert (code, err) == (2, "evenspread: nowhere/taken.jsonl: cannot be written: No such file or directory\n")
        assert api.requests == []


class TestAFileAsTheCluster:
    def test_of_a_snapshot_nothing_is_lost(self, run):
        run("snapshot", "-o", "taken.jsonl", "--snapshot", str(CLUSTER))
        ours, theirs = (findings(run("audit", file, "-o", "json")[1]) for file in ("taken.jsonl", str(CLUSTER)))
        assert ours == theirs

    @pytest.mark.slow
    def test_without_names_every_rule_speaks_as_often(self, run):
        code, _, _ = run("snapshot", "-o", "nobody.jsonl", "--anonymise", "--snapshot", str(CLUSTER))
        text = Path("nobody.jsonl").read_text()
        assert code == 0
        assert json.loads(text.partition("\n")[0])["anonymised"] is True
        assert not {"shop", "worker-a1", "recommendations"} & {*re.split(r"[\"/]", text)}
        spoken = []
        for file in ("nobody.jsonl", str(CLUSTER)):
            entries = json.loads(run("audit", file, "-o", "json")[1])
            spoken.append(
                sorted((entry["rule"], str(entry.get("mode")), str(entry.get("severity"))) for entry in entries)
            )
        assert spoken[0] == spoken[1]

    def test_a_terminal_is_no_place_for_it(self, run, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        code, _, err = run("snapshot", "--snapshot", str(CLUSTER))
        assert code == 2
        assert "add -o FILE, or redirect the output into a file" in err

    def test_a_list_says_what_it_does_not_hold(self, run):
        Path("pods.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": OBJECTS[-3:]}))
        code, out, err = run("snapshot", "--snapshot", "pods.json")
        assert code == 0
        assert "pods.json: note: nodes: none in the file\n" in err
        assert json.loads(out.partition("\n")[0])["missing"]["nodes"] == "none in the file"

    def test_a_list_has_what_older_snapshots_lack(self, run):
        limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": "shop"}}
        Path("list.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [limits]}))
        assert run("snapshot", "-o", "taken.jsonl", "--snapshot", "list.json")[0] == 0
        index = load_snapshot("taken.jsonl").index
        assert index.lacks("limitranges") == ""
        assert index.lacks("poddisruptionbudgets") == "poddisruptionbudgets: none in the file"

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            pytest.param(None, "absent.json: No such file or directory", id="no file"),
            pytest.param("{", "absent.json:2: not JSON: ", id="no JSON"),
        ],
    )
    def test_one_that_cannot_be_read(self, run, content, said):
        if content:
            Path("absent.json").write_text(content + "\n")
        code, out, err = run("snapshot", "--snapshot", "absent.json")
        assert (code, out) == (3, "")
        assert err.startswith(f"evenspread: {said}")
