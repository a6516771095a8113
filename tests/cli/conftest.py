import io
import sys

import pytest

from webhook.cli.main import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in an empty directory; gives exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENSPREAD_CONFIG", raising=False)

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def check(run, tmp_path):
    """Runs check in a directory that holds this text as web.yaml."""

    def check(*arguments, web, stdin=b""):
        (tmp_path / "web.yaml").write_text(web)
        return run("check", *arguments, stdin=stdin)

    return check
