"""Read what can be known of an installation, by get and list alone.

A question that is refused costs its own answer and no other. Whether the API server reaches the webhook is asked as a
get on its Service's proxy, since that goes the way that admission goes.
"""

import re
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from webhook.cli.diagnosing.facts import (
    Binding,
    ConfigMap,
    Configuration,
    Deployment,
    DisruptionBudget,
    EndpointSlice,
    Facts,
    Group,
    NetworkPolicy,
    Pod,
    Read,
    Replica,
    Role,
    Secret,
    Service,
    Unread,
)
from webhook.cluster.connection import ApiServer, ClusterError
from webhook.cluster.live import Live
from webhook.config import ConfigError, load_policy
from webhook.core.api.well_known import APP_COMPONENT, APP_VERSION
from webhook.core.decoders import converted
from webhook.core.policy.policy import Policy

_Object = TypeVar("_Object")
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_WEBHOOKS = ("validate.evenspread.io", "mutate.evenspread.io")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_MOST_REPLICAS = 10  # that are asked what they serve
_PAGE = 500
_POLICY_FILE = "policy.yaml"  # in the chart's ConfigMap
# A scheduler's configuration that is no file of the ConfigMap, which would be read from this machine.
_ELSEWHERE = re.compile(r"""schedulerConfiguration["']?:\s*["']?(/|\.\.)""")
_METRIC = re.compile(r"^(evenspread_\w+) (\S+)$", re.MULTILINE)


def read_facts(live: Live, *, namespace: str, today: str) -> Facts:
    """Everything that is judged. ``namespace`` is where to look if no webhook configuration says it; empty: anywhere.

    Errors: none; what cannot be read is a value.
    """
    reader = _Reader(live.server)
    configurations, groups = reader.configurations(), reader.listed("/apis", Group, key="groups")
    place, name = _place(configurations, namespace)
    deployment = reader.deployment(place, name)
    if isinstance(deployment, Deployment) and not name:
        place, name = deployment.metadata.namespace, deployment.metadata.name
    facts = Facts(
        release=live.release,
        version=live.version,
        now=reader.clock or datetime.now(UTC),
        program=_program(deployment),
        configurations=configurations,
        groups=groups if isinstance(groups, Unread) else tuple(each.name for each in groups),
        namespace=place,
        service_name=name,
        deployment=deployment,
    )
    return reader.around(facts, today) if name else facts


def _place(configurations: Read[tuple[Configuration, ...]], namespace: str) -> tuple[str, str]:
    """Namespace and name of the Service that is called; the namespace that was asked for where none is."""
    for configuration in () if isinstance(configurations, Unread) else configurations:
        for each in configuration.webhooks:
            if each.client_config.service is not None:
                return each.client_config.service.namespace, each.client_config.service.name
    return namespace, ""


def _program(deployment: Read[Deployment | None]) -> str:
    labels = deployment.metadata.labels if isinstance(deployment, Deployment) else {}
    return labels.get(APP_VERSION, "")


