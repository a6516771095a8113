"""Exit codes of every command."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; promises."""

    FINE = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    CLUSTER = 4
    OUR_FAULT = 5
    INTERRUPTED = 130
