"""Diagnose the webhook configurations: existence, timeouts, exclusions, availability and drift."""

from collections.abc import Iterator, Mapping

from webhook.cli.commands.doctor.api_fields import Object, at, name_of, selector_of
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, configured, items, only_policies
from webhook.core.api.well_known import NAMESPACE_NAME
from webhook.core.text import together

_SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_MAX_TIMEOUT_SECONDS = 5  # The chart sets 2.
_WRITE_SECONDS = 34  # Source: apiserver pkg/endpoints/handlers/rest.go ``requestTimeoutUpperBound``.
_VALIDATING, _MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
# Expected field managers with operation Update: installers, CA injectors and evenspread itself.
_INSTALLERS: tuple[str, ...] = (
    "Helm",
    "helm",
    "argocd",
    "kustomize-controller",
    "kubectl-client-side-apply",
    "kubectl-create",
    "cainjector",
)
_INSTALLERS += ("cert-manager-cainjector", "evenspread", "before-first-apply")


def registration(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield all lines about webhook configurations, except their CA."""
    if isinstance(facts.configurations, Unread):
        lost = "which objects the API server sends to the webhook"
        yield unknown("registration", "webhook configurations", facts.configurations, lost)
        return
    lines = [*_missing(facts)]
    for title, webhook in configured(facts):
        lines += _webhook(facts, f"{title}, {at(webhook, 'name')}", webhook)
    for configuration in facts.configurations:
        lines += _drift(facts, configuration)
    yield from lines
    if facts.configurations and not lines:
        names = together(f"{configuration['kind']} {name_of(configuration)}" for configuration in facts.configurations)
        yield ok("registration", names, "as in the chart")


def _missing(facts: InstallationFacts) -> Iterator[Diagnosis]:
    kinds = {configuration["kind"] for configuration in items(facts.configurations)}
    if _VALIDATING not in kinds and not only_policies(facts):
        again = helm_upgrade(facts, "--set webhook.enabled=true")
        install = "helm install evenspread charts/evenspread -n evenspread --create-namespace"
        yield problem(
            "registration",
            _VALIDATING,
            "evenspread has none",
            "The API server sends no writes to the webhook",
            again if isinstance(facts.deployment, Mapping) else install,
        )
    if facts.policy is not None and facts.policy.defaults.injects and _MUTATING not in kinds:
        yield problem(
            "registration",
            _MUTATING,
            "evenspread has none, but defaults.mode is inject",
            "Pods do not get the default constraints",
            helm_upgrade(facts, "--set webhook.enabled=true", "--set config.defaults.mode=inject"),
        )


def _webhook(facts: InstallationFacts, where: str, webhook: Object) -> Iterator[Diagnosis]:
    seconds = at(webhook, "timeoutSeconds", default=10)
    if seconds > _MAX_TIMEOUT_SECONDS:
        yield problem(
            "timeout",
            where,
            f"timeoutSeconds is {seconds}",
            "If the webhook does not answer, each write waits for timeoutSeconds. "
            f"All webhooks of a write together have at most {_WRITE_SECONDS} s, the API server's limit for a write",
            helm_upgrade(facts, "--set webhook.timeoutSeconds=2", "--force-conflicts"),
        )
    if included := _included(facts, webhook):
        yield problem(
            "exclusions",
            where,
            f"namespaceSelector does not exclude {together(included)}",
            "Pods that the cluster or the webhook needs to start may wait for the webhook",
            helm_upgrade(facts, "--force-conflicts"),
        )
    if at(webhook, "failurePolicy", default="Fail") != "Ignore":
        yield from _closed(facts, where)


def _included(facts: InstallationFacts, webhook: Object) -> list[str]:
    """The system namespaces that the webhook's namespaceSelector fails to exclude."""
    selector = selector_of(at(webhook, "namespaceSelector", default=None))
    names = dict.fromkeys((*_SYSTEM, *((facts.namespace,) if facts.namespace else ())))
    return [name for name in names if selector is None or selector.matches({NAMESPACE_NAME: name})]


def _closed(facts: InstallationFacts, where: str) -> Iterator[Diagnosis]:
    """Yield a line for failurePolicy Fail with fewer than two replicas, or without PodDisruptionBudget."""
    replicas, gaps = at(facts.deployment, "spec", "replicas", default=1), []
    if isinstance(facts.deployment, Mapping) and replicas < 2:
        gaps.append(f"{replicas} replica{'' if replicas else 's'}")
    if not isinstance(facts.budgets, Unread) and not any(_selects_webhook(facts, budget) for budget in facts.budgets):
        gaps.append("no PodDisruptionBudget")
    if gaps:
        values = ("--set replicas=2", "--set podDisruptionBudget.enabled=true", "--force-conflicts")
        what = f"failurePolicy is Fail, with {together(gaps)}"
        yield problem("availability", where, what, unanswered(facts), helm_upgrade(facts, *values))


def _selects_webhook(facts: InstallationFacts, budget: Object) -> bool:
    """Whether a PodDisruptionBudget selects the webhook's pods."""
    selector = selector_of(at(budget, "spec", "selector", default=None))
    labels = at(facts.deployment, "spec", "template", "metadata", "labels", default={})
    return selector is not None and bool(labels) and selector.matches(labels)


def _drift(facts: InstallationFacts, configuration: Object) -> Iterator[Diagnosis]:
    """Yield a line for each field manager that changed the webhooks, except installers and server-side apply."""
    for entry in at(configuration, "metadata", "managedFields", default=()):
        manager = at(entry, "manager")
        if at(entry, "operation") == "Apply" or manager.startswith(_INSTALLERS):
            continue
        fields = sorted({*_leaves(at(entry, "fieldsV1", "f:webhooks"))} - {"caBundle"})
        if fields:
            yield problem(
                "drift",
                f"{configuration['kind']} {name_of(configuration)}",
                f"{together(fields)}: changed by {manager or 'an unknown manager'} "
                f"at {at(entry, 'time') or 'an unknown time'}",
                "These fields may differ from the chart, and a Helm upgrade may not restore them",
                helm_upgrade(facts, "--force-conflicts"),
            )


def _leaves(fields: object) -> Iterator[str]:
    """The names of fields without children in managedFields."""
    if not isinstance(fields, Mapping):
        return
    for name, below in fields.items():
        if name.startswith("f:") and not any(key.startswith(("f:", "k:")) for key in below):
            yield name.removeprefix("f:")
        yield from _leaves(below)
