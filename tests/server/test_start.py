"""What stops a start, with one clear line and nothing served; and what the start says."""

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
from datetime import UTC, datetime

import pytest
from gunicorn.arbiter import Arbiter
from gunicorn.asgi import parser
from gunicorn.workers import base
from server.conftest import PROGRAM, eventually, posted, read_reply, review, serving

from certs.authority import Pair, issue_authority, issue_leaf
from certs.store import write_pair
from webhook.cli.main import main

# The names of gunicorn that its documentation does not promise, and that `connection`, `worker` and `run` use.
UNPROMISED_NAMES = (
    (parser, ("ParseError", "LimitRequestLine", "LimitRequestHeaders", "UnsupportedTransferCoding")),
    (
        parser.PythonProtocol,
        ("feed", "remaining", "reset", "method", "path", "http_version", "headers", "is_chunked", "should_keep_alive"),
    ),
    (Arbiter, ("handle_hup", "handle_term", "init_signals", "WORKER_BOOT_ERROR")),
    (base.Worker, ("SIGNALS", "init_process", "init_signals", "load_wsgi", "run", "notify")),
)
NOW = datetime.now(UTC)
CA = issue_authority(NOW)


def run(*arguments):
    """Exit code and standard error of a start that must fail."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["webhook", "--health-bind", "127.0.0.1:0", *arguments])
    assert out.getvalue() == ""
    return code, err.getvalue()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def test_a_key_of_another_certificate_serves_nothing(tmp_path):
    pair = Pair(certificate=issue_leaf(CA, ("localhost",), NOW).certificate, key=issue_leaf(CA, ("x",), NOW).key)
    certificate, key = write_pair(tmp_path, pair)
    port = free_port()
    code, said = run("--bind", f"127.0.0.1:{port}", "--cert", str(certificate), "--key", str(key))
    assert code == 2
    assert said == f"evenspread: {certificate} and {key}: the private key does not belong to the certificate\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


@pytest.mark.slow
def test_the_matching_pair_is_served(tmp_path):
    certificate, key = write_pair(tmp_path, issue_leaf(CA, ("localhost",), NOW))
    (tmp_path / "ca.crt").write_bytes(CA.certificate)
    pair = {"EVENSPREAD_CERT": str(certificate), "EVENSPREAD_KEY": str(key)}
    with serving(environment=pair) as server:
        assert server.ca == ""
        running = server._replace(ca=str(tmp_path / "ca.crt"))
        with running.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(posted(review()))
            assert read_reply(stream).status == 200


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ("--cert", "a.crt"),
            2,
            "evenspread: --cert and --key need each other: add the missing one\n",
            id="half a pair",
        ),
        pytest.param(
            ("--cert", "absent.crt", "--key", "absent.key"),
            2,
            "evenspread: absent.crt: No such file or directory\n",
            id="an absent certificate",
        ),
        pytest.param(
            ("--bind", "10250"),
            2,
            "evenspread: --bind 10250: write it as HOST:PORT, for example 0.0.0.0:10250\n",
            id="bind",
        ),
        pytest.param(
            ("--bind", "127.0.0.1:99999"),
            2,
            "evenspread: --bind 127.0.0.1:99999: write it as HOST:PORT, for example 0.0.0.0:10250\n",
            id="a port that is none",
        ),
        pytest.param(
            ("--bind", "127.0.0.1:0", "--snapshot", "absent.jsonl"),
            3,
            "evenspread: absent.jsonl: No such file or directory\n",
            id="an absent snapshot",
        ),
        pytest.param(
            ("--kubeconfig", "absent", "--cert", "a", "--key", "b"),
            2,
            "evenspread: --kubeconfig registers a temporary CA: remove --cert and --key, or add --no-register\n",
            id="a certificate for a cluster that cannot know it",
        ),
    ],
)
def test_a_start_that_cannot_be_says_why_in_one_line(arguments, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == (code, said)


def test_a_snapshot_may_be_yaml_as_for_the_other_commands(tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text("a: b: c\n")
    said = f"evenspread: {file}:1: not YAML: mapping values are not allowed in this context\n"
    assert run("--bind", "127.0.0.1:0", "--snapshot", str(file)) == (3, said)
    # One that can be read is no hindrance: then it is the address.
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    said = "evenspread: --bind 10250: write it as HOST:PORT, for example 0.0.0.0:10250\n"
    assert run("--bind", "10250", "--snapshot", str(file)) == (2, said)


def test_a_bad_configuration_stops_the_start_before_a_socket_opens(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceiling: denny\nrulez: {}\n")
    port = free_port()
    code, said = run("--bind", f"127.0.0.1:{port}", "--config", str(file))
    assert code == 2
    first, *faults = said.splitlines()
    assert first == "evenspread: the configuration is invalid"
    assert [fault.startswith(f"{file}:") for fault in faults] == [True, True]


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("--bind", f"127.0.0.1:{port}") == (
            2,
            f"evenspread: --bind 127.0.0.1:{port}: Address already in use\n",
        )


@pytest.mark.parametrize(("holder", "names"), UNPROMISED_NAMES)
def test_the_names_of_gunicorn_exist(holder, names):
    assert [name for name in names if not hasattr(holder, name)] == []


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly():
    with serving() as server:
        os.kill(server.worker, signal.SIGINT)  # a terminal sends it to both
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(5) == 0
    assert not [line for line in server.lines if "Traceback" in line]


@pytest.mark.slow
def test_sighup_changes_nothing():
    with serving() as server, server.connect() as connection, connection.makefile("rb") as stream:
        worker_before = server.worker
        for process in (worker_before, server.process.pid):
            os.kill(process, signal.SIGHUP)
        eventually(lambda: any("SIGHUP is ignored" in line for line in server.lines))
        connection.sendall(posted(review()))
        assert read_reply(stream).status == 200
        assert server.worker == worker_before


@pytest.mark.slow
def test_sighup_ends_what_was_started_in_a_terminal():
    leader, follower = os.openpty()
    with open(leader, "rb"), open(follower, "rb") as terminal, serving(stdin=terminal) as server:  # noqa: PTH123 descriptors
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the printed commands are curl's")
def test_the_example_prints_its_address_and_commands_that_work_anywhere(tmp_path):
    process = subprocess.Popen(  # noqa: S603 our own program
        (*PROGRAM, "--example", "--bind", "127.0.0.1:0", "--health-bind", "127.0.0.1:0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        rollout, deployment, pod = commands(said)
        denied = json.loads(shell(rollout, tmp_path))["response"]
        assert denied["allowed"] is False
        assert denied["status"]["message"].splitlines()[0] == (
            "Rollout shop/web: "
            "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
        )
        warned = json.loads(shell(deployment, tmp_path))["response"]
        assert warned["allowed"] is True
        assert warned["warnings"][0] == (
            "evenspread/selector-not-self: zone[0] counts app=web but the pods have app=web-v2; use app=web-v2"
        )
        patch = json.loads(shell(pod, tmp_path))
        assert any(operation["path"] == "/spec/topologySpreadConstraints" for operation in patch)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    assert "Traceback" not in out


def commands(said):
    """The indented commands, each with its continued lines."""
    blocks = [[]]
    for line in said.splitlines():
        if line.startswith("   curl") or (blocks[-1] and blocks[-1][-1].endswith("\\")):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def shell(command, folder):
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603, S607 the printed command is what is tested
    return done.stdout


def test_port_choice_moves_aside_only_where_nobody_asked_for_one():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run("--example", "--bind", f"127.0.0.1:{port}")
    assert (code, said) == (2, f"evenspread: --bind 127.0.0.1:{port}: Address already in use\n")
