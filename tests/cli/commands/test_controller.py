"""The controller's command line, and the process that it starts beside a fake API server."""

import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta

import click
import pytest
from cluster.api import FakeApi
from cluster.following import eventually

from webhook.cli.main import main
from webhook.cli.parameters import OBJECT_NAME, duration
from webhook.cli.server_options import lifetimes

SECRET = ("--ca-secret", "platform/evenspread-ca")
LEASE = ("--lease", "platform/evenspread-controller")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("168h", timedelta(days=7)),
        ("1h30m", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)),
        ("1h1m1s", timedelta(seconds=3661)),
    ],
)
def test_durations_are_written_as_go_writes_them(text, expected):
    assert duration(timedelta(seconds=10)).convert(text, None, None) == expected


@pytest.mark.parametrize("text", ["", "7d", "1.5h", "-1h", "30m1h", "168", "9s", "0s"])
def test_a_duration_that_cannot_be_used_is_refused(text):
    with pytest.raises(click.BadParameter):
        duration(timedelta(seconds=10)).convert(text, None, None)


@pytest.mark.parametrize("text", ["", "name", "a/b/c", "/name", "ns/", "NS/name", "ns/na me"])
def test_an_object_has_a_namespace_and_a_name(text):
    with pytest.raises(click.BadParameter, match="write it as NAMESPACE/NAME"):
        OBJECT_NAME.convert(text, None, None)


def test_a_ca_outlives_its_leaves():
    assert lifetimes(timedelta(days=30), timedelta(days=10)).authority == timedelta(days=30)
    with pytest.raises(click.UsageError, match="at least three times --leaf-duration"):
        lifetimes(timedelta(days=29), timedelta(days=10))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "add --lease, and at least one of --ca-secret, --deployment, --scan and --admission-policies"),
        (SECRET, 2, "add --lease, and at least one of"),
        (LEASE, 2, "--ca-secret, --deployment, --scan and --admission-policies"),
        (("--scan", *LEASE, "--scan-share", "0", "--kubeconfig", "/nowhere"), 2, "more than 0"),
        (("--scan", *LEASE, "--scan-interval", "0s", "--kubeconfig", "/nowhere"), 2, "'0s': the minimum is 1s"),
        (("--scan", *LEASE, "--config", "/nowhere", "--kubeconfig", "/nowhere"), 2, "the configuration is invalid"),
        ((*SECRET, *LEASE), 2, "run it in a pod, or add --kubeconfig"),
        ((*SECRET, *LEASE, "--health-bind", "10251"), 2, "--health-bind 10251: write it as HOST:PORT"),
        ((*SECRET, *LEASE, "--kubeconfig", "/nowhere"), 4, "/nowhere"),
        (("--ca-secret", "evenspread-ca"), 2, "write it as NAMESPACE/NAME"),
    ],
)
def test_a_start_that_cannot_be_says_why(arguments, code, said, capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["controller", *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cert", "x", "--key", "y"), "remove --cert and --key"),
        ((), "--ca-secret needs --tls-name"),
        (
            ("--tls-name", "a.b.svc", "--bind", "127.0.0.1:0", "--health-bind", "127.0.0.1:0"),
            "--ca-secret needs a cluster",
        ),
    ],
)
def test_the_webhook_takes_a_ca_of_the_cluster_or_a_certificate(arguments, said, capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["webhook", *SECRET, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_console_that_cannot_be_stops_nothing_else(tmp_path):
    log = tmp_path / "log"
    start = "import sys; from webhook.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with FakeApi() as api, log.open("wb") as out, socket.create_server(("127.0.0.1", 0)) as taken:
        console = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = ("--kubeconfig", api.kubeconfig(tmp_path), "--health-bind", "127.0.0.1:0", "--console", console)
        command = [sys.executable, "-c", start, "controller", "--scan", *LEASE, *flags]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=out, env=os.environ) as process:  # noqa: S603 ours
            try:
                eventually(lambda: "the controller has started" in log.read_text(), 60)
                assert f"the console cannot listen at {console}: Address already in use" in log.read_text()
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 0
            finally:
                process.kill()


@pytest.mark.slow
def test_it_runs_until_a_signal_ends_it(tmp_path):
    """Without its objects it says what is not there, and goes on."""
    log = tmp_path / "log"
    start = "import sys; from webhook.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with FakeApi() as api, log.open("wb") as out:
        flags = ("--kubeconfig", api.kubeconfig(tmp_path), "--health-bind", "127.0.0.1:0")
        command = [sys.executable, "-c", start, "controller", *SECRET, *LEASE, *flags]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=out, env=os.environ)  # noqa: S603 ours
        try:
            eventually(lambda: "Lease platform/evenspread-controller: 404" in log.read_text(), 60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
