"""Read an installation: get and list, and one create by dry run, which stores nothing.

A refused request costs its own answer and no other.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from webhook.cli.commands.doctor.asked_server import Asking
from webhook.cli.commands.doctor.facts import (
    Facts,
    Object,
    Read,
    Replica,
    Unread,
    arguments,
    at,
    is_ready,
    items,
    name_of,
    option,
    port,
)
from webhook.cluster.connection import ApiResponse, ApiServer, ClusterError, status_text
from webhook.cluster.live import LiveCluster
from webhook.cluster.resources import group_path
from webhook.config import ConfigError, config_map_policy
from webhook.core.api.well_known import APP_COMPONENT, APP_INSTANCE, APP_VERSION
from webhook.core.policy.policy import Policy
from webhook.report.documents import KINDS, ReportApi

_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_WEBHOOKS = ("validate.evenspread.io", "mutate.evenspread.io", "groups.evenspread.io")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_CERTIFICATE_NAME = "cert-manager.io/certificate-name"
_MOST_PODS = 10  # of each role that are asked for /readyz and metrics
_PAGE = 500
_METRIC = re.compile(r"^(evenspread_\w+)(\{[^}]*\})? (\S+)$", re.MULTILINE)


def read_facts(live: LiveCluster, *, namespace: str, today: str) -> Facts:
    """Everything that is judged. Never raises: what cannot be read is a value.

    Args:
        live: The cluster.
        namespace: Where the installation is if no webhook configuration names it; empty for any namespace.
        today: An ISO date, for exemptions that are over.
    """
    reader = _Reader(live.server)
    configurations = reader.configurations()
    place, name = _place(configurations, namespace)
    deployment = reader.deployment(place, name)
    if isinstance(deployment, Mapping) and not name:
        place, name = at(deployment, "metadata", "namespace"), name_of(deployment)
    facts = Facts(
        release=live.release,
        version=live.version,
        now=reader.clock or datetime.now(UTC),
        program=at(deployment, "metadata", "labels", APP_VERSION),
        configurations=configurations,
        report_apis=reader.report_apis(),
        namespace=place,
        service_name=name,
        deployment=deployment,
    )
    return reader.around(facts, today) if name else facts


def _place(configurations: Read[tuple[Object, ...]], namespace: str) -> tuple[str, str]:
    """Namespace and name of the registered Service. Without one, the command line's namespace and no name."""
    for each in items(configurations):
        for webhook in at(each, "webhooks", default=()):
            service = at(webhook, "clientConfig", "service", default={})
            if service and at(webhook, "name") in _WEBHOOKS:
                return at(service, "namespace"), at(service, "name")
    return namespace, ""


