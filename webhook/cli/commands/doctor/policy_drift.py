"""Compare the installed admission policies with the objects compiled from the policy."""

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import NamedTuple

from webhook.cli.commands.doctor.api_fields import Object, arguments, at, name_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState, helm_upgrade, ok, problem, unknown
from webhook.cli.commands.doctor.dry_run import VALIDATE
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, configured, items
from webhook.cli.live_cluster import CONFIG_MAP
from webhook.core.admission_policies.installed import binding_names, installed_policies, read_binding
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policies import ACTIONS, admission_policies
from webhook.core.admission_policies.policy_objects import BINDING, api_object
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import POLICIES_ANNOTATION
from webhook.core.policy.policy import Policy
from webhook.core.text import together

_CHECK, _POLICIES = "admission policies", "admission policies of the API server"
_SETTINGS = ("metadata", "annotations", POLICIES_ANNOTATION)
# An argument of the controller, and one of the webhook.
_OF_THE_CHART = ("--admission-policies", "--leave-warnings-to-policies")
_STALE = "The API server evaluates other rules, modes or exemptions than those of the policy"
_UNBOUND = "The API server evaluates other rules or objects than the webhook"
_OTHER_DEFAULTS = "Pods get other default constraints than those of the policy"


class _Wanted(NamedTuple):
    """An expected object, its source, and the commands that create and update it."""

    expected: Object
    create: str
    update: str
    source: str = "the compiled object"
    why: str = _STALE


def policy_drift(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each missing, changed or leftover object.

    Yield nothing without an installed object, unless the chart installs the policies.
    """
    if isinstance(facts.admission_policies, Unread):
        yield unknown(_CHECK, _POLICIES, facts.admission_policies, "whether they match the policy")
        return
    if not facts.admission_policies and not _is_installed(facts):
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
    found = {_title(each): each for each in objects}
    # Helm owns the bindings of the chart, and the controller writes their policies.
    chart = {title: each for title, each in found.items() if at(each, *_SETTINGS)}
    expected = {_title(each.expected): each for each in _wanted(facts, policy, found, chart.values())}
    for title, wanted in expected.items():
        if title not in found:
            yield problem(_CHECK, title, "does not exist", wanted.why, wanted.create)
        elif path := _difference(_compared(wanted.expected), _compared(found[title]), ""):
            yield problem(_CHECK, title, f"{path[1:]} differs from {wanted.source}", wanted.why, wanted.update)
    for title in sorted(found.keys() - expected.keys() - chart.keys()):
        kind, _, name = title.partition(" ")
        yield problem(_CHECK, title, "is not a compiled object", _STALE, f"kubectl delete {kind.lower()} {quote(name)}")


def _wanted(
    facts: InstallationFacts, policy: Policy, found: Mapping[str, Object], chart: Iterable[Object]
) -> Iterator[_Wanted]:
    """Yield the expected objects. Raises ValueError if a binding of the chart is invalid."""
    version, today = facts.version or RECORDED, facts.now.date().isoformat()
    bindings = [binding for binding in map(read_binding, chart) if binding is not None]
    if bindings or _is_installed(facts):
        configurations = map(name_of, items(facts.configurations))
        release = next(configurations, "") or bindings[0].name.removesuffix(f"-{bindings[0].mode}")
        create, update = helm_upgrade(facts), helm_upgrade(facts, "--force-conflicts")
        for each in _chart_bindings(facts, release, found):
            yield _Wanted(each, create, update, "the webhook configuration", _UNBOUND)
        repair = _repair_chart(facts)
        yield from (_Wanted(each, repair, repair) for each in installed_policies(policy, version, today, bindings))
    elif any(title.startswith("Validating") for title in found):
        create, update = _compile(facts), _compile(facts, "replace")
        yield from (_Wanted(each, create, update) for each in admission_policies(policy, version, today))
    if any(title.startswith("Mutating") for title in found):
        create, update = _compile(facts, target="map"), _compile(facts, "replace", "map")
        for each in mutating_policies(policy, version):
            yield _Wanted(each, create, update, why=_OTHER_DEFAULTS)


def _is_installed(facts: InstallationFacts) -> bool:
    """Whether the chart installs admission policies. It needs a webhook configuration for their selectors."""
    given = {*arguments(facts.controller), *arguments(facts.deployment)}
    return bool(items(facts.configurations)) and not given.isdisjoint(_OF_THE_CHART)


def _chart_bindings(facts: InstallationFacts, release: str, found: Mapping[str, Object]) -> Iterator[Object]:
    """Yield the bindings of the chart. They have the selectors of the webhook, as far as these are known."""
    webhook = next((each for _, each in configured(facts) if at(each, "name") == VALIDATE), None)
    for name, action in zip(binding_names(release), ACTIONS.values(), strict=True):
        source = webhook or at(found.get(f"{BINDING} {name}"), "spec", "matchResources")
        matched = {field: at(source, field, default={}) for field in ("namespaceSelector", "objectSelector")}
        spec = {"policyName": name, "validationActions": [action]}
        yield api_object(BINDING, name, {**spec, "matchResources": {"matchPolicy": "Equivalent", **matched}})


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


def _compile(facts: InstallationFacts, verb: str = "apply", target: str = "vap") -> str:
    """The command that creates or updates objects. ``kubectl apply`` keeps conditions that others have added."""
    config = facts.given_file or f"{CONFIG_MAP}{facts.namespace}/{facts.service_name}"
    options = "" if target == "vap" else f" --target {target}"
    return f"evenspread compile{options} --cluster --config {quote(config)} | kubectl {verb} -f -"
