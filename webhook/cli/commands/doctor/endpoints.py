"""Judge the path from the API server to the webhook: Service, endpoints, NetworkPolicies and proxy."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from webhook.cli.commands.doctor.admission import WriteOutcome, write_outcome
from webhook.cli.commands.doctor.api_fields import Object, at, name_of, option, port, selector_of
from webhook.cli.commands.doctor.controller import reasons
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Unread, configured
from webhook.core.api.well_known import APP_COMPONENT
from webhook.core.text import plural, together

_HTTPS = 443  # the API's default for a webhook's port
_ANYWHERE = frozenset({"0.0.0.0/0", "::/0"})
# The API server's own answers if the webhook does not answer its proxy.
_NOT_REACHED = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


def endpoints(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield all lines about the path from the API server to a replica."""
    if not facts.service_name:
        return
    service = facts.service
    where = f"Service {facts.namespace}/{facts.service_name}"
    if isinstance(service, Unread):
        yield unknown("endpoints", where, service, "whether the webhook configurations point to a pod")
        return
    if service is None:
        what = "does not exist, but the webhook configurations name it"
        yield problem("endpoints", where, what, unanswered(facts), helm_upgrade(facts))
        return
    yield from _port(facts, service, where)
    yield from _addresses(facts, where)
    yield from _network(facts)
    yield from _reached(facts, where)


def _port(facts: InstallationFacts, service: Object, where: str) -> Iterator[Diagnosis]:
    """Yield a line if the webhook configurations name another port than the Service."""
    ports = {at(entry, "port") for entry in at(service, "spec", "ports", default=())}
    targets = [at(webhook, "clientConfig", "service", default={}) for _, webhook in configured(facts)]
    if missing := {at(target, "port", default=_HTTPS) for target in targets if target} - ports:
        what = f"has no port {together(map(str, sorted(missing)))}, but the webhook configurations name it"
        yield problem("endpoints", where, what, unanswered(facts), helm_upgrade(facts, "--force-conflicts"))


def _addresses(facts: InstallationFacts, where: str) -> Iterator[Diagnosis]:
    if isinstance(facts.slices, Unread):
        yield unknown("endpoints", where, facts.slices, "whether a replica is ready")
        return
    endpoints = [endpoint for slice_ in facts.slices for endpoint in at(slice_, "endpoints", default=())]
    ready = sum(
        len(at(endpoint, "addresses", default=()))
        for endpoint in endpoints
        if at(endpoint, "conditions", "ready", default=True)
    )
    wanted = at(facts.deployment, "spec", "replicas", default=1 if isinstance(facts.deployment, Mapping) else ready)
    if 0 < ready >= wanted:
        yield ok("endpoints", where, f"{plural(ready, 'replica')} ready")
        return
    cause = "; the Service's selector matches no pod" if facts.pods == () else reasons(facts.pods)
    what = f"{ready} of {wanted} replicas are ready{cause}"
    yield problem("endpoints", where, what, unanswered(facts), _address_fix(facts, wanted))


def _address_fix(facts: InstallationFacts, wanted: int) -> str:
    if not wanted:
        return f"kubectl -n {facts.namespace} scale deployment/{facts.service_name} --replicas=2"
    if facts.pods == ():
        return helm_upgrade(facts, "--force-conflicts")
    return (
        f"kubectl -n {facts.namespace} describe pods -l {APP_COMPONENT}=webhook\n"
        f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
    )


def _network(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield the line about NetworkPolicies. An open port has a policy for all addresses, or no policy."""
    where = f"NetworkPolicies in namespace {facts.namespace}"
    if isinstance(facts.network_policies, Unread):
        yield unknown("network", where, facts.network_policies, "whether they admit the API server")
        return
    if not isinstance(facts.deployment, Mapping):
        return
    template = at(facts.deployment, "spec", "template")
    labels = at(template, "metadata", "labels", default={})
    ours = [policy for policy in facts.network_policies if _restricts(policy, labels)]
    number = port(at(template, "spec"), "webhook")
    if not ours or any(_open(rule, number) for policy in ours for rule in at(policy, "spec", "ingress", default=())):
        yield ok("network", where, "the webhook's port is open to the API server")
        return
    yield problem(
        "network",
        f"NetworkPolicy {facts.namespace}/{together(map(name_of, ours))}",
        f"does not admit all addresses to port {number}",
        f"No selector can match the API server, and each dropped call waits for its timeout. {unanswered(facts)}",
        helm_upgrade(facts, "--set networkPolicy.enabled=true", "--force-conflicts"),
    )


def _restricts(policy: Object, labels: Mapping[str, str]) -> bool:
    selector = selector_of(at(policy, "spec", "podSelector", default=None))
    types = at(policy, "spec", "policyTypes", default=("Ingress",))
    return "Ingress" in types and selector is not None and selector.matches(labels)


def _open(rule: Object, number: int) -> bool:
    """Whether an ingress rule admits all addresses to the port."""
    peers, ports = at(rule, "from", default=()), at(rule, "ports", default=())
    admits_all = not peers or any(at(peer, "ipBlock", "cidr") in _ANYWHERE for peer in peers)
    return admits_all and (not ports or any(_covers(entry, number) for entry in ports))


def _covers(entry: Object, number: int) -> bool:
    first = at(entry, "port", default=None)
    if isinstance(first, str):
        return first == "webhook"
    return first is None or first <= number <= at(entry, "endPort", default=first)


def _reached(facts: InstallationFacts, where: str) -> Iterator[Diagnosis]:
    """Yield whether the API server's proxy reaches the webhook. Nothing if the dry run was reviewed."""
    if facts.reached is None or write_outcome(facts) is WriteOutcome.REVIEWED:
        return
    if isinstance(facts.reached, Unread):
        yield unknown("reachable", where, facts.reached, "whether the API server reaches a replica")
    elif option(facts.deployment, "client-ca"):
        return  # the webhook requires client certificates, and the proxy has none
    elif facts.reached in _NOT_REACHED:
        status = f"{facts.reached} {HTTPStatus(facts.reached).phrase}"
        what = f"the API server's proxy could not reach the Service: it returned {status}"
        fix = (
            f"kubectl -n {facts.namespace} get endpointslices -l kubernetes.io/service-name={facts.service_name}\n"
            "# then check firewalls between control plane and nodes: docs/install.md#where-it-runs"
        )
        yield problem("reachable", where, what, unanswered(facts), fix)
    else:
        yield ok("reachable", where, "the API server reaches the webhook (TLS not verified)")
