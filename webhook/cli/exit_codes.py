"""Exit codes, and the error for stopping a command."""

from collections.abc import Iterable
from enum import IntEnum

from webhook.core.spelling import did_you_mean


class Exit(IntEnum):
    """The exit codes. They are a stable interface for scripts."""

    FINE = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    CLUSTER = 4
    OUR_FAULT = 5
    INTERRUPTED = 130  # 128 + SIGINT, as in shells


class CommandError(Exception):
    """Stop the command with a message of one line and an exit code."""

    def __init__(self, message: str, code: int = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code


def no_namespace(source: str, namespace: str, names: Iterable[str]) -> CommandError:
    """The error for a namespace that does not exist."""
    suggestion = did_you_mean(namespace, names, 3)
    return CommandError(f"{source}: no namespace {namespace[:64]!r}{suggestion}", Exit.USAGE)
