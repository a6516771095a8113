"""``-o github``: workflow commands, for annotations on the lines of a pull request.

Source: docs.github.com, workflow commands for GitHub Actions, ``::error``.
"""

from collections.abc import Iterator

from webhook.cli.checking.finding_text import file_and_place, message_with_fix
from webhook.cli.checking.levels import hidden_lines
from webhook.cli.checking.results import RunResult
from webhook.core.rules.frame.rule import Severity
from webhook.core.text import one_line

_COMMANDS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}


def render(result: RunResult) -> Iterator[str]:
    """Yield a GitHub workflow command (``::error …``) per fault and finding.

    Unreadable input comes first, because findings are incomplete without this input. Hidden findings follow as plain
    log lines.
    """
    for fault in result.faults:
        if fault.fatal:
            yield _command("error", fault.file, fault.line, fault.column, "evenspread: unreadable", fault.message)
    for row in result.rows:
        if row.waived:
            continue
        text = f"{row.manifest.title}: {message_with_fix(row)}\n{row.url}"
        title = f"evenspread/{row.judged.finding.rule}"
        file, place = file_and_place(row)
        line, column = (place.line, place.column) if place else (0, 0)
        yield _command(_COMMANDS[row.severity], file, line, column, title, text)
    yield from (f"{line}\n" for line in hidden_lines(result))  # plain text of the job's log


def _command(name: str, file: str, line: int, column: int, title: str, text: str) -> str:  # noqa: PLR0913, PLR0917 the command's own fields
    place = f",line={line},col={column}" if line else ""
    return f"::{name} file={_property(file)}{place},title={_property(title)}::{_data(text)}\n"


def _data(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return one_line(escaped, len(escaped))  # file names can contain terminal codes


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
