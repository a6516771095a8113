"""How a command ends: its exit code, or one clear line and a code if it cannot go on."""

from collections.abc import Iterable
from enum import IntEnum

from webhook.core.text import did_you_mean


class Exit(IntEnum):
    """The exit codes, which are promises."""

    FINE = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    CLUSTER = 4
    OUR_FAULT = 5
    INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


class CommandError(Exception):
    """A command cannot go on: one clear line, and the exit code (usage or configuration, unless another is given)."""

    def __init__(self, message: str, code: int = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code


def no_namespace(source: str, namespace: str, names: Iterable[str]) -> CommandError:
    """The error about a namespace that does not exist."""
    meant = did_you_mean(namespace, names, 3)
    return CommandError(f"{source}: no namespace {namespace[:64]!r}{meant}", Exit.USAGE)
