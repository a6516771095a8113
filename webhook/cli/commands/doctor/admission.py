"""Judge what the API server does with a write now: reviewed, refused, or admitted without a review."""

from collections.abc import Iterator
from enum import StrEnum
from http import HTTPStatus

from webhook.cli.commands.doctor.asked_server import VALIDATE
from webhook.cli.commands.doctor.diagnosis import Diagnosis, State, helm_upgrade, ok, problem, unanswered
from webhook.cli.commands.doctor.facts import Facts, Unread, at, configured
from webhook.core.text import one_line

_DENIED, _FAILED = f'admission webhook "{VALIDATE}" denied', f'failed calling webhook "{VALIDATE}"'


class Outcome(StrEnum):
    """What becomes of a write, as the last line of the page says it."""

    REVIEWED = "writes are reviewed"
    REFUSED = "writes are refused, because the webhook does not answer"
    UNREVIEWED = "writes are admitted without a review"
    UNREGISTERED = "writes are not reviewed: no webhook is registered"
    UNKNOWN = "whether writes are reviewed was not checked"


def outcome(facts: Facts) -> Outcome:
    """What became of the dry run."""
    asked, created = facts.asked, facts.asked.status in {HTTPStatus.OK, HTTPStatus.CREATED}
    policies = {
        at(each, "failurePolicy", default="Fail") for _, each in configured(facts) if at(each, "name") == VALIDATE
    }
    # Under Fail an unanswered call would have been refused.
    reviewed = asked.warned or _DENIED in asked.message or asked.counted or (created and policies == {"Fail"})
    if not policies and not isinstance(facts.configurations, Unread):
        return Outcome.UNREGISTERED
    if _FAILED in asked.message:
        return Outcome.REFUSED
    if reviewed:
        return Outcome.REVIEWED
    return Outcome.UNREVIEWED if created and (asked.expected or asked.counted is False) else Outcome.UNKNOWN


def admission(facts: Facts) -> Iterator[Diagnosis]:
    """The line about the dry run."""
    found, asked = outcome(facts), facts.asked
    where = f"dry run of a Deployment in namespace {asked.namespace}" if asked.namespace else "dry run of a Deployment"
    match found:
        case Outcome.REVIEWED:
            yield ok("admission", where, "the API server had it reviewed")
        case Outcome.REFUSED:
            yield problem(
                "admission",
                where,
                f"is refused: {_cause(asked.message)}",
                unanswered(facts),
                "# until the cause is mended, this lets writes pass\n"
                + helm_upgrade(facts, "--set webhook.failurePolicy=Ignore", "--force-conflicts"),
            )
        case Outcome.UNREVIEWED:
            logs = f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
            yield problem("admission", where, "was admitted without a review", unanswered(facts), logs)
        case Outcome.UNKNOWN:
            yield Diagnosis(
                "admission", State.UNKNOWN, where, f"was not checked: {_unchecked(facts)}", unanswered(facts)
            )


def _cause(message: str) -> str:
    """The end of the API server's message, which names the reason."""
    return one_line(message[message.index(_FAILED) + len(_FAILED) :].lstrip(": "), 400)


def _unchecked(facts: Facts) -> str:
    asked = facts.asked
    if isinstance(facts.configurations, Unread):
        return f"webhook configurations: {facts.configurations.reason}"
    if asked.status in {HTTPStatus.OK, HTTPStatus.CREATED}:
        said = "gives no warning" if asked.expected is False else "could not be read"
        return f"it was admitted without a warning, and the policy {said}"
    if asked.status == HTTPStatus.FORBIDDEN and " cannot create resource " in asked.message:
        return f"you may not create Deployments in namespace {asked.namespace}"
    return one_line(asked.message, 200) or f"the API server answered {asked.status}"