class _Reader:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.clock: datetime | None = None  # the API server's

    def configurations(self) -> Read[tuple[Configuration, ...]]:
        """Those with a webhook of ours."""
        found: list[Configuration] = []
        for kind in _KINDS:
            listed = self.listed(f"{_REGISTRATIONS}/{kind.lower()}s", Configuration)
            if isinstance(listed, Unread):
                return listed
            found += (
                msgspec.structs.replace(each, kind=kind)
                for each in listed
                if any(webhook.name in _WEBHOOKS for webhook in each.webhooks)
            )
        return tuple(found)

    def deployment(self, namespace: str, name: str) -> Read[Deployment | None]:
        """The Deployment of that name; without a name, the first of the chart's."""
        if name:
            return self.got(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", Deployment)
        where = f"namespaces/{namespace}/" if namespace else ""
        labels = f"{APP_COMPONENT}=webhook"
        found = self.listed(f"/apis/apps/v1/{where}deployments", Deployment, labelSelector=labels)
        if isinstance(found, Unread):
            return found
        ours = (each for each in found if each.metadata.labels.get("helm.sh/chart", "").startswith("evenspread-"))
        return next(ours, None)

    def around(self, facts: Facts, today: str) -> Facts:
        """The objects that belong to the Service of ``facts``."""
        namespace, name = facts.namespace, facts.service_name
        core = f"/api/v1/namespaces/{namespace}"
        deployment = facts.deployment if isinstance(facts.deployment, Deployment) else None
        service = self.got(f"{core}/services/{name}", Service)
        config_map = self.got(f"{core}/configmaps/{name}", ConfigMap)
        policy, faults = _policy(config_map, today)
        pods = self._pods(core, service)
        return msgspec.structs.replace(
            facts,
            controller=self._controller(namespace),
            service=service,
            slices=self.listed(
                f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                EndpointSlice,
                labelSelector=f"kubernetes.io/service-name={name}",
            ),
            pods=pods,
            budgets=self.listed(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", DisruptionBudget),
            network_policies=self.listed(
                f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies", NetworkPolicy
            ),
            roles=self.listed(f"{_RBAC}/clusterroles", Role),
            bindings=self.listed(f"{_RBAC}/clusterrolebindings", Binding),
            tls=self._secret(namespace, _tls_secret(deployment)),
            authority=self._secret(*_authority_secret(deployment)),
            config_map=config_map,
            policy=policy,
            policy_faults=faults,
            reached=self._reached(core, name, service),
            replicas=self._replicas(core, pods),
        )

    def _controller(self, namespace: str) -> Read[Deployment | None]:
        """The Deployment of the controller's role."""
        labels = f"{APP_COMPONENT}=controller"
        found = self.listed(f"/apis/apps/v1/namespaces/{namespace}/deployments", Deployment, labelSelector=labels)
        if isinstance(found, Unread):
            return found
        return next((each for each in found if each.container.args[:1] == ("controller",)), None)

    def _pods(self, core: str, service: Read[Service | None]) -> Read[tuple[Pod, ...]]:
        if not isinstance(service, Service) or not service.spec.selector:
            return service if isinstance(service, Unread) else ()
        labels = ",".join(f"{key}={value}" for key, value in service.spec.selector.items())
        return self.listed(f"{core}/pods", Pod, labelSelector=labels)

    def _secret(self, namespace: str, name: str) -> Read[Secret | None]:
        return self.got(f"/api/v1/namespaces/{namespace}/secrets/{name}", Secret) if name else None

    def _reached(self, core: str, name: str, service: Read[Service | None]) -> Read[int | None]:
        if not isinstance(service, Service) or not service.spec.ports:
            return None
        port = service.spec.ports[0].port
        status, content = self._ask(f"{core}/services/https:{name}:{port}/proxy/validate")
        if status in {0, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return Unread(_said(status, content))
        return status

    def _replicas(self, core: str, pods: Read[tuple[Pod, ...]]) -> tuple[Read[Replica], ...]:
        ready = () if isinstance(pods, Unread) else [each for each in pods if each.ready]
        return tuple(self._replica(core, each) for each in ready[:_MOST_REPLICAS])

    def _replica(self, core: str, pod: Pod) -> Read[Replica]:
        path = f"{core}/pods/http:{pod.metadata.name}:{pod.port('health')}/proxy/metrics"
        try:
            with self._server.open(path) as stream:
                said = dict(_METRIC.findall(stream.body().decode(errors="replace")))
        except ClusterError as error:
            return Unread(str(error))
        ends, valid = said.get("evenspread_certificate_expiry_timestamp_seconds"), said.get("evenspread_config_valid")
        return Replica(
            name=pod.metadata.name,
            certificate_ends=None if ends is None else float(ends),
            config_valid=None if valid is None else float(valid) == 1,
        )

    def got(self, path: str, into: type[_Object]) -> Read[_Object | None]:
        """One object; None if it is not there."""
        status, content = self._ask(path)
        if status == HTTPStatus.NOT_FOUND:
            return None
        return _converted(content, into) if status == HTTPStatus.OK else Unread(_said(status, content))

    def listed(self, path: str, into: type[_Object], *, key: str = "items", **query: str) -> Read[tuple[_Object, ...]]:
        """All objects of a list, page by page."""
        found: list[_Object] = []
        token = ""
        while True:
            asked = {
                **query,
                **({} if key != "items" else {"limit": str(_PAGE)}),
                **({"continue": token} if token else {}),
            }
            status, content = self._ask(f"{path}?{urlencode(asked, quote_via=quote)}")
            if status != HTTPStatus.OK:
                return Unread(_said(status, content))
            items = _converted(content.get(key) or (), tuple[into, ...])  # type: ignore[valid-type]
            if isinstance(items, Unread):
                return items
            found += items
            token = str((content.get("metadata") or {}).get("continue") or "")
            if not token:
                return tuple(found)

    def _ask(self, path: str) -> tuple[int, Mapping[str, Any]]:
        """Status and object of an answer; 0 where there is none."""
        try:
            answer = self._server.ask("GET", path)
        except ClusterError as error:
            return 0, {"message": str(error)}
        self.clock = answer.date or self.clock
        return answer.status, answer.content


def _said(status: int, content: Mapping[str, Any]) -> str:
    reasons = {each.value: each.phrase for each in HTTPStatus}
    return f"{status} {reasons.get(status, '')}".rstrip() if status else str(content.get("message", ""))


def _converted(content: object, into: type[_Object]) -> Read[_Object]:
    try:
        return converted(_without_nulls(content), into)
    except msgspec.ValidationError as error:
        return Unread(f"not understood: {error}")


def _without_nulls(value: object) -> object:
    """The same without fields that are null, which the API server writes for some empty lists."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _policy(config_map: Read[ConfigMap | None], today: str) -> tuple[Policy | None, tuple[str, ...]]:
    """The policy that the webhook reads, or its faults; neither where it names a file that is not in the ConfigMap."""
    data = config_map.data if isinstance(config_map, ConfigMap) else {}
    if _POLICY_FILE not in data or _ELSEWHERE.search(data[_POLICY_FILE]):
        return None, ()
    with tempfile.TemporaryDirectory() as directory:
        for name, text in data.items():
            (Path(directory) / name).write_text(text)
        try:
            return load_policy(Path(directory) / _POLICY_FILE, today=today).policy, ()
        except ConfigError as error:
            return None, tuple(line.replace(f"{directory}/", "") for line in error.render().splitlines())


def _tls_secret(deployment: Deployment | None) -> str:
    """The Secret that is mounted where the served certificate lies."""
    volumes = deployment.spec.template.spec.volumes if deployment is not None else ()
    return next((each.secret.secret_name for each in volumes if each.name == "tls" and each.secret is not None), "")


def _authority_secret(deployment: Deployment | None) -> tuple[str, str]:
    """Namespace and name of the Secret with our own CA."""
    namespace, _, name = (deployment.container.option("ca-secret") if deployment is not None else "").partition("/")
    return namespace, name
