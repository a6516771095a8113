"""Judge releases, the policy of the replicas, and the API for reports."""

from collections.abc import Iterator, Mapping

from webhook import __version__
from webhook.cli.commands.doctor.api_fields import arguments, name_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState, helm_upgrade, note, ok, problem, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread
from webhook.core.api.version import RECORDED, SUPPORTED
from webhook.core.text import listed, together
from webhook.report.documents import KINDS, ReportApi

REPORT_VERBS = ("list", "create", "patch", "delete")  # that the controller uses


def versions(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield the lines about the releases of Kubernetes and evenspread."""
    supported = f"evenspread supports {SUPPORTED} and behaves"
    if facts.version is None:
        state, why = DiagnosisState.PROBLEM, f"{supported} as in {RECORDED}"
    elif facts.version.minor > RECORDED.minor:
        state, why = DiagnosisState.NOTE, f"{supported} as announced for {facts.version}"
    else:
        state, why = DiagnosisState.OK, ""
    what = facts.release or "does not report its release"
    yield Diagnosis("Kubernetes", state, "API server", what, why, "evenspread version" if why else "")
    if isinstance(facts.deployment, Unread):
        yield unknown("version", "Deployment of the webhook", facts.deployment, "which release of evenspread runs")
    elif facts.deployment is not None:
        where = f"Deployment {facts.namespace}/{name_of(facts.deployment)}"
        if not _apart(facts.program, __version__):
            yield ok("version", where, f"runs evenspread {facts.program}")
            return
        yield problem(
            "version",
            where,
            f"runs evenspread {facts.program or 'of an unknown release'}; this command is {__version__}",
            "The releases are more than a minor release apart, so this command may misjudge the installation",
            f"pip install 'evenspread[webhook]=={facts.program}'",
        )


def _apart(one: str, other: str) -> bool:
    """Whether two releases are more than a minor release apart."""
    try:
        (major, minor), (own_major, own_minor) = (map(int, text.split(".")[:2]) for text in (one, other))
    except ValueError:
        return True
    return major != own_major or abs(minor - own_minor) > 1


def policy(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield the line about the policy: whether the ConfigMap exists, is valid, and is loaded by every replica."""
    if not facts.service_name:
        return
    where = f"ConfigMap {facts.namespace}/{facts.service_name}"
    if isinstance(facts.config_map, Unread):
        yield unknown("policy", where, facts.config_map, "whether the policy has faults")
        return
    refused = [replica.name for replica in facts.replicas if replica.config_valid is False]
    if facts.config_map is None:
        what = "does not exist"
    elif facts.policy_faults:
        what = listed(facts.policy_faults, 1)
    else:
        what = f"was not loaded by {listed(refused, 2)}" if refused else ""
    if what:
        why = "Replicas keep the last valid policy, and new replicas do not start"
        yield problem("policy", where, what, why, helm_upgrade(facts, "--force-conflicts"))
    elif facts.policy is not None:
        yield ok("policy", where, f"ceiling {facts.policy.ceiling}, defaults {facts.policy.defaults.mode}")


def report_api(facts: InstallationFacts) -> ReportApi | None:
    """Return the first report API in the cluster with a report resource, whatever verbs it has."""
    apis = {} if isinstance(facts.report_apis, Unread) else facts.report_apis
    return next((api for api in ReportApi if apis.get(api) is not None), None)


def reports(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a diagnosis: whether the API server has a resource to store the controller's reports."""
    where = "API server"
    if isinstance(facts.report_apis, Unread):
        yield unknown("reports", where, facts.report_apis, "whether the cluster can store reports")
        return
    if isinstance(facts.controller, Mapping) and "--no-reports" in arguments(facts.controller):
        yield ok("reports", f"Deployment {facts.namespace}/{name_of(facts.controller)}", "writes no reports")
        return
    api = report_api(facts)
    verbs = () if api is None else facts.report_apis[api] or ()
    missing = [verb for verb in REPORT_VERBS if verb not in verbs]
    if api is not None and not missing:
        yield ok("reports", f"API {api}", f"has the resource {KINDS[api]}")
        return
    what = "has neither openreports.io nor wgpolicyk8s.io"
    if api is not None:
        what = f"{api} does not support {together(missing)} for {KINDS[api]}"
    elif facts.report_apis:
        what = "; ".join(f"{api} has no resource {KINDS[ReportApi(api)]}" for api in facts.report_apis)
    install = "helm upgrade --install openreports --repo https://openreports.github.io/reports-api openreports"
    why = "The cluster cannot store reports. Audit, metrics and warnings do not need them"
    yield note("reports", where, what, why, install)
