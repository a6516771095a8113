"""Judge the webhook configurations: what the API server asks about, and what happens while nothing answers."""

from collections.abc import Iterator, Mapping

from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import Facts, Object, Unread, at, configured, items, name_of, selector_of
from webhook.core.api.well_known import NAMESPACE_NAME
from webhook.core.text import together

_SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_PATIENCE_SECONDS = 5  # the chart's is 2; every webhook on a path waits out of the same 34 s of a request
_VALIDATING, _MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
# Who writes a configuration by updates in the course of things: installers, injectors of CAs, and ourselves.
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


def registration(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about webhook configurations but those about their CA."""
    if isinstance(facts.configurations, Unread):
        yield unknown("registration", "webhook configurations", facts.configurations, "what the API server asks about")
        return
    lines = [*_missing(facts)]
    for title, webhook in configured(facts):
        lines += _webhook(facts, f"{title}, {at(webhook, 'name')}", webhook)
    for each in facts.configurations:
        lines += _drift(facts, each)
    yield from lines
    if facts.configurations and not lines:
        names = together(f"{each['kind']} {name_of(each)}" for each in facts.configurations)
        yield ok("registration", names, "as the chart has it")


def _missing(facts: Facts) -> Iterator[Diagnosis]:
    kinds = {each["kind"] for each in items(facts.configurations)}
    if _VALIDATING not in kinds:
        again = helm_upgrade(facts, "--set webhook.enabled=true")
        install = "helm install evenspread charts/evenspread -n evenspread --create-namespace"
        yield problem(
            "registration",
            _VALIDATING,
            "there is none of evenspread",
            "the API server asks nothing: writes are not reviewed",
            again if isinstance(facts.deployment, Mapping) else install,
        )
    if facts.policy is not None and facts.policy.defaults.injects and _MUTATING not in kinds:
        yield problem(
            "registration",
            _MUTATING,
            "there is none of evenspread, and defaults.mode is inject",
            "no pod gets its default constraints",
            helm_upgrade(facts, "--set webhook.enabled=true", "--set config.defaults.mode=inject"),
        )


def _webhook(facts: Facts, where: str, webhook: Object) -> Iterator[Diagnosis]:
    seconds = at(webhook, "timeoutSeconds", default=10)
    if seconds > _PATIENCE_SECONDS:
        yield problem(
            "timeout",
            where,
            f"timeoutSeconds is {seconds}",
            "without an answer each write waits so long; all webhooks of a write share the API server's 34 s",
            helm_upgrade(facts, "--set webhook.timeoutSeconds=2", "--force-conflicts"),
        )
    if selected := _selected(facts, webhook):
        yield problem(
            "exclusions",
            where,
            f"namespaceSelector does not leave out {together(selected)}",
            "pods that the cluster or the webhook needs to start wait for the webhook itself",
            helm_upgrade(facts, "--force-conflicts"),
        )
    if at(webhook, "failurePolicy", default="Fail") != "Ignore":
        yield from _closed(facts, where)


def _selected(facts: Facts, webhook: Object) -> list[str]:
    """Of the namespaces that must be left out, those that the selector takes, by nothing but their names."""
    selector = selector_of(at(webhook, "namespaceSelector", default=None))
    named = dict.fromkeys((*_SYSTEM, *((facts.namespace,) if facts.namespace else ())))
    return [name for name in named if selector is None or selector.matches({NAMESPACE_NAME: name})]


def _closed(facts: Facts, where: str) -> Iterator[Diagnosis]:
    """What failurePolicy Fail asks for: two replicas, and that no drain takes both."""
    replicas, lacks = at(facts.deployment, "spec", "replicas", default=1), []
    if isinstance(facts.deployment, Mapping) and replicas < 2:
        lacks.append(f"{replicas} replica{'' if replicas else 's'}")
    if not isinstance(facts.budgets, Unread) and not any(_about_us(facts, each) for each in facts.budgets):
        lacks.append("no PodDisruptionBudget")
    if lacks:
        values = ("--set replicas=2", "--set podDisruptionBudget.enabled=true", "--force-conflicts")
        what = f"failurePolicy is Fail, with {together(lacks)}"
        yield problem("availability", where, what, unanswered(facts), helm_upgrade(facts, *values))


def _about_us(facts: Facts, budget: Object) -> bool:
    """Whether a PodDisruptionBudget selects the pods of the webhook."""
    selector = selector_of(at(budget, "spec", "selector", default=None))
    labels = at(facts.deployment, "spec", "template", "metadata", "labels", default={})
    return selector is not None and bool(labels) and selector.matches(labels)


def _drift(facts: Facts, configuration: Object) -> Iterator[Diagnosis]:
    """Fields of its webhooks whose last writer is no installer."""
    for each in at(configuration, "metadata", "managedFields", default=()):
        manager = at(each, "manager")
        if at(each, "operation") == "Apply" or manager.startswith(_INSTALLERS):
            continue
        fields = sorted({*_leaves(at(each, "fieldsV1", "f:webhooks"))} - {"caBundle"})
        if fields:
            yield problem(
                "drift",
                f"{configuration['kind']} {name_of(configuration)}",
                f"{together(fields)}: written by {manager or 'somebody'} at {at(each, 'time') or 'an unknown time'}",
                "it is not what the chart says, and the next upgrade may or may not undo it",
                helm_upgrade(facts, "--force-conflicts"),
            )


def _leaves(fields: object) -> Iterator[str]:
    """The names of fields in managedFields at which nothing lies below, and of what is taken as a whole."""
    if not isinstance(fields, Mapping):
        return
    for name, below in fields.items():
        if name.startswith("f:") and not any(key.startswith(("f:", "k:")) for key in below):
            yield name.removeprefix("f:")
        yield from _leaves(below)
