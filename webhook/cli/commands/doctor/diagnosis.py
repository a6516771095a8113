"""A line of the diagnosis: where, what, why, and the fix."""

from enum import StrEnum

from msgspec import Struct

from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, configured, release_of


class DiagnosisState(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"  # no fault
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Diagnosis(Struct, frozen=True):
    """One line about an installation.

    Attributes:
        check: The name of the check.
        state: Its result.
        where: The object.
        what: The finding, as a predicate of ``where``.
        why: The consequence.
        fix: Commands to copy, one a line. Problems always have one.
    """

    check: str
    state: DiagnosisState
    where: str
    what: str
    why: str = ""
    fix: str = ""


def ok(check: str, where: str, what: str) -> Diagnosis:
    """A line without a fault."""
    return Diagnosis(check, DiagnosisState.OK, where, what)


def note(check: str, where: str, what: str, why: str, fix: str = "") -> Diagnosis:
    """A line with information."""
    return Diagnosis(check, DiagnosisState.NOTE, where, what, why, fix)


def problem(check: str, where: str, what: str, why: str, fix: str) -> Diagnosis:
    """A line with a fault."""
    return Diagnosis(check, DiagnosisState.PROBLEM, where, what, why, fix)


def unknown(check: str, where: str, unread: Unread, lost: str, fix: str = "") -> Diagnosis:
    """A line about an unreadable object. ``lost`` is the open question, as in ``whether a replica is ready``."""
    return Diagnosis(
        check, DiagnosisState.UNKNOWN, where, f"could not be read: {unread.reason}", f"Unknown: {lost}", fix
    )


def helm_upgrade(facts: InstallationFacts, *values: str) -> str:
    """The command that upgrades the release with its own values and these."""
    release, namespace = release_of(facts) or "evenspread", facts.namespace or "evenspread"
    words = ("helm upgrade", release, f"charts/evenspread -n {namespace} --reset-then-reuse-values", *values)
    return " ".join(words)


def unanswered(facts: InstallationFacts) -> str:
    """What happens to writes while the webhook does not answer, by failurePolicy.

    The sentence is a condition, so it also holds while the webhook answers.
    """
    policies = {str(webhook.get("failurePolicy", "Fail")) for _, webhook in configured(facts)}
    if policies == {"Ignore"}:
        return "While the webhook does not answer, the API server admits writes without a review (failurePolicy Ignore)"
    if "Fail" in policies:
        return "While the webhook does not answer, the API server refuses matching writes (failurePolicy Fail)"
    return "While the webhook does not answer, failurePolicy decides whether the API server refuses or admits writes"
