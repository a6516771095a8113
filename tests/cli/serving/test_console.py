"""The console over a file and over the controller's scans, as the commands serve it."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from cli.snapshots import snapshot
from console.scans import LEDGER, NOW, scan
from manifest import workload

from webhook.cli.main import main
from webhook.cli.serving.console import of_scanner
from webhook.core.policy.policy import Policy

BESIDE = "This replica stands by: other leads, and scans."
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
            url = said.removeprefix("the console: ").partition(";")[0]
            with urllib.request.urlopen(url) as answer:  # noqa: S310 our own
                page = answer.read().decode()
            assert "snapshot prod.jsonl" in page
            assert "uneven by zone: skew 3, maxSkew allows 1" in page
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


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
    assert "no object in it can be read" in capsys.readouterr().err


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
        pytest.param(
            True, scan(LEDGER), True, "it waits: 403", (True, 7.0, "it waits: 403"), id="while later ones fail"
        ),
        pytest.param(True, None, True, "", (False, 7.0, ""), id="before the first"),
        pytest.param(True, None, False, "it waits: 403", (False, None, "it waits: 403"), id="while it cannot scan"),
        pytest.param(
            False, None, None, "", (False, None, "This replica stands by: other leads, and scans."), id="beside"
        ),
    ],
)
def test_the_controllers_last_scan_is_shown(leading, scanned, synced, fault, shown):
    feed = None if synced is None else SimpleNamespace(synced=synced, age=7.0)
    latest = None if scanned is None else SimpleNamespace(scan=scanned)
    scanner = SimpleNamespace(latest=latest, feed=feed, fault=fault, groups=SimpleNamespace(found={("a", "b"): "of a"}))
    elector = SimpleNamespace(leading=leading, holder="other")
    found = of_scanner(scanner, elector, Policy)()
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
    assert of_scanner(scanner, elector, Policy, authority)().health.certificate_days == (
        days and pytest.approx(days, abs=0.1)
    )
