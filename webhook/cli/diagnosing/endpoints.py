"""Judge the way to the webhook: Service, addresses behind it, NetworkPolicies, and how far the API server gets."""

from collections.abc import Iterator
from http import HTTPStatus

from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import (
    Configuration,
    Deployment,
    Facts,
    IngressRule,
    NetworkPolicy,
    Pod,
    PolicyPort,
    Service,
    Unread,
)
from webhook.cli.diagnosing.registration import release_of
from webhook.core.api.selectors import valid_selector
from webhook.core.api.well_known import APP_COMPONENT
from webhook.core.text import listed, together

_UNASKED = "nothing is asked, and the API server goes on without (failurePolicy Ignore), after the timeout of each call"
_ANYWHERE = frozenset({"0.0.0.0/0", "::/0"})
# What an API server answers for itself where it gets no answer from behind it.
_NOT_REACHED = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


def endpoints(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about the way from the API server to a replica."""
    if not facts.service_name:
        return
    service = facts.service
    where = f"Service {facts.namespace}/{facts.service_name}"
    if isinstance(service, Unread):
        yield unknown("endpoints", where, service, "whether anybody stands behind the webhook configurations")
        return
    if service is None:
        yield Diagnosis(
            check="endpoints",
            state=State.PROBLEM,
            where=where,
            what="is not there, and the webhook configurations name it",
            why=_UNASKED,
            fix=helm_upgrade(release_of(facts), facts.namespace),
        )
        return
    yield from _port(facts, service, where)
    yield from _addresses(facts, where)
    yield from _network(facts)
    yield from _reached(facts, where)


def _port(facts: Facts, service: Service, where: str) -> Iterator[Diagnosis]:
    """The port that is called must be one of the Service's."""
    have = {each.port for each in service.spec.ports}
    wanted = {
        each.client_config.service.port
        for configuration in _configurations(facts)
        for each in configuration.webhooks
        if each.client_config.service is not None
    }
    if wanted - have:
        yield Diagnosis(
            check="endpoints",
            state=State.PROBLEM,
            where=where,
            what=f"has no port {together(map(str, sorted(wanted - have)))}, which the webhook configurations call",
            why=_UNASKED,
            fix=helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts"),
        )


def _addresses(facts: Facts, where: str) -> Iterator[Diagnosis]:
    if isinstance(facts.slices, Unread):
        yield unknown("endpoints", where, facts.slices, "whether a replica is ready")
        return
    ready = sum(len(each.addresses) for slice_ in facts.slices for each in slice_.endpoints if each.conditions.ready)
    wanted = facts.deployment.spec.replicas if isinstance(facts.deployment, Deployment) else ready
    if 0 < ready >= wanted:
        yield Diagnosis(check="endpoints", state=State.OK, where=where, what=f"{ready} ready")
        return
    yield Diagnosis(
        check="endpoints",
        state=State.PROBLEM,
        where=where,
        what=f"{ready} of {wanted} replicas are ready{_reasons(facts)}",
        why=_UNASKED if not ready else "the one that is left may go",
        fix=_address_fix(facts, wanted),
    )


def _reasons(facts: Facts) -> str:
    """Why pods are not ready, as they say it themselves."""
    if isinstance(facts.pods, Unread):
        return f"; pods: {facts.pods.reason}"
    said = [f"{each.metadata.name}: {_reason(each)}" for each in facts.pods if not each.ready]
    if not facts.pods:
        return "; no pod has the labels that the Service selects"
    return f"; {listed(said, 2)}" if said else ""


def _reason(pod: Pod) -> str:
    waiting = [each.state.waiting for each in pod.status.container_statuses if each.state.waiting is not None]
    if waiting:
        return f"{waiting[0].reason} {waiting[0].message}".strip()
    unmet = [each.message for each in pod.status.conditions if each.status != "True" and each.message]
    return unmet[0] if unmet else (pod.status.phase or "not ready")


def _address_fix(facts: Facts, wanted: int) -> str:
    if not wanted:
        return f"kubectl -n {facts.namespace} scale deployment/{facts.service_name} --replicas=2"
    if facts.pods == ():
        return helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts")
    return (
        f"kubectl -n {facts.namespace} describe pods -l {APP_COMPONENT}=webhook\n"
        f"kubectl -n {facts.namespace} logs deployment/{facts.service_name}"
    )


def _network(facts: Facts) -> Iterator[Diagnosis]:
    """NetworkPolicies add up: one that lets everybody in to the port is enough, and none at all lets in everything."""
    where = f"NetworkPolicies in namespace {facts.namespace}"
    if isinstance(facts.network_policies, Unread):
        yield unknown("network", where, facts.network_policies, "whether they let the API server in")
        return
    if not isinstance(facts.deployment, Deployment):
        return
    ours = [each for each in facts.network_policies if _restricts(each, facts.deployment)]
    if not ours or any(_open(rule, facts.deployment) for each in ours for rule in each.spec.ingress):
        yield Diagnosis(
            check="network", state=State.OK, where=where, what="the webhook's port is open to the API server"
        )
        return
    port = _webhook_port(facts.deployment)
    yield Diagnosis(
        check="network",
        state=State.PROBLEM,
        where=f"NetworkPolicy {facts.namespace}/{together(each.metadata.name for each in ours)}",
        what=f"does not let everybody in to port {port}",
        why="the address of the API server cannot be selected; what is dropped costs each call its whole timeout",
        fix=helm_upgrade(release_of(facts), facts.namespace, "--set networkPolicy.enabled=true", "--force-conflicts"),
    )


def _restricts(policy: NetworkPolicy, deployment: Deployment) -> bool:
    selector = valid_selector(policy.spec.pod_selector)
    labels = deployment.spec.template.metadata.labels
    return "Ingress" in policy.spec.policy_types and selector is not None and selector.matches(labels)


def _open(rule: IngressRule, deployment: Deployment) -> bool:
    """Whether it lets everybody in to the webhook's port."""
    everybody = not rule.from_ or any(
        peer.ip_block is not None and peer.ip_block.cidr in _ANYWHERE for peer in rule.from_
    )
    return everybody and (not rule.ports or any(_covers(each, deployment) for each in rule.ports))


def _covers(written: PolicyPort, deployment: Deployment) -> bool:
    port = _webhook_port(deployment)
    if isinstance(written.port, str):
        return written.port == "webhook"
    return written.port is None or written.port <= port <= (written.end_port or written.port)


def _webhook_port(deployment: Deployment) -> int:
    return next((each.container_port for each in deployment.container.ports if each.name == "webhook"), 0)


def _reached(facts: Facts, where: str) -> Iterator[Diagnosis]:
    if facts.reached is None:
        return
    if isinstance(facts.reached, Unread):
        yield unknown("reachable", where, facts.reached, "whether the API server gets through to a replica")
        return
    if isinstance(facts.deployment, Deployment) and facts.deployment.container.option("client-ca"):
        return  # a stranger is not answered, and this question comes as one
    if facts.reached in _NOT_REACHED:
        yield Diagnosis(
            check="reachable",
            state=State.PROBLEM,
            where=where,
            what=f"the API server gets no answer through it: {facts.reached} {HTTPStatus(facts.reached).phrase}",
            why=_UNASKED,
            fix=f"kubectl -n {facts.namespace} get endpointslices -l kubernetes.io/service-name={facts.service_name}\n"
            "# then firewalls between control plane and nodes: docs/install.md#where-it-runs",
        )
    else:
        yield Diagnosis(check="reachable", state=State.OK, where=where, what="the API server gets through")


def _configurations(facts: Facts) -> tuple[Configuration, ...]:
    return () if isinstance(facts.configurations, Unread) else facts.configurations
