"""The console over a file and over the controller's scans, as the commands serve it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from cli.commands.test_plan import SIX, ZONE, group, running, shard
from cli.snapshots import snapshot
from console.scans import LEDGER, NOW, scan
from manifest import workload
from msgspec.structs import replace

from webhook.cli.console_sources import scanner_source, shown_file
from webhook.cli.frame import Frame
from webhook.cli.main import main
from webhook.core.groups.status.forms import status_json
from webhook.core.policy.policy import Policy
from webhook.core.scan import group_members

START = "import sys; from webhook.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(name="file")
def _file(tmp_path):
    made = tmp_path / "prod.jsonl"
    web = workload(
        "Deployment", "app=web", "zone hard 1 app=web", meta={"name": "web", "namespace": "shop"}, replicas=3
    )
    made.write_bytes(snapshot("a: a0=3 | b: b0", web))
    return made


@pytest.mark.slow
def test_a_file_is_shown_until_a_signal_ends_it(file):
    command = [sys.executable, "-c", START, "controller", "--snapshot", str(file), "--console", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as process:  # noqa: S603 ours
        try:
            said = process.stdout.readline().decode()
            url = said.removeprefix("console: ").partition(" ")[0]
            with urllib.request.urlopen(url) as answer:  # noqa: S310 our own
                page = answer.read().decode()
            assert "snapshot prod.jsonl" in page
            assert "uneven by zone: skew 3, maxSkew allows 1" in page
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


STATEFUL = [shard(number, "zone hard 2 app=redis") for number in range(3)]


def looked_at(tmp_path, *objects):
    """The groups that the console shows of a file."""
    made = tmp_path / "prod.jsonl"
    made.write_bytes(snapshot(SIX, *objects))
    return shown_file(str(made), Frame(policy=Policy(), today="2026-11-23")).groups


def test_a_file_shows_its_groups_as_the_controller_tells_of_them(tmp_path):
    asked = group(caps=[{"topologyKey": ZONE, "lessThan": "1/2"}])
    pods = [
        running(f"redis-{number}-{each}", on, number)
        for number, (on, each) in enumerate([("a0", 0), ("a1", 0), ("a0", 1)])
    ]
    gone = running("redis-2-0", "a1", 2) | {"status": {"phase": "Succeeded"}}
    (found,) = looked_at(tmp_path, asked, *STATEFUL, *pods, gone)
    status = found.status
    assert {each.type: (each.status, each.reason) for each in status.conditions} == {
        "Planned": ("True", "Planned"),
        "Fits": ("True", "EveryOrder"),
        "CannotGetStuck": ("True", "ZoneByZone"),
        "CapsHeld": ("False", "CapExceeded"),
        "Delivered": ("False", "FieldsDiffer"),
    }
    assert [dict(each.domains) for each in status.distribution] == [{"a": 3, "b": 0, "c": 0}]
    assert (len(status.workloads), status.unguarded.count) == (3, 3)


def test_what_the_controller_stored_stays_in_a_file(tmp_path):
    asked = group(caps=[{"topologyKey": ZONE, "lessThan": "1/2"}])
    (first,) = looked_at(tmp_path, asked, *STATEFUL)
    stored = [*first.status.workloads]
    stored[0], stored[2] = (
        replace(one, zones=two.zones, affinity=two.affinity)
        for one, two in ((stored[0], stored[2]), (stored[2], stored[0]))
    )
    status = status_json(replace(first.status, workloads=tuple(stored), revision="kept"))
    (again,) = looked_at(tmp_path, asked | {"status": status}, *STATEFUL)
    assert again.status.revision == "kept"
    assert [each.zones for each in again.status.workloads] == [each.zones for each in stored]


def test_a_group_in_a_file_that_cannot_be_planned_says_why(tmp_path, monkeypatch):
    bad = group(caps=[{"topologyKey": ZONE, "lessThan": "1/0"}])
    (found,) = looked_at(tmp_path, bad, running("redis-0-0", "a0", 0))
    assert (
        found.status.condition("Planned").message
        == "spec.caps[0].lessThan: 1/0 is not a fraction of the pods such as 1/2"
    )
    monkeypatch.setattr(group_members, "MOST_PODS", 1)
    (found,) = looked_at(tmp_path, group(caps=[]), *(running(f"redis-0-{each}", "a0", 0) for each in range(2)))
    assert found.status.condition("Planned").message == "the selector matches more than 1 pods"


def test_a_group_that_fails_by_a_bug_hides_no_other(tmp_path, monkeypatch):
    assessed = group_members.assess

    def fails(seen, *given):
        if seen.group.name == "cache":
            raise IndexError
        return assessed(seen, *given)

    other = group(caps=[], name="other", selector={"matchLabels": {"app": "other"}})
    monkeypatch.setattr(group_members, "assess", fails)
    found = {each.group.meta.name: each.status for each in looked_at(tmp_path, group(caps=[]), other)}
    assert found["other"].condition("Planned").status == "True"
    assert {(each.status, each.message) for each in found["cache"].conditions} == {
        ("Unknown", "not evaluated: failed because of a bug: IndexError")
    }


def test_a_file_without_groups_and_one_that_says_nothing_of_them(tmp_path):
    assert looked_at(tmp_path) == ()
    listed = tmp_path / "web.yaml"
    listed.write_text(json.dumps(STATEFUL[0]))
    assert shown_file(str(listed), Frame(policy=Policy(), today="2026-11-23")).groups is None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--snapshot", "/nowhere"), 3, "/nowhere: no such file"),
        (("--snapshot", "/nowhere", "--console", "8080"), 2, "--console 8080: write it as HOST:PORT"),
        (("--snapshot", os.devnull), 3, "no such file"),
    ],
)
def test_a_start_that_cannot_be_says_why(arguments, code, said, capsys):
    assert main(["controller", *arguments]) == code
    assert said in capsys.readouterr().err


def test_a_file_with_no_object_is_told(tmp_path, capsys):
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")
    assert main(["controller", "--snapshot", str(empty)]) == 3
    assert "no readable object in this file" in capsys.readouterr().err


def test_an_address_that_is_taken_is_told(file, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["controller", "--snapshot", str(file), "--console", f"127.0.0.1:{port}"]) == 2
    assert "--console: Address already in use" in capsys.readouterr().err


def test_a_file_as_one_page(file, capsys):
    assert main(["audit", "--snapshot", str(file), "-o", "html", "--fail-on", "never"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "prod.jsonl" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("leading", "scanned", "synced", "fault", "shown"),
    [
        pytest.param(True, scan(LEDGER), True, "", (True, 7.0, ""), id="after a scan"),
        pytest.param(True, scan(LEDGER), True, "waiting: 403", (True, 7.0, "waiting: 403"), id="while later ones fail"),
        pytest.param(True, None, True, "", (False, 7.0, ""), id="before the first"),
        pytest.param(True, None, False, "waiting: 403", (False, None, "waiting: 403"), id="while it cannot scan"),
        pytest.param(
            False, None, None, "", (False, None, "This replica is on standby: other leads and scans."), id="beside"
        ),
    ],
)
def test_the_controllers_last_scan_is_shown(leading, scanned, synced, fault, shown):
    feed = None if synced is None else SimpleNamespace(synced=synced, age=7.0)
    latest = None if scanned is None else SimpleNamespace(scan=scanned)
    scanner = SimpleNamespace(latest=latest, feed=feed, fault=fault, groups=SimpleNamespace(found={("a", "b"): "of a"}))
    elector = SimpleNamespace(leading=leading, holder="other")
    found = scanner_source(scanner, elector, Policy)()
    assert (found.scan is not None, found.health.cluster_age, found.waiting) == shown
    assert found.health.certificate_days is None
    assert found.groups == ("of a",)
    # What an old scan found is not as of now.
    assert (found.live, found.moment, found.health.fault) == (True, NOW if scanned else "", fault)


@pytest.mark.parametrize(("ends", "days"), [(None, None), (timedelta(days=7), 7)], ids=["not looked at", "known"])
def test_the_days_of_our_own_ca_are_told(ends, days):
    scanner = SimpleNamespace(latest=None, feed=None, fault="", groups=SimpleNamespace(found={}))
    elector = SimpleNamespace(leading=True, holder="me")
    authority = SimpleNamespace(expires=None if ends is None else datetime.now(UTC) + ends)
    assert scanner_source(scanner, elector, Policy, authority)().health.certificate_days == (
        days and pytest.approx(days, abs=0.1)
    )
