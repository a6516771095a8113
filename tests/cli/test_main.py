import errno
import os
import subprocess
import sys

import pytest

from webhook import __version__
from webhook.cli.completion import kubectl
from webhook.cli.main import evenspread, exit_code_of


def test_version(run):
    code, out, err = run("version")
    assert (code, err) == (0, "")
    assert out == f"evenspread {__version__} (Kubernetes 1.31 to 1.37; 1.38 as announced)\n"


def test_every_command_has_help(run):
    for name in evenspread.list_commands(None):
        code, out, err = run(name, "--help")
        assert (code, err) == (0, ""), name
        assert out.startswith(f"Usage: evenspread {name}")


def test_as_a_plugin_of_kubectl(run, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-evenspread"])
    assert run("check", "--help")[1].startswith("Usage: kubectl evenspread check")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts(run, shell):
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "_EVENSPREAD_COMPLETE" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("ev che", ["check"], id="a command"),
        pytest.param("ev check --fail-on h", ["high"], id="a value"),
        pytest.param("ev check --rule selector-nu", ["selector-null"], id="a rule"),
    ],
)
def test_bash_completes(run, tmp_path, words, expected):
    (tmp_path / "completion").write_text(run("completion", "bash")[1])
    program = tmp_path / "ev"
    program.write_text(f"#!{sys.executable}\nfrom webhook.cli.main import run; run()\n")
    program.chmod(0o755)
    script = (
        'source completion; read -ra COMP_WORDS <<<"$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
        '_evenspread_completion ./ev; printf "%s\\n" "${COMPREPLY[@]}"; complete -p evenspread'
    )
    done = subprocess.run(  # noqa: S603 our own script
        ["/bin/bash", "-c", script, "bash", words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    *choices, registered = done.stdout.splitlines()
    assert (choices, done.stderr) == (expected, "")
    assert registered.endswith(" -F _evenspread_completion evenspread")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["che"], ["check\tCheck manifests", ":4"], id="a command"),
        pytest.param(["check", "--fail"], ["--fail-on\tLowest level of", ":4"], id="an option"),
        pytest.param(["check", "--fail-on", "h"], ["high", ":4"], id="a value"),
        pytest.param(["check", "--rule", "selector-nu"], ["selector-null\t", ":4"], id="a rule"),
        pytest.param(["check", "--config", ""], [":0"], id="a file"),
    ],
)
def test_kubectl_completes(capsys, monkeypatch, words, expected):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-evenspread", *words])
    kubectl()
    lines = capsys.readouterr().out.splitlines()
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_fault(tmp_path):
    pod = "apiVersion: v1\nkind: Pod\nspec: {topologySpreadConstraints: [{maxSkew: 0}]}\n---\n"
    (tmp_path / "a.yaml").write_text(pod * 300)
    script = "from webhook.cli.main import run; run()"
    shell = ["/bin/bash", "-o", "pipefail", "-c", f"{sys.executable} -c '{script}' check a.yaml -o sarif | head -c 1"]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 our own command
    assert (done.returncode, done.stdout, done.stderr) == (1, "{", "")


def interrupted():
    raise KeyboardInterrupt


def broken():
    raise RuntimeError("first\nsecond")


def test_an_interrupt_is_no_fault(capsys):
    assert exit_code_of(interrupted) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (errno.ENOSPC, 5, "evenspread: the results could not be written: No space left on device\n"),
        (errno.EIO, 5, "evenspread: a bug in evenspread, please report it (OSError: "),
    ],
    ids=["a full disk", "anything else"],
)
def test_results_that_cannot_be_written(monkeypatch, capsys, number, code, line):
    monkeypatch.delenv("EVENSPREAD_DEBUG", raising=False)

    def write():
        raise OSError(number, os.strerror(number))

    assert exit_code_of(write) == code
    assert capsys.readouterr().err.startswith(line)


def test_a_fault_of_ours_can_be_looked_into(monkeypatch, capsys):
    monkeypatch.delenv("EVENSPREAD_DEBUG", raising=False)
    assert exit_code_of(broken) == 5
    fault = "a bug in evenspread, please report it (RuntimeError: first); EVENSPREAD_DEBUG=1 shows where"
    assert capsys.readouterr() == ("", f"evenspread: {fault}\n")
    monkeypatch.setenv("EVENSPREAD_DEBUG", "1")
    with pytest.raises(RuntimeError):
        exit_code_of(broken)


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        pytest.param("kubernetes.client", 2, "reading a cluster needs the package kubernetes", id="an extra"),
        pytest.param("webhook.nowhere", 5, "a bug in evenspread", id="a module of our own"),
    ],
)
def test_a_module_that_is_missing(capsys, module, code, said):
    def command():
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    assert exit_code_of(command) == code
    assert capsys.readouterr().err.startswith(f"evenspread: {said}")
