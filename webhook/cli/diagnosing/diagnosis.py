"""What a check says: what, where, why, and what to do."""

from enum import StrEnum

from msgspec import Struct

from webhook.cli.diagnosing.facts import Unread


class State(StrEnum):
    """How it stands with what was checked."""

    OK = "ok"
    NOTE = "note"  # worth knowing; nothing is wrong
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Diagnosis(Struct, frozen=True, kw_only=True):
    """One line about an installation.

    Shape: ``fix`` is a command to copy, or several, one a line; empty where nothing is to be done.
    """

    check: str
    state: State
    where: str
    what: str
    why: str = ""
    fix: str = ""


def unknown(check: str, where: str, unread: Unread, lost: str, fix: str = "") -> Diagnosis:
    """The line about what could not be read; ``lost`` is what is not known by that."""
    return Diagnosis(
        check=check, state=State.UNKNOWN, where=where, what=f"could not be read: {unread.reason}", why=lost, fix=fix
    )


def helm_upgrade(release: str, namespace: str, *values: str) -> str:
    """The command that renders the chart anew with the values of the release and some more."""
    words = (
        "helm upgrade",
        release or "evenspread",
        "charts/evenspread",
        f"-n {namespace}",
        "--reset-then-reuse-values",
        *values,
    )
    return " ".join(words)
