"""Diagnose how the API server treats writes, from a dry run of a test Deployment.

The webhook reviewed it, or the API server refused or admitted it without a review.
"""

from collections.abc import Iterator
from enum import StrEnum
from http import HTTPStatus

from webhook.cli.commands.doctor.api_fields import at
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState, helm_upgrade, ok, problem, unanswered
from webhook.cli.commands.doctor.dry_run import VALIDATE
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, configured, only_policies
from webhook.core.text import one_line

# The API server's own words.
_DENIED, _FAILED = f'admission webhook "{VALIDATE}" denied', f'failed calling webhook "{VALIDATE}"'
_MAX_CAUSE_CHARS = 400  # five lines of a usual terminal
_MAX_MESSAGE_CHARS = 200  # the first sentences of a denial


class WriteOutcome(StrEnum):
    """How the API server treats writes: reviewed, refused or admitted unreviewed.

    The last line of the doctor's output prints this outcome.
    """

    REVIEWED = "writes are reviewed"
    REFUSED = "writes are refused because the webhook does not answer"
    UNREVIEWED = "writes are admitted without a review"
    UNREGISTERED = "writes are not reviewed because no webhook is registered"
    BY_POLICIES = "the API server evaluates admission policies, and no webhook is registered"
    UNKNOWN = "could not check whether writes are reviewed"


def write_outcome(facts: InstallationFacts) -> WriteOutcome:
    """Infer from the dry run how the API server treats writes: reviewed, unreviewed or refused."""
    dry_run, created = facts.dry_run, facts.dry_run.status in {HTTPStatus.OK, HTTPStatus.CREATED}
    policies = {
        at(webhook, "failurePolicy", default="Fail")
        for _, webhook in configured(facts)
        if at(webhook, "name") == VALIDATE
    }
    # With Fail, the API server would have refused an unanswered call.
    reviewed = dry_run.warned or _DENIED in dry_run.message or dry_run.counted or (created and policies == {"Fail"})
    if not policies and not isinstance(facts.configurations, Unread):
        return WriteOutcome.BY_POLICIES if only_policies(facts) else WriteOutcome.UNREGISTERED
    if _FAILED in dry_run.message:
        return WriteOutcome.REFUSED
    if reviewed:
        return WriteOutcome.REVIEWED
    unreviewed = created and (dry_run.expected or dry_run.counted is False)
    return WriteOutcome.UNREVIEWED if unreviewed else WriteOutcome.UNKNOWN


def admission(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a diagnosis of the dry run: whether the webhook reviewed a test Deployment."""
    dry_run, where = facts.dry_run, "dry run of a Deployment"
    if dry_run.namespace:
        where = f"{where} in namespace {dry_run.namespace}"
    match write_outcome(facts):
        case WriteOutcome.REVIEWED:
            yield ok("admission", where, "was reviewed by the webhook")
        case WriteOutcome.REFUSED:
            yield problem(
                "admission",
                where,
                f"was refused: {_cause(dry_run.message)}",
                unanswered(facts),
                "# lets writes pass until you have fixed the cause\n"
                + helm_upgrade(facts, "--set webhook.failurePolicy=Ignore", "--force-conflicts"),
            )
        case WriteOutcome.UNREVIEWED:
            logs = f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
            yield problem("admission", where, "was admitted without a review", unanswered(facts), logs)
        case WriteOutcome.UNKNOWN:
            yield Diagnosis(
                "admission", DiagnosisState.UNKNOWN, where, f"was not checked: {_unchecked(facts)}", unanswered(facts)
            )


def _cause(message: str) -> str:
    return one_line(message[message.index(_FAILED) + len(_FAILED) :].lstrip(": "), _MAX_CAUSE_CHARS)


def _unchecked(facts: InstallationFacts) -> str:
    dry_run = facts.dry_run
    if isinstance(facts.configurations, Unread):
        return f"webhook configurations: {facts.configurations.reason}"
    if dry_run.status in {HTTPStatus.OK, HTTPStatus.CREATED}:
        policy = "the policy has no warning for it" if dry_run.expected is False else "the policy could not be read"
        return f"the test Deployment got no warning, but {policy}"
    if dry_run.status == HTTPStatus.FORBIDDEN and " cannot create resource " in dry_run.message:
        return f"you may not create Deployments in namespace {dry_run.namespace}"
    return one_line(dry_run.message, _MAX_MESSAGE_CHARS) or f"the API server answered {dry_run.status}"
