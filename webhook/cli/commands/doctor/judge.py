"""The checks, in the order of the page: prerequisites first."""

from collections.abc import Iterator

from webhook.cli.commands.doctor.admission import WriteOutcome, admission, write_outcome
from webhook.cli.commands.doctor.certificates import certificates
from webhook.cli.commands.doctor.controller import controller, health
from webhook.cli.commands.doctor.diagnosis import Diagnosis
from webhook.cli.commands.doctor.endpoints import endpoints
from webhook.cli.commands.doctor.facts import InstallationFacts
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

__all__ = ["WriteOutcome", "judge", "write_outcome"]


def judge(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield all lines about an installation."""
    for check in _CHECKS:
        yield from check(facts)
