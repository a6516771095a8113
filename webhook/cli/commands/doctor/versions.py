"""Judge releases, the policy that replicas read, and where reports could be written."""

from collections.abc import Iterator, Mapping

from webhook import __version__
from webhook.cli.commands.doctor.diagnosis import Diagnosis, State, helm_upgrade, note, ok, problem, unknown
from webhook.cli.commands.doctor.facts import Facts, Unread, arguments, name_of
from webhook.core.api.version import RECORDED, SUPPORTED
from webhook.core.text import listed, together
from webhook.report.documents import KINDS, ReportApi

REPORT_VERBS = ("list", "create", "patch", "delete")  # of the controller


def versions(facts: Facts) -> Iterator[Diagnosis]:
    """The releases of Kubernetes and of evenspread."""
    if facts.version is None:
        state, why = State.PROBLEM, f"{SUPPORTED} are supported; answers are those of {RECORDED}"
    elif facts.version.minor > RECORDED.minor:
        state, why = State.NOTE, f"{SUPPORTED} are supported; answers follow what is announced for {facts.version}"
    else:
        state, why = State.OK, ""
    what = facts.release or "does not say its release"
    yield Diagnosis("Kubernetes", state, "API server", what, why, "evenspread version" if why else "")
    if isinstance(facts.deployment, Unread):
        yield unknown("version", "Deployment of the webhook", facts.deployment, "which release of evenspread runs")
    elif facts.deployment is not None:
        where = f"Deployment {facts.namespace}/{name_of(facts.deployment)}"
        if not _apart(facts.program, __version__):
            yield ok("version", where, f"evenspread {facts.program}")
            return
        yield problem(
            "version",
            where,
            f"evenspread {facts.program or 'of an unknown release'}; this command is {__version__}",
            "formats are read by one minor release older and newer; this command may misjudge what it reads",
            f"pip install 'evenspread[webhook]=={facts.program}'",
        )


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
    refused = [each.name for each in facts.replicas if each.config_valid is False]
    if facts.config_map is None:
        what = "is not there"
    elif facts.policy_faults:
        what = listed(facts.policy_faults, 1)
    else:
        what = f"was not taken by {listed(refused, 2)}" if refused else ""
    if what:
        why = "replicas keep the last good policy, and new ones do not start"
        yield problem("policy", where, what, why, helm_upgrade(facts, "--force-conflicts"))
    elif facts.policy is not None:
        yield ok("policy", where, f"ceiling {facts.policy.ceiling}, defaults {facts.policy.defaults.mode}")


def report_api(facts: Facts) -> ReportApi | None:
    """The API that the controller writes reports to: the first one with the resource, whatever its verbs."""
    apis = {} if isinstance(facts.report_apis, Unread) else facts.report_apis
    return next((each for each in ReportApi if apis.get(each) is not None), None)


def reports(facts: Facts) -> Iterator[Diagnosis]:
    """Judge whether the cluster has a usable resource for the controller's reports."""
    where = "API server"
    if isinstance(facts.report_apis, Unread):
        yield unknown("reports", where, facts.report_apis, "whether reports can be kept in the cluster")
        return
    if isinstance(facts.controller, Mapping) and "--no-reports" in arguments(facts.controller):
        yield ok("reports", f"Deployment {facts.namespace}/{name_of(facts.controller)}", "writes no reports")
        return
    api = report_api(facts)
    verbs = () if api is None else facts.report_apis[api] or ()
    lacking = [verb for verb in REPORT_VERBS if verb not in verbs]
    if api is not None and not lacking:
        yield ok("reports", f"API {api}", f"takes a {KINDS[api]}")
        return
    what = "has neither openreports.io nor wgpolicyk8s.io"
    if api is not None:
        what = f"{api} does not let anybody {together(lacking)} a {KINDS[api]}"
    elif facts.report_apis:
        what = "; ".join(f"{each} is there without its {KINDS[ReportApi(each)]}" for each in facts.report_apis)
    install = "helm upgrade --install openreports --repo https://openreports.github.io/reports-api openreports"
    yield note(
        "reports", where, what, "reports cannot be kept in the cluster; audit, metrics and warnings do without", install
    )
