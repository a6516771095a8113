import pytest

from webhook.cli.output import terminal
from webhook.cli.output.long_runs import Progress
from webhook.cli.output.page import paint


class Terminal:
    """A stream that says that it is a terminal, and keeps what was written."""

    def __init__(self, *, tty=True):
        self.tty, self.text = tty, ""

    def isatty(self):
        return self.tty

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("tty", "environment", "colored"),
    [
        pytest.param(True, {}, True, id="a terminal"),
        pytest.param(False, {}, False, id="a file"),
        pytest.param(True, {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(True, {"NO_COLOR": ""}, True, id="NO_COLOR that is empty"),
        pytest.param(True, {"TERM": "dumb"}, False, id="a terminal without colours"),
    ],
)
def test_colours(monkeypatch, tty, environment, colored):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Terminal(tty=tty))
    assert paint("x", "1", "31") == ("\033[1;31mx\033[0m" if colored else "x")
    assert not paint("", "1")


@pytest.mark.parametrize(
    ("tty", "waited", "shown"),
    [
        pytest.param(True, True, "\r\033[K7 objects\r\033[K", id="on a terminal, for who waits"),
        pytest.param(True, False, "", id="nothing at first"),
        pytest.param(False, True, "", id="nothing in a file"),
    ],
)
def test_progress(monkeypatch, tty, waited, shown):
    stream = Terminal(tty=tty)
    monkeypatch.setattr("sys.stderr", stream)
    progress = Progress(patience_seconds=-1 if waited else 60)
    progress(7)
    progress(8)
    progress.close()
    assert stream.text == shown


@pytest.mark.parametrize(("tty", "shown"), [(True, "\r\033[Knodes: 403\n"), (False, "nodes: 403\n")])
def test_a_line_takes_the_place_of_the_counter(monkeypatch, tty, shown):
    stream = Terminal(tty=tty)
    monkeypatch.setattr("sys.stderr", stream)
    terminal.print_message("nodes: 403")
    assert stream.text == shown
