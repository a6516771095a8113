"""Compare the installed ValidatingAdmissionPolicies with the objects compiled from the policy."""

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from webhook.cli.commands.doctor.api_fields import Object, at, name_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState, helm_upgrade, ok, problem, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread
from webhook.cli.live_cluster import CONFIG_MAP
from webhook.core.admission_policies.installed import binding_names, installed_policies, read_binding
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import BINDING
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import POLICIES_ANNOTATION
from webhook.core.policy.policy import Policy
from webhook.core.text import together

_CHECK, _POLICIES = "admission policies", "ValidatingAdmissionPolicies"
_SETTINGS = ("metadata", "annotations", POLICIES_ANNOTATION)
_STALE = "The API server evaluates other rules, modes or exemptions than those of the policy"


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
    try:
        drifted = [*_drifted(facts, policy, facts.admission_policies)]
    except ValueError as error:
        yield problem(_CHECK, f"{BINDING}s", str(error), _STALE, helm_upgrade(facts, "--force-conflicts"))
        return
    yield from drifted
    if not drifted:
        titles = together(map(_title, facts.admission_policies))
        yield ok(_CHECK, titles, f"are as compiled for Kubernetes {facts.version or RECORDED}")


def _drifted(facts: InstallationFacts, policy: Policy, objects: Iterable[Object]) -> Iterator[Diagnosis]:
    """Yield the differences. Raises ValueError if a binding of the chart is invalid."""
    version, today = facts.version or RECORDED, facts.now.date().isoformat()
    found = {_title(each): each for each in objects}
    # Helm owns the bindings of the chart, and the controller writes their policies.
    chart = {title: read_binding(each) for title, each in found.items() if at(each, *_SETTINGS)}
    bindings = [binding for binding in chart.values() if binding is not None]
    compiled, create, update = admission_policies(policy, version, today), _compile(facts), _compile(facts, "replace")
    if bindings:
        compiled, create = installed_policies(policy, version, today, bindings), _repair_chart(facts)
        update, release = create, bindings[0].name.removesuffix(f"-{bindings[0].mode}")
        for title in (f"{BINDING} {name}" for name in binding_names(release)):
            if title not in found:
                yield problem(_CHECK, title, "does not exist", _STALE, helm_upgrade(facts))
    expected = {_title(each): each for each in compiled}
    for title, wanted in expected.items():
        if title not in found:
            yield problem(_CHECK, title, "does not exist", _STALE, create)
        elif path := _difference(_compared(wanted), _compared(found[title]), ""):
            yield problem(_CHECK, title, f"{path[1:]} differs from the compiled object", _STALE, update)
    for title in sorted(found.keys() - expected.keys() - chart.keys()):
        kind, _, name = title.partition(" ")
        yield problem(_CHECK, title, "is not a compiled object", _STALE, f"kubectl delete {kind.lower()} {quote(name)}")


def _compared(value: Object) -> Object:
    owners = at(value, "metadata", "ownerReferences", default=[])
    return {"spec": value["spec"], "metadata": {"ownerReferences": owners}}


def _title(found: Object) -> str:
    return f"{found['kind']} {name_of(found)}"


def _difference(wanted: object, found: object, path: str) -> str:
    """Return the path of the first difference, with a dot before it. Empty without a difference."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        parts = [(f".{key}", wanted.get(key), found.get(key)) for key in {**wanted, **found}]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        parts = [(f"[{index}]", *pair) for index, pair in enumerate(zip(wanted, found, strict=True))]
    else:
        # The API server leaves out empty fields.
        return "" if wanted == found or not (wanted or found) else path
    return next(filter(None, (_difference(part, other, path + step) for step, part, other in parts)), "")


def _repair_chart(facts: InstallationFacts) -> str:
    if isinstance(facts.controller, Mapping):
        return f"kubectl -n {facts.namespace} logs deployment/{name_of(facts.controller)} --tail=20"
    return helm_upgrade(facts)


def _compile(facts: InstallationFacts, verb: str = "apply") -> str:
    """The command that creates or updates objects. ``kubectl apply`` keeps conditions that others have added."""
    config = facts.given_file or f"{CONFIG_MAP}{facts.namespace}/{facts.service_name}"
    return f"evenspread compile --cluster --config {quote(config)} | kubectl {verb} -f -"
