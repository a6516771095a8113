"""All checks, in the order in which they are read: what must be right first comes first."""

from collections.abc import Iterator

from webhook.cli.commands.doctor.admission import Outcome, admission, outcome
from webhook.cli.commands.doctor.certificates import certificates
from webhook.cli.commands.doctor.controller import controller, health
from webhook.cli.commands.doctor.diagnosis import Diagnosis
from webhook.cli.commands.doctor.endpoints import endpoints
from webhook.cli.commands.doctor.facts import Facts
from webhook.cli.commands.doctor.permissions import permissions
from webhook.cli.commands.doctor.registration import registration
from webhook.cli.commands.doctor.versions import policy, reports, versions

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
