"""Compare the installed ValidatingAdmissionPolicies with the objects compiled from the policy."""

from collections.abc import Iterator, Mapping
from shlex import quote

from webhook.cli.commands.doctor.api_fields import Object, at, name_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState, ok, problem, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread
from webhook.cli.live_cluster import CONFIG_MAP
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.api.version import RECORDED
from webhook.core.text import together

_CHECK, _POLICIES = "admission policies", "ValidatingAdmissionPolicies"
_STALE = "The API server evaluates other rules, modes or exemptions than those of the policy"
# The API server adds these. Source: k8s.io/kubernetes pkg/apis/admissionregistration/v1 defaults.go.
_DEFAULTS: Mapping[str, object] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


def policy_drift(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each missing, changed or leftover object. Without any installed object, yield nothing."""
    if isinstance(facts.admission_policies, Unread):
        yield unknown(_CHECK, _POLICIES, facts.admission_policies, "whether they match the policy")
        return
    if not facts.admission_policies:
        return
    policy = facts.given_policy or facts.policy
    if policy is None:
        what, why = "were not compared: the cluster has no valid policy of evenspread", "Name the file of the policy"
        fix = "evenspread doctor --config evenspread.yaml"
        yield Diagnosis(_CHECK, DiagnosisState.UNKNOWN, _POLICIES, what, why, fix)
        return
    version, today = facts.version or RECORDED, facts.now.date().isoformat()
    expected = {_title(compiled): compiled for compiled in admission_policies(policy, version, today)}
    drifted = [*_drifted(facts, expected, {_title(found): found for found in facts.admission_policies})]
    yield from drifted
    if not drifted:
        yield ok(_CHECK, together(expected), f"are as compiled for Kubernetes {version}")


def _drifted(
    facts: InstallationFacts, expected: Mapping[str, Object], installed: Mapping[str, Object]
) -> Iterator[Diagnosis]:
    for title, wanted in expected.items():
        if title not in installed:
            yield problem(_CHECK, title, "does not exist", _STALE, _compile(facts))
        elif path := _difference(wanted["spec"], at(installed[title], "spec"), "spec"):
            yield problem(_CHECK, title, f"{path} differs from the compiled object", _STALE, _compile(facts))
    for title in sorted(installed.keys() - expected.keys()):
        kind, _, name = title.partition(" ")
        yield problem(_CHECK, title, "is not a compiled object", _STALE, f"kubectl delete {kind.lower()} {quote(name)}")


def _title(found: Object) -> str:
    return f"{found['kind']} {name_of(found)}"


def _difference(wanted: object, found: object, path: str) -> str:
    """Return the path of the first difference. Empty if the API server added only defaults."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        keys = (*wanted, *(key for key in found if key not in wanted))
        parts = [(f".{key}", wanted.get(key, _DEFAULTS.get(key)), found.get(key)) for key in keys]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        parts = [(f"[{index}]", *pair) for index, pair in enumerate(zip(wanted, found, strict=True))]
    else:
        # The API server leaves out empty fields.
        return "" if wanted == found or not (wanted or found) else path
    return next(filter(None, (_difference(part, other, path + step) for step, part, other in parts)), "")


def _compile(facts: InstallationFacts) -> str:
    config = facts.given_file or f"{CONFIG_MAP}{facts.namespace}/{facts.service_name}"
    return f"evenspread compile --cluster --config {quote(config)} | kubectl apply -f -"
