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
