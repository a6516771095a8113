"""Read an installation with get, list and one dry run. A refused request affects only its own fact."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from webhook.cli.commands.doctor.api_fields import Object, arguments, at, is_ready, name_of, option, port
from webhook.cli.commands.doctor.dry_run import sent_dry_run
from webhook.cli.commands.doctor.facts import InstallationFacts, Read, Replica, Unread, items
from webhook.cluster.connection import ApiResponse, ApiServer
from webhook.cluster.errors import ClusterError, status_text
from webhook.cluster.live import LiveCluster
from webhook.cluster.resources import group_path
from webhook.config import ConfigError, config_map_policy
from webhook.core.admission_policies.policy_objects import GROUP, OBJECT_LABELS
from webhook.core.api import gates
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.api.well_known import APP_COMPONENT, APP_INSTANCE, APP_VERSION, POLICIES_ANNOTATION
from webhook.core.policy.policy import Policy
from webhook.report.documents import KINDS, ReportApi

_GROUP_PATH = f"/apis/{GROUP}"
_REGISTRATIONS = f"{_GROUP_PATH}/v1"
_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_ADMISSION_POLICIES = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
_WEBHOOKS = ("validate.evenspread.io", "mutate.evenspread.io", "groups.evenspread.io")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_CERTIFICATE_NAME = "cert-manager.io/certificate-name"
_MAX_PODS = 10  # of each Deployment: each takes two requests through the API server's proxy
_ABSENT = Unread(status_text(HTTPStatus.NOT_FOUND))  # An API that the cluster does not serve
_PAGE = 500  # objects in a response, as kubectl requests them
_METRIC = re.compile(r"^(evenspread_\w+)(\{[^}]*\})? (\S+)$", re.MULTILINE)


def read_facts(live: LiveCluster, *, namespace: str, today: str) -> InstallationFacts:
    """Read all facts. Never raises: an unreadable fact is `Unread`.

    Args:
        live: The cluster.
        namespace: Namespace of the installation, unless a webhook configuration names it. Empty for any.
        today: ISO date, for expired exemptions.
    """
    reader = _FactReader(live.server)
    configurations = reader.configurations()
    place, name = _place(configurations, namespace)
    deployment = reader.deployment(place, name)
    if isinstance(deployment, Mapping) and not name:
        place, name = at(deployment, "metadata", "namespace"), name_of(deployment)
    facts = InstallationFacts(
        release=live.release,
        version=live.version,
        now=reader.clock or datetime.now(UTC),
        program=at(deployment, "metadata", "labels", APP_VERSION),
        configurations=configurations,
        admission_policies=reader.admission_policies(live.version or RECORDED),
        report_apis=reader.report_apis(),
        namespace=place,
        service_name=name,
        deployment=deployment,
    )
    return reader.around(facts, today) if name else facts


def _place(configurations: Read[tuple[Object, ...]], namespace: str) -> tuple[str, str]:
    """Return namespace and name of the registered Service, else ``namespace`` and an empty name."""
    for configuration in items(configurations):
        for webhook in at(configuration, "webhooks", default=()):
            service = at(webhook, "clientConfig", "service", default={})
            if service and at(webhook, "name") in _WEBHOOKS:
                return at(service, "namespace"), at(service, "name")
    return namespace, ""


class _FactReader:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.clock: datetime | None = None  # the API server's time, from its last answer

    def configurations(self) -> Read[tuple[Object, ...]]:
        """The webhook configurations of evenspread."""
        configurations: list[Object] = []
        for kind in _CONFIGURATIONS:
            listed = self._list(f"{_REGISTRATIONS}/{kind.lower()}s")
            if isinstance(listed, Unread):
                return listed
            configurations += (
                {**configuration, "kind": kind}
                for configuration in listed
                if any(at(webhook, "name") in _WEBHOOKS for webhook in at(configuration, "webhooks", default=()))
            )
        return tuple(configurations)

    def admission_policies(self, version: KubernetesVersion) -> Read[tuple[Object, ...]]:
        """The admission policies and bindings, as in `InstallationFacts`."""
        mutating = "v1" if gates.MUTATING_POLICIES_ARE_STABLE.holds(version) else "v1beta1"
        objects: list[Object] = []
        for kind, resource in _ADMISSION_POLICIES.items():
            listed = self._list(f"{_GROUP_PATH}/{mutating if kind.startswith('Mutating') else 'v1'}/{resource}")
            if listed == _ABSENT:
                continue
            if isinstance(listed, Unread):
                return listed
            objects += ({**found, "kind": kind} for found in listed if _is_compiled(found))
        return tuple(objects)

    def report_apis(self) -> Read[Mapping[str, tuple[str, ...] | None]]:
        """The verbs of each report API, as in `InstallationFacts`."""
        verbs: dict[str, tuple[str, ...] | None] = {}
        for api in ReportApi:
            discovered = self._get(group_path(api))
            if isinstance(discovered, Unread):
                return discovered
            if discovered is not None:
                resources = at(discovered, "resources", default=())
                reports = [
                    resource
                    for resource in resources
                    if at(resource, "kind") == KINDS[api] and "/" not in at(resource, "name")
                ]
                verbs[api] = tuple(at(reports[0], "verbs", default=())) if reports else None
        return verbs

    def deployment(self, namespace: str, name: str) -> Read[Object | None]:
        """The Deployment of this name. Without a name, the first with the chart's labels."""
        if name:
            return self._get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        deployments = self._role(namespace, "webhook")
        if isinstance(deployments, Unread):
            return deployments
        charts = ((deployment, at(deployment, "metadata", "labels", "helm.sh/chart")) for deployment in deployments)
        return next((deployment for deployment, chart in charts if chart.startswith("evenspread-")), None)

    def around(self, facts: InstallationFacts, today: str) -> InstallationFacts:
        """Add all facts about the Service, the controller, and the objects named in these two."""
        namespace, name = facts.namespace, facts.service_name
        core = f"/api/v1/namespaces/{namespace}"
        service, config_map = self._get(f"{core}/services/{name}"), self._get(f"{core}/configmaps/{name}")
        policy, faults = _policy(config_map, f"ConfigMap {namespace}/{name}", today)
        controller = self._controller(facts)
        selector = at(service, "spec", "selector", default={})
        pods = service if isinstance(service, Unread) else self._pods(core, selector)
        controller_pods = self._pods(core, at(controller, "spec", "selector", "matchLabels", default={}))
        tls_name, authority_name = _tls_secret(facts.deployment), option(facts.deployment, "ca-secret")
        tls = self._named("api/v1", "secrets", f"{namespace}/{tls_name}")
        read = replace(
            facts,
            controller=controller,
            service=service,
            slices=self._list(
                f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                labelSelector=f"kubernetes.io/service-name={name}",
            ),
            pods=pods,
            controller_pods=controller_pods,
            lease=self._named("apis/coordination.k8s.io/v1", "leases", option(controller, "lease")),
            budgets=self._list(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"),
            network_policies=self._list(f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"),
            roles=self._list(f"{_RBAC}/clusterroles"),
            bindings=self._list(f"{_RBAC}/clusterrolebindings"),
            tls_name=tls_name,
            tls=tls,
            authority_name=authority_name,
            authority=self._named("api/v1", "secrets", authority_name),
            certificate=self._certificate(namespace, tls),
            config_map=config_map,
            policy=policy,
            policy_faults=faults,
            reached=self._reached(core, name, service),
            replicas=self._replicas(core, pods),
            controllers=self._replicas(core, controller_pods),
        )
        return self._with_dry_run(read, core)

    def _with_dry_run(self, facts: InstallationFacts, core: str) -> InstallationFacts:
        """Return the facts with the result of a dry-run request, and whether the webhook counted this request."""
        dry_run = sent_dry_run(self._server, facts, self._get)
        unwarned = dry_run.status and not dry_run.warned and dry_run.status < HTTPStatus.BAD_REQUEST
        before = [replica.dry_runs for replica in facts.replicas]
        if unwarned and before and None not in before and len(before) == len(items(facts.pods)):
            after = [replica.dry_runs for replica in self._replicas(core, facts.pods)]
            if None not in after:
                dry_run = replace(dry_run, counted=sum(filter(None, after)) > sum(filter(None, before)))
        return replace(facts, dry_run=dry_run)

    def _role(self, namespace: str, role: str) -> Read[tuple[Object, ...]]:
        """The Deployments with the chart's label for this component."""
        where = f"namespaces/{namespace}/" if namespace else ""
        return self._list(f"/apis/apps/v1/{where}deployments", labelSelector=f"{APP_COMPONENT}={role}")

    def _controller(self, facts: InstallationFacts) -> Read[Object | None]:
        """The controller's Deployment of the same Helm release."""
        deployments = self._role(facts.namespace, "controller")
        if isinstance(deployments, Unread):
            return deployments
        release = at(facts.deployment, "metadata", "labels", APP_INSTANCE)
        for deployment in deployments:
            same_release = at(deployment, "metadata", "labels", APP_INSTANCE) in {release, ""} or not release
            if same_release and arguments(deployment)[:1] == ("controller",):
                return deployment
        return None

    def _pods(self, core: str, labels: Mapping[str, str]) -> Read[tuple[Object, ...]]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return self._list(f"{core}/pods", labelSelector=selector) if labels else ()

    def _named(self, api: str, resource: str, title: str) -> Read[Object | None]:
        """The object ``NAMESPACE/NAME``. None if it is absent or the name is empty."""
        namespace, _, name = title.partition("/")
        return self._get(f"/{api}/namespaces/{namespace}/{resource}/{name}") if name else None

    def _certificate(self, namespace: str, secret: Read[Object | None]) -> Object | None:
        """cert-manager's Certificate for a Secret. None if absent or unreadable."""
        name = at(secret, "metadata", "annotations", _CERTIFICATE_NAME)
        path = f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates/{name}"
        certificate = self._get(path) if name else None
        return None if isinstance(certificate, Unread) else certificate

    def _reached(self, core: str, name: str, service: Read[Object | None]) -> Read[int | None]:
        number = at(service, "spec", "ports", 0, "port", default=0)
        if not number:
            return None
        answer = self._request(f"{core}/services/https:{name}:{number}/proxy/validate")
        if answer.status in {0, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return Unread(_reason(answer))
        return answer.status

    def _replicas(self, core: str, pods: Read[tuple[Object, ...]]) -> tuple[Replica, ...]:
        # A pod that never ran has no address.
        running = [pod for pod in items(pods) if is_ready(pod) or at(pod, "status", "phase") == "Running"]
        return tuple(self._replica(core, pod) for pod in running[:_MAX_PODS])

    def _replica(self, core: str, pod: Object) -> Replica:
        base = f"{core}/pods/http:{name_of(pod)}:{port(at(pod, 'spec'), 'health')}/proxy"
        answer = self._request(f"{base}/readyz")
        if not answer.text:  # the API server's own Status: no permission, or no answer from the pod
            return Replica(name=name_of(pod), readyz=Unread(_reason(answer)))
        lines = dict(line.partition(": ")[::2] for line in answer.text.splitlines())
        metrics = [*_METRIC.findall(self._request(f"{base}/metrics").text)]
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

    def _get(self, path: str) -> Read[Object | None]:
        """Get the object at an API path. None if it does not exist."""
        answer = self._request(path)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return answer.content if answer.status == HTTPStatus.OK else Unread(_reason(answer))

    def _list(self, path: str, **query: str) -> Read[tuple[Object, ...]]:
        objects: list[Object] = []
        parameters = {**query, "limit": str(_PAGE)}
        while True:
            answer = self._request(f"{path}?{urlencode(parameters, quote_via=quote)}")
            if answer.status != HTTPStatus.OK:
                return Unread(_reason(answer))
            objects += at(answer.content, "items", default=())
            token = str(at(answer.content, "metadata", "continue"))
            if not token:
                return tuple(objects)
            parameters["continue"] = token

    def _request(self, path: str) -> ApiResponse:
        """The answer of a GET. Its status is 0 if the API server does not answer."""
        try:
            answer = self._server.send("GET", path)
        except ClusterError as error:
            return ApiResponse(status=0, content={"message": str(error)})
        self.clock = answer.date or self.clock
        return answer


def _is_compiled(found: Object) -> bool:
    """Whether an object is of `evenspread compile` or the controller, or a binding of the chart."""
    labels, annotations = (at(found, "metadata", field, default={}) for field in ("labels", "annotations"))
    return OBJECT_LABELS.items() <= labels.items() or POLICIES_ANNOTATION in annotations


def _dry_runs(metrics: list[tuple[str, str, str]]) -> int:
    total = "evenspread_admission_requests_total"
    return sum(int(float(value)) for name, labels, value in metrics if name == total and 'dry_run="true"' in labels)


def _reason(answer: ApiResponse) -> str:
    if not answer.status:
        return str(at(answer.content, "message"))
    return status_text(answer.status)


def _policy(config_map: Read[Object | None], title: str, today: str) -> tuple[Policy | None, tuple[str, ...]]:
    """Return the policy in the ConfigMap, or the policy's faults. Without a ConfigMap, return None and no faults."""
    if not isinstance(config_map, Mapping):
        return None, ()
    try:
        return config_map_policy(at(config_map, "data", default={}), title=title, today=today).policy, ()
    except ConfigError as error:
        return None, tuple(line.removeprefix(f"{title}/") for line in error.render().splitlines())


def _tls_secret(deployment: Read[Object | None]) -> str:
    """The Secret in the Deployment's volume for the served certificate. Empty without a Secret."""
    volumes = at(deployment, "spec", "template", "spec", "volumes", default=())
    names = (str(at(volume, "secret", "secretName")) for volume in volumes if at(volume, "name") == "tls")
    return next(names, "")
