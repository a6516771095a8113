"""Judge the way to the webhook: Service, addresses behind it, NetworkPolicies, and how far the API server gets."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from webhook.cli.commands.doctor.admission import Outcome, outcome
from webhook.cli.commands.doctor.controller import reasons
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import Facts, Object, Unread, at, configured, name_of, option, port, selector_of
from webhook.core.api.well_known import APP_COMPONENT
from webhook.core.text import together

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
        yield unknown("endpoints", where, service, "whether a pod stands behind the webhook configurations")
        return
    if service is None:
        what = "is not there, and the webhook configurations name it"
        yield problem("endpoints", where, what, unanswered(facts), helm_upgrade(facts))
        return
    yield from _port(facts, service, where)
    yield from _addresses(facts, where)
    yield from _network(facts)
    yield from _reached(facts, where)


def _port(facts: Facts, service: Object, where: str) -> Iterator[Diagnosis]:
    """The port that is called must be one of the Service's."""
    have = {at(each, "port") for each in at(service, "spec", "ports", default=())}
    called = [at(each, "clientConfig", "service", default={}) for _, each in configured(facts)]
    if lacking := {at(each, "port", default=443) for each in called if each} - have:
        what = f"has no port {together(map(str, sorted(lacking)))}, which the webhook configurations call"
        yield problem("endpoints", where, what, unanswered(facts), helm_upgrade(facts, "--force-conflicts"))


def _addresses(facts: Facts, where: str) -> Iterator[Diagnosis]:
    if isinstance(facts.slices, Unread):
        yield unknown("endpoints", where, facts.slices, "whether a replica is ready")
        return
    found = [each for slice_ in facts.slices for each in at(slice_, "endpoints", default=())]
    ready = sum(
        len(at(each, "addresses", default=())) for each in found if at(each, "conditions", "ready", default=True)
    )
    wanted = at(facts.deployment, "spec", "replicas", default=1 if isinstance(facts.deployment, Mapping) else ready)
    if 0 < ready >= wanted:
        yield ok("endpoints", where, f"{ready} ready")
        return
    told = "; no pod has the labels that the Service selects" if facts.pods == () else reasons(facts.pods)
    why = unanswered(facts) if not ready else f"if the last one goes, nothing answers; {unanswered(facts)}"
    yield problem("endpoints", where, f"{ready} of {wanted} replicas are ready{told}", why, _address_fix(facts, wanted))


def _address_fix(facts: Facts, wanted: int) -> str:
    if not wanted:
        return f"kubectl -n {facts.namespace} scale deployment/{facts.service_name} --replicas=2"
    if facts.pods == ():
        return helm_upgrade(facts, "--force-conflicts")
    return (
        f"kubectl -n {facts.namespace} describe pods -l {APP_COMPONENT}=webhook\n"
        f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
    )


def _network(facts: Facts) -> Iterator[Diagnosis]:
    """NetworkPolicies add up: one that lets everybody in to the port is enough, and none at all lets in everything."""
    where = f"NetworkPolicies in namespace {facts.namespace}"
    if isinstance(facts.network_policies, Unread):
        yield unknown("network", where, facts.network_policies, "whether they let the API server in")
        return
    if not isinstance(facts.deployment, Mapping):
        return
    template = at(facts.deployment, "spec", "template")
    ours = [each for each in facts.network_policies if _restricts(each, at(template, "metadata", "labels", default={}))]
    number = port(at(template, "spec"), "webhook")
    if not ours or any(_open(rule, number) for each in ours for rule in at(each, "spec", "ingress", default=())):
        yield ok("network", where, "the webhook's port is open to the API server")
        return
    yield problem(
        "network",
        f"NetworkPolicy {facts.namespace}/{together(map(name_of, ours))}",
        f"does not let everybody in to port {number}",
        f"no selector can name the API server, and each dropped call takes its whole timeout; {unanswered(facts)}",
        helm_upgrade(facts, "--set networkPolicy.enabled=true", "--force-conflicts"),
    )


def _restricts(policy: Object, labels: Mapping[str, str]) -> bool:
    selector = selector_of(at(policy, "spec", "podSelector", default=None))
    types = at(policy, "spec", "policyTypes", default=("Ingress",))
    return "Ingress" in types and selector is not None and selector.matches(labels)


def _open(rule: Object, number: int) -> bool:
    """Whether it lets everybody in to the webhook's port."""
    peers, ports = at(rule, "from", default=()), at(rule, "ports", default=())
    everybody = not peers or any(at(peer, "ipBlock", "cidr") in _ANYWHERE for peer in peers)
    return everybody and (not ports or any(_covers(each, number) for each in ports))


def _covers(written: Object, number: int) -> bool:
    first = at(written, "port", default=None)
    if isinstance(first, str):
        return first == "webhook"
    return first is None or first <= number <= at(written, "endPort", default=first)


def _reached(facts: Facts, where: str) -> Iterator[Diagnosis]:
    """How far the API server's proxy gets, where the dry run has not shown it."""
    if facts.reached is None or outcome(facts) is Outcome.REVIEWED:
        return
    if isinstance(facts.reached, Unread):
        yield unknown("reachable", where, facts.reached, "whether the API server gets through to a replica")
    elif option(facts.deployment, "client-ca"):
        return  # the webhook answers only callers with a certificate, and the proxy has none
    elif facts.reached in _NOT_REACHED:
        what = f"the API server gets no answer through it: {facts.reached} {HTTPStatus(facts.reached).phrase}"
        fix = (
            f"kubectl -n {facts.namespace} get endpointslices -l kubernetes.io/service-name={facts.service_name}\n"
            "# then firewalls between control plane and nodes: docs/install.md#where-it-runs"
        )
        yield problem("reachable", where, what, unanswered(facts), fix)
    else:
        yield ok("reachable", where, "the API server gets through, as far as TLS is left aside")