class _Reader:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.clock: datetime | None = None  # the API server's

    def configurations(self) -> Read[tuple[Object, ...]]:
        """Those with a webhook of ours."""
        found: list[Object] = []
        for kind in _CONFIGURATIONS:
            listed = self._listed(f"{_REGISTRATIONS}/{kind.lower()}s")
            if isinstance(listed, Unread):
                return listed
            found += (
                {**each, "kind": kind}
                for each in listed
                if any(at(webhook, "name") in _WEBHOOKS for webhook in at(each, "webhooks", default=()))
            )
        return tuple(found)

    def report_apis(self) -> Read[Mapping[str, tuple[str, ...] | None]]:
        """The verbs of each API for reports; see `Facts`."""
        found: dict[str, tuple[str, ...] | None] = {}
        for api in ReportApi:
            discovered = self._got(group_path(api))
            if isinstance(discovered, Unread):
                return discovered
            if discovered is not None:
                resources = at(discovered, "resources", default=())
                ours = [each for each in resources if at(each, "kind") == KINDS[api] and "/" not in at(each, "name")]
                found[api] = tuple(at(ours[0], "verbs", default=())) if ours else None
        return found

    def deployment(self, namespace: str, name: str) -> Read[Object | None]:
        """The Deployment of that name; without a name, the first of the chart's."""
        if name:
            return self._got(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        found = self._role(namespace, "webhook")
        if isinstance(found, Unread):
            return found
        charts = ((each, at(each, "metadata", "labels", "helm.sh/chart")) for each in found)
        return next((each for each, chart in charts if chart.startswith("evenspread-")), None)

    def around(self, facts: Facts, today: str) -> Facts:
        """The objects that belong to the Service of ``facts``."""
        namespace, name = facts.namespace, facts.service_name
        core = f"/api/v1/namespaces/{namespace}"
        service, config_map = self._got(f"{core}/services/{name}"), self._got(f"{core}/configmaps/{name}")
        policy, faults = _policy(config_map, f"ConfigMap {namespace}/{name}", today)
        controller = self._controller(facts)
        selector = at(service, "spec", "selector", default={})
        pods = service if isinstance(service, Unread) else self._pods(core, selector)
        controller_pods = self._pods(core, at(controller, "spec", "selector", "matchLabels", default={}))
        tls_name, authority_name = _tls_secret(facts.deployment), option(facts.deployment, "ca-secret")
        tls = self._secret(f"{namespace}/{tls_name}" if tls_name else "")
        read = replace(
            facts,
            controller=controller,
            service=service,
            slices=self._listed(
                f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                labelSelector=f"kubernetes.io/service-name={name}",
            ),
            pods=pods,
            controller_pods=controller_pods,
            lease=self._lease(option(controller, "lease")),
            budgets=self._listed(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"),
            network_policies=self._listed(f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"),
            roles=self._listed(f"{_RBAC}/clusterroles"),
            bindings=self._listed(f"{_RBAC}/clusterrolebindings"),
            tls_name=tls_name,
            tls=tls,
            authority_name=authority_name,
            authority=self._secret(authority_name),
            certificate=self._certificate(namespace, tls),
            config_map=config_map,
            policy=policy,
            policy_faults=faults,
            reached=self._reached(core, name, service),
            replicas=self._replicas(core, pods),
            controllers=self._replicas(core, controller_pods),
        )
        return self._asked(read, core)

    def _asked(self, facts: Facts, core: str) -> Facts:
        """The facts with the result of the dry run."""
        asked = Asking(self._server, facts).ask(self._got)
        unheard = asked.status and not asked.warned and asked.status < HTTPStatus.BAD_REQUEST
        before = [each.dry_runs for each in facts.replicas]
        if unheard and before and None not in before and len(before) == len(items(facts.pods)):
            after = [each.dry_runs for each in self._replicas(core, facts.pods)]
            if None not in after:
                return replace(
                    facts, asked=replace(asked, counted=sum(filter(None, after)) > sum(filter(None, before)))
                )
        return replace(facts, asked=asked)

    def _role(self, namespace: str, role: str) -> Read[tuple[Object, ...]]:
        """The Deployments with the chart's label of a role."""
        where = f"namespaces/{namespace}/" if namespace else ""
        return self._listed(f"/apis/apps/v1/{where}deployments", labelSelector=f"{APP_COMPONENT}={role}")

    def _controller(self, facts: Facts) -> Read[Object | None]:
        """The controller's Deployment of the same release."""
        found = self._role(facts.namespace, "controller")
        if isinstance(found, Unread):
            return found
        release = at(facts.deployment, "metadata", "labels", APP_INSTANCE)
        ours = (each for each in found if at(each, "metadata", "labels", APP_INSTANCE) in {release, ""} or not release)
        return next((each for each in ours if arguments(each)[:1] == ("controller",)), None)

    def _pods(self, core: str, labels: Mapping[str, str]) -> Read[tuple[Object, ...]]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return self._listed(f"{core}/pods", labelSelector=selector) if labels else ()

    def _lease(self, title: str) -> Read[Object | None]:
        namespace, _, name = title.partition("/")
        return self._got(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}") if name else None

    def _secret(self, title: str) -> Read[Object | None]:
        namespace, _, name = title.partition("/")
        return self._got(f"/api/v1/namespaces/{namespace}/secrets/{name}") if name else None

    def _certificate(self, namespace: str, secret: Read[Object | None]) -> Object | None:
        """cert-manager's Certificate of a Secret; None where there is none, or it may not be read."""
        name = at(secret, "metadata", "annotations", _CERTIFICATE_NAME)
        found = self._got(f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates/{name}") if name else None
        return None if isinstance(found, Unread) else found

    def _reached(self, core: str, name: str, service: Read[Object | None]) -> Read[int | None]:
        number = at(service, "spec", "ports", 0, "port", default=0)
        if not number:
            return None
        answer = self._ask(f"{core}/services/https:{name}:{number}/proxy/validate")
        if answer.status in {0, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return Unread(_reason(answer))
        return answer.status

    def _replicas(self, core: str, pods: Read[tuple[Object, ...]]) -> tuple[Replica, ...]:
        # A pod that never ran has no address to ask.
        running = [each for each in items(pods) if is_ready(each) or at(each, "status", "phase") == "Running"]
        return tuple(self._replica(core, each) for each in running[:_MOST_PODS])

    def _replica(self, core: str, pod: Object) -> Replica:
        base = f"{core}/pods/http:{name_of(pod)}:{port(at(pod, 'spec'), 'health')}/proxy"
        answer = self._ask(f"{base}/readyz")
        if not answer.text:  # a Status of the API server: it may not be asked, or the proxy got no answer
            return Replica(name=name_of(pod), readyz=Unread(_reason(answer)))
        lines = dict(line.partition(": ")[::2] for line in answer.text.splitlines())
        metrics = [*_METRIC.findall(self._ask(f"{base}/metrics").text)]
        plain = {name: float(value) for name, labels, value in metrics if not labels}
        valid = plain.get("evenspread_config_valid")
        return Replica(
            name=name_of(pod),
            readyz=(answer.status, lines),
            begins=plain.get("evenspread_certificate_not_before_timestamp_seconds"),
            ends=plain.get("evenspread_certificate_expiry_timestamp_seconds"),
            config_valid=None if valid is None else valid == 1,
            dry_runs=_dry_runs(metrics) if metrics else None,
        )

    def _got(self, path: str) -> Read[Object | None]:
        """One object; None if it is not there."""
        answer = self._ask(path)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return answer.content if answer.status == HTTPStatus.OK else Unread(_reason(answer))

    def _listed(self, path: str, **query: str) -> Read[tuple[Object, ...]]:
        """All objects of a list, page by page."""
        found: list[Object] = []
        asked = {**query, "limit": str(_PAGE)}
        while True:
            answer = self._ask(f"{path}?{urlencode(asked, quote_via=quote)}")
            if answer.status != HTTPStatus.OK:
                return Unread(_reason(answer))
            found += at(answer.content, "items", default=())
            token = str(at(answer.content, "metadata", "continue"))
            if not token:
                return tuple(found)
            asked["continue"] = token

    def _ask(self, path: str) -> ApiResponse:
        """The answer; of status 0 where there is none."""
        try:
            answer = self._server.send("GET", path)
        except ClusterError as error:
            return ApiResponse(status=0, content={"message": str(error)})
        self.clock = answer.date or self.clock
        return answer


def _dry_runs(metrics: list[tuple[str, str, str]]) -> int:
    reviewed = "evenspread_admission_requests_total"
    return sum(int(float(value)) for name, labels, value in metrics if name == reviewed and 'dry_run="true"' in labels)


def _reason(answer: ApiResponse) -> str:
    if not answer.status:
        return str(at(answer.content, "message"))
    return status_text(answer.status)


def _policy(config_map: Read[Object | None], title: str, today: str) -> tuple[Policy | None, tuple[str, ...]]:
    """The policy that the webhook reads, or its faults; neither where there is no ConfigMap."""
    if not isinstance(config_map, Mapping):
        return None, ()
    try:
        return config_map_policy(at(config_map, "data", default={}), title=title, today=today).policy, ()
    except ConfigError as error:
        return None, tuple(line.removeprefix(f"{title}/") for line in error.render().splitlines())


def _tls_secret(deployment: Read[Object | None]) -> str:
    """The Secret that is mounted where the served certificate lies."""
    return next(_mounted(deployment, "tls"), "")


def _mounted(deployment: object, volume: str) -> Iterator[str]:
    for each in at(deployment, "spec", "template", "spec", "volumes", default=()):
        if at(each, "name") == volume:
            yield at(each, "secret", "secretName")
