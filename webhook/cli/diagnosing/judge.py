"""All checks, in the order in which they are read: what must be right first comes first."""

from collections.abc import Iterator

from webhook.cli.diagnosing.admission import Outcome, admission, outcome
from webhook.cli.diagnosing.certificates import certificates
from webhook.cli.diagnosing.controller import controller, health
from webhook.cli.diagnosing.diagnosis import Diagnosis
from webhook.cli.diagnosing.endpoints import endpoints
from webhook.cli.diagnosing.facts import Facts
from webhook.cli.diagnosing.permissions import permissions
from webhook.cli.diagnosing.registration import registration
from webhook.cli.diagnosing.versions import policy, reports, versions

_CHECKS = (
    versions,
    registration,
    admission,
    certificates,
    endpoints,
    controller,
    health,
    permissions,
    policy,
    reports,
)

__all__ = ["Outcome", "judge", "outcome"]


def judge(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about an installation."""
    for check in _CHECKS:
        yield from check(facts)
