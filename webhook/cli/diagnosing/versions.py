"""Judge releases, the policy that replicas read, and where reports could be written."""

from collections.abc import Iterator

from webhook import __version__
from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import ConfigMap, Deployment, Facts, Unread, readable
from webhook.cli.diagnosing.registration import release_of
from webhook.core.api.version import RECORDED, SUPPORTED
from webhook.core.text import listed

_REPORTS = ("openreports.io", "wgpolicyk8s.io")


def versions(facts: Facts) -> Iterator[Diagnosis]:
    """The releases of Kubernetes and of evenspread."""
    if facts.version is None:
        state, why = State.PROBLEM, f"{SUPPORTED} are supported; answers are those of {RECORDED}"
    elif facts.version.minor > RECORDED.minor:
        state, why = State.NOTE, f"{SUPPORTED} are supported; answers follow what is announced for {facts.version}"
    else:
        state, why = State.OK, ""
    yield Diagnosis(
        check="Kubernetes",
        state=state,
        where="API server",
        what=facts.release or "does not say its release",
        why=why,
        fix="evenspread version" if why else "",
    )
    if isinstance(facts.deployment, Unread):
        yield unknown("version", "Deployment of the webhook", facts.deployment, "which release of evenspread runs")
    elif facts.deployment is not None:
        yield _program(facts, facts.deployment)


def _program(facts: Facts, deployment: Deployment) -> Diagnosis:
    where = f"Deployment {facts.namespace}/{deployment.metadata.name}"
    if _apart(facts.program, __version__):
        return Diagnosis(
            check="version",
            state=State.PROBLEM,
            where=where,
            what=f"evenspread {facts.program or 'of an unknown release'}; this command is {__version__}",
            why="formats are read by one minor release older and newer; this command may misjudge what it reads",
            fix=f"pip install 'evenspread[webhook]=={facts.program}'",
        )
    return Diagnosis(check="version", state=State.OK, where=where, what=f"evenspread {facts.program}")


def _apart(one: str, other: str) -> bool:
    """Whether two releases are more than a minor release apart."""
    try:
        (major, minor), (own_major, own_minor) = (map(int, text.split(".")[:2]) for text in (one, other))
    except ValueError:
        return True
    return major != own_major or abs(minor - own_minor) > 1


def policy(facts: Facts) -> Iterator[Diagnosis]:
    """The ConfigMap with the policy: there, without faults, and taken by every replica."""
    if not facts.service_name:
        return
    where = f"ConfigMap {facts.namespace}/{facts.service_name}"
    if isinstance(facts.config_map, Unread):
        yield unknown("policy", where, facts.config_map, "whether the policy has faults")
        return
    refused = [each.name for each in readable(facts.replicas) if each.config_valid is False]
    if facts.config_map is None or facts.policy_faults or refused:
        yield _policy_fault(facts, facts.config_map, where, refused)
    else:
        yield Diagnosis(check="policy", state=State.OK, where=where, what=_in_words(facts))


def _policy_fault(facts: Facts, config_map: ConfigMap | None, where: str, refused: list[str]) -> Diagnosis:
    if config_map is None:
        what = "is not there"
    elif facts.policy_faults:
        what = listed(facts.policy_faults, 1)
    else:
        what = f"was not taken by {listed(refused, 2)}"
    return Diagnosis(
        check="policy",
        state=State.PROBLEM,
        where=where,
        what=what,
        why="replicas keep the last good policy, and new ones do not start",
        fix=helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts"),
    )


def _in_words(facts: Facts) -> str:
    if facts.policy is None:
        return "is there"
    return f"ceiling {facts.policy.ceiling}, defaults {facts.policy.defaults.mode}"


def reports(facts: Facts) -> Iterator[Diagnosis]:
    """Whether the cluster has an API for reports."""
    if isinstance(facts.groups, Unread):
        yield unknown("reports", "API groups", facts.groups, "whether reports can be kept in the cluster")
        return
    found = next((each for each in _REPORTS if each in facts.groups), "")
    if found:
        yield Diagnosis(check="reports", state=State.OK, where=f"API group {found}", what="takes reports")
    else:
        yield Diagnosis(
            check="reports",
            state=State.NOTE,
            where="API server",
            what="has neither openreports.io nor wgpolicyk8s.io",
            why="reports cannot be kept in the cluster; audit, metrics and warnings do without",
            fix="helm upgrade --install openreports --repo https://openreports.github.io/reports-api openreports",
        )
