"""Judge the webhook configurations: whether anything is asked, of whom, and what happens while nobody answers."""

from collections.abc import Iterator, Mapping

from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import Configuration, Deployment, Facts, RegisteredWebhook, Unread
from webhook.core.api.selectors import valid_selector
from webhook.core.api.well_known import APP_INSTANCE, NAMESPACE_NAME
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
        yield unknown("registration", "webhook configurations", facts.configurations, "whether anything is asked")
        return
    before = [*_missing(facts, facts.configurations)]
    yield from before
    found = 0
    for configuration in facts.configurations:
        for webhook in configuration.webhooks:
            lines = [*_webhook(facts, configuration, webhook)]
            found += len(lines)
            yield from lines
        drifted = [*_drift(facts, configuration)]
        found += len(drifted)
        yield from drifted
    if facts.configurations and not (found or before):
        names = together(each.title for each in facts.configurations)
        yield Diagnosis(check="registration", state=State.OK, where=names, what="as the chart has it")


def release_of(facts: Facts) -> str:
    """The name of the Helm release."""
    if isinstance(facts.deployment, Deployment):
        return facts.deployment.metadata.labels.get(APP_INSTANCE, "")
    return ""


def _missing(facts: Facts, configurations: tuple[Configuration, ...]) -> Iterator[Diagnosis]:
    kinds = {each.kind for each in configurations}
    injects = facts.policy is not None and facts.policy.defaults.mode == "inject"
    upgrade = helm_upgrade(release_of(facts), facts.namespace or "evenspread")
    if _VALIDATING not in kinds:
        installed = isinstance(facts.deployment, Deployment)
        yield Diagnosis(
            check="registration",
            state=State.PROBLEM,
            where=_VALIDATING,
            what="there is none of evenspread",
            why="nothing is asked of it, and nothing is reviewed",
            fix=f"{upgrade} --set webhook.enabled=true"
            if installed
            else "helm install evenspread charts/evenspread -n evenspread --create-namespace",
        )
    if injects and _MUTATING not in kinds:
        yield Diagnosis(
            check="registration",
            state=State.PROBLEM,
            where=_MUTATING,
            what="there is none of evenspread, and defaults.mode is inject",
            why="no pod gets its default constraints",
            fix=f"{upgrade} --set webhook.enabled=true --set config.defaults.mode=inject",
        )


def _webhook(facts: Facts, configuration: Configuration, webhook: RegisteredWebhook) -> Iterator[Diagnosis]:
    where = f"{configuration.title}, {webhook.name}"
    upgrade = helm_upgrade(release_of(facts), facts.namespace)
    if webhook.timeout_seconds > _PATIENCE_SECONDS:
        yield Diagnosis(
            check="timeout",
            state=State.PROBLEM,
            where=where,
            what=f"timeoutSeconds is {webhook.timeout_seconds}",
            why="while nobody answers, each write that is sent waits so long; of all webhooks together the API server "
            "gives up after 34 s, failurePolicy Ignore or not",
            fix=f"{upgrade} --set webhook.timeoutSeconds=2 --force-conflicts",
        )
    selected = _selected(facts, webhook)
    if selected:
        yield Diagnosis(
            check="exclusions",
            state=State.PROBLEM,
            where=where,
            what=f"namespaceSelector does not leave out {together(selected)}",
            why="what the cluster needs to come up waits for the webhook, and the webhook for itself",
            fix=f"{upgrade} --force-conflicts",
        )
    if webhook.failure_policy != "Ignore":
        yield from _closed(facts, where)


def _selected(facts: Facts, webhook: RegisteredWebhook) -> list[str]:
    """Of the namespaces that must be left out, those that the selector takes, by nothing but their names."""
    selector = valid_selector(webhook.namespace_selector) if webhook.namespace_selector is not None else None
    named = dict.fromkeys((*_SYSTEM, *((facts.namespace,) if facts.namespace else ())))
    return [name for name in named if selector is None or selector.matches({NAMESPACE_NAME: name})]


def _closed(facts: Facts, where: str) -> Iterator[Diagnosis]:
    """What failurePolicy Fail asks for: two replicas, and that no drain takes both."""
    lacks = []
    if isinstance(facts.deployment, Deployment) and facts.deployment.spec.replicas < 2:
        lacks.append(f"{facts.deployment.spec.replicas} replica")
    if not isinstance(facts.budgets, Unread) and not any(
        _about_us(facts, each.spec.selector) for each in facts.budgets
    ):
        lacks.append("no PodDisruptionBudget")
    if lacks:
        yield Diagnosis(
            check="availability",
            state=State.PROBLEM,
            where=where,
            what=f"failurePolicy is Fail, with {together(lacks)}",
            why="while no replica answers, no workload can be created or changed",
            fix=helm_upgrade(
                release_of(facts),
                facts.namespace,
                "--set replicas=2",
                "--set podDisruptionBudget.enabled=true",
                "--force-conflicts",
            ),
        )


def _about_us(facts: Facts, written: object) -> bool:
    """Whether a selector takes the pods of the webhook."""
    selector = valid_selector(written)  # type: ignore[arg-type]  # of whatever object it is
    labels = facts.deployment.spec.template.metadata.labels if isinstance(facts.deployment, Deployment) else {}
    return selector is not None and bool(labels) and selector.matches(labels)


def _drift(facts: Facts, configuration: Configuration) -> Iterator[Diagnosis]:
    """Fields of its webhooks that somebody else than an installer has written last."""
    for each in configuration.metadata.managed_fields:
        if each.operation == "Apply" or each.manager.startswith(_INSTALLERS):
            continue
        fields = sorted({*_leaves(each.fields_v1.get("f:webhooks"))} - {"caBundle"})
        if fields:
            yield Diagnosis(
                check="drift",
                state=State.PROBLEM,
                where=configuration.title,
                what=f"{together(fields)}: written by {each.manager or 'somebody'} at {each.time or 'an unknown time'}",
                why="it is not what the chart says, and the next upgrade may or may not undo it",
                fix=helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts"),
            )


def _leaves(fields: object) -> Iterator[str]:
    """The names of fields in managedFields at which nothing lies below, and of what is taken as a whole."""
    if not isinstance(fields, Mapping):
        return
    for name, below in fields.items():
        if name.startswith("f:") and not any(key.startswith(("f:", "k:")) for key in below):
            yield name.removeprefix("f:")
        yield from _leaves(below)
