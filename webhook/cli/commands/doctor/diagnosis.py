"""The lines printed by `evenspread doctor`: checked object, result, consequence and fix."""

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
    """A line of `evenspread doctor` about an installation.

    Attributes:
        check: The name of the check.
        state: The result of the check.
        where: The checked object.
        what: The finding, as a predicate with the subject ``where``.
        why: The consequence of a problem.
        fix: Commands to copy, one a line. A problem always has a command.
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
    """Return a line about an unreadable object.

    ``lost`` is the question left unanswered, as in ``whether a replica is ready``.
    """
    return Diagnosis(
        check, DiagnosisState.UNKNOWN, where, f"could not be read: {unread.reason}", f"Unknown: {lost}", fix
    )


def helm_upgrade(facts: InstallationFacts, *values: str) -> str:
    """Return a ``helm upgrade`` command with the release's own values and the additional ``values``."""
    release, namespace = release_of(facts) or "evenspread", facts.namespace or "evenspread"
    words = ("helm upgrade", release, f"charts/evenspread -n {namespace} --reset-then-reuse-values", *values)
    return " ".join(words)


def unanswered(facts: InstallationFacts) -> str:
    """Describe the effect of failurePolicy while the webhook does not answer.

    The sentence starts with "While", so it is also true if the webhook answers.
    """
    policies = {str(webhook.get("failurePolicy", "Fail")) for _, webhook in configured(facts)}
    if policies == {"Ignore"}:
        return "While the webhook does not answer, the API server admits writes without a review (failurePolicy Ignore)"
    if "Fail" in policies:
        return "While the webhook does not answer, the API server refuses matching writes (failurePolicy Fail)"
    return "While the webhook does not answer, failurePolicy decides whether the API server refuses or admits writes"
