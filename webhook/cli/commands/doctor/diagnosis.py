"""A line of the diagnosis: what, where, why, and what to do."""

from enum import StrEnum

from msgspec import Struct

from webhook.cli.commands.doctor.facts import Facts, Unread, configured, release_of


class State(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"  # worth knowing; nothing is wrong
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Diagnosis(Struct, frozen=True):
    """One line about an installation.

    Shape: ``fix`` is a command to copy, or several, one a line. A problem always has one.
    """

    check: str
    state: State
    where: str
    what: str
    why: str = ""
    fix: str = ""


def ok(check: str, where: str, what: str) -> Diagnosis:
    """A line about something that is right."""
    return Diagnosis(check, State.OK, where, what)


def note(check: str, where: str, what: str, why: str, fix: str = "") -> Diagnosis:
    """A line about something that is worth knowing."""
    return Diagnosis(check, State.NOTE, where, what, why, fix)


def problem(check: str, where: str, what: str, why: str, fix: str) -> Diagnosis:
    """A line about a fault."""
    return Diagnosis(check, State.PROBLEM, where, what, why, fix)


def unknown(check: str, where: str, unread: Unread, lost: str, fix: str = "") -> Diagnosis:
    """A line about an unreadable object. ``lost`` is the open question."""
    return Diagnosis(check, State.UNKNOWN, where, f"could not be read: {unread.reason}", lost, fix)


def helm_upgrade(facts: Facts, *values: str) -> str:
    """The command that renders the chart again, with the values of the release and further ones."""
    release, namespace = release_of(facts) or "evenspread", facts.namespace or "evenspread"
    words = ("helm upgrade", release, f"charts/evenspread -n {namespace} --reset-then-reuse-values", *values)
    return " ".join(words)


def unanswered(facts: Facts) -> str:
    """What the API server does with a write while the webhook does not answer.

    Each webhook configuration says it by failurePolicy. The sentence is a condition, so that it is true in every state.
    """
    policies = {str(webhook.get("failurePolicy", "Fail")) for _, webhook in configured(facts)}
    if policies == {"Ignore"}:
        return "without an answer the API server admits each write unreviewed (failurePolicy Ignore)"
    if "Fail" in policies:
        return "without an answer the API server refuses each write that it has to ask about (failurePolicy Fail)"
    return "without an answer the API server refuses each write, or admits it unreviewed, as failurePolicy says"
