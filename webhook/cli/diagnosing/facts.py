"""An installation in a cluster, as far as it could be read: parsed once, and frozen.

Shape: fields are named as in Kubernetes' API, and only those are there that a judgement needs. `Unread` stands in the
place of whatever could not be read.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeAlias, TypeVar

from msgspec import Struct, field

from webhook.core.api.types import LabelSelector
from webhook.core.api.version import KubernetesVersion
from webhook.core.policy.policy import Policy

_Fact = TypeVar("_Fact")


class Unread(Struct, frozen=True):
    """Why something could not be read: ``403 Forbidden``."""

    reason: str


Read: TypeAlias = _Fact | Unread


def readable(facts: Iterable[Read[_Fact]]) -> tuple[_Fact, ...]:
    """Those that could be read."""
    return tuple(each for each in facts if not isinstance(each, Unread))


class Part(Struct, frozen=True, rename="camel"):
    """A part of an API object."""


class ManagedFields(Part, frozen=True):
    """Who wrote which fields, how and when."""

    manager: str = ""
    operation: str = ""
    time: str = ""
    fields_v1: Mapping[str, object] = field(name="fieldsV1", default_factory=dict)


class Meta(Part, frozen=True):
    """Metadata of an object."""

    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    managed_fields: tuple[ManagedFields, ...] = ()


class Named(Part, frozen=True):
    """An object of which nothing but the name is of interest."""

    metadata: Meta = Meta()


class ServiceReference(Part, frozen=True):
    """The Service that a webhook configuration names."""

    namespace: str = ""
    name: str = ""
    port: int = 443


class ClientConfig(Part, frozen=True):
    """How the API server reaches a webhook. Shape: ``ca_bundle`` is in base64."""

    service: ServiceReference | None = None
    ca_bundle: str = ""


class RegisteredWebhook(Part, frozen=True):
    """One webhook of a configuration."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    failure_policy: str = "Fail"
    timeout_seconds: int = 10
    namespace_selector: LabelSelector | None = None


class Configuration(Part, frozen=True):
    """A ValidatingWebhookConfiguration or a MutatingWebhookConfiguration."""

    metadata: Meta = Meta()
    webhooks: tuple[RegisteredWebhook, ...] = ()
    kind: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.kind} {self.metadata.name}"


class ServicePort(Part, frozen=True):
    """A port of a Service."""

    port: int = 0
    target_port: int | str = ""


class ServiceSpec(Part, frozen=True):
    """What a Service says."""

    selector: Mapping[str, str] = {}
    ports: tuple[ServicePort, ...] = ()


class Service(Part, frozen=True):
    """A Service."""

    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()


class EndpointConditions(Part, frozen=True):
    """Whether an endpoint is sent anything."""

    ready: bool = True


class Endpoint(Part, frozen=True):
    """An address behind a Service."""

    conditions: EndpointConditions = EndpointConditions()
    addresses: tuple[str, ...] = ()


class EndpointSlice(Part, frozen=True):
    """Some of the addresses behind a Service."""

    endpoints: tuple[Endpoint, ...] = ()


class ContainerPort(Part, frozen=True):
    """A port of a container."""

    name: str = ""
    container_port: int = 0


class Container(Part, frozen=True):
    """A container of a pod."""

    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()

    def option(self, name: str) -> str:
        """The value of an argument ``--name=value``; empty where there is none."""
        start = f"--{name}="
        return next((each.removeprefix(start) for each in self.args if each.startswith(start)), "")


class SecretSource(Part, frozen=True):
    """A Secret that is mounted."""

    secret_name: str = ""


class Volume(Part, frozen=True):
    """A volume of a pod."""

    name: str = ""
    secret: SecretSource | None = None


class PodSpec(Part, frozen=True):
    """What a pod says."""

    service_account_name: str = "default"
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()


class Condition(Part, frozen=True):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    message: str = ""


class Waiting(Part, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class ContainerState(Part, frozen=True):
    """Whether a container runs."""

    waiting: Waiting | None = None


class ContainerStatus(Part, frozen=True):
    """How a container is."""

    state: ContainerState = ContainerState()


class PodStatus(Part, frozen=True):
    """How a pod is."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Part, frozen=True):
    """A pod of the webhook."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready(self) -> bool:
        """Whether its readiness probe succeeds."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    def port(self, name: str) -> int:
        """The number of a named port of its containers; 0 where there is none."""
        ports = (each for container in self.spec.containers for each in container.ports)
        return next((each.container_port for each in ports if each.name == name), 0)


class PodTemplate(Part, frozen=True):
    """What the pods of a Deployment are made from."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()


class DeploymentSpec(Part, frozen=True):
    """What a Deployment says."""

    replicas: int = 1
    template: PodTemplate = PodTemplate()


class Deployment(Part, frozen=True):
    """The Deployment of a role."""

    metadata: Meta = Meta()
    spec: DeploymentSpec = DeploymentSpec()

    @property
    def container(self) -> Container:
        """The only one."""
        containers = self.spec.template.spec.containers
        return containers[0] if containers else Container()


class SelectingSpec(Part, frozen=True):
    """The pods that an object is about."""

    selector: LabelSelector | None = None


class DisruptionBudget(Part, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Meta = Meta()
    spec: SelectingSpec = SelectingSpec()


class PolicyPort(Part, frozen=True):
    """Ports that a rule of a NetworkPolicy lets through; all where none is named."""

    port: int | str | None = None
    end_port: int | None = None
    protocol: str = "TCP"


class IPBlock(Part, frozen=True):
    """Addresses that may call."""

    cidr: str = ""


class Peer(Part, frozen=True):
    """Who may call."""

    ip_block: IPBlock | None = None


class IngressRule(Part, frozen=True):
    """What one rule of a NetworkPolicy lets in; from everybody where it names nobody."""

    from_: tuple[Peer, ...] = field(name="from", default=())
    ports: tuple[PolicyPort, ...] = ()


class NetworkPolicySpec(Part, frozen=True):
    """What a NetworkPolicy says."""

    pod_selector: LabelSelector | None = None
    policy_types: tuple[str, ...] = ("Ingress",)
    ingress: tuple[IngressRule, ...] = ()


class NetworkPolicy(Part, frozen=True):
    """A NetworkPolicy."""

    metadata: Meta = Meta()
    spec: NetworkPolicySpec = NetworkPolicySpec()


class Rule(Part, frozen=True):
    """What a role allows."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class Role(Part, frozen=True):
    """A ClusterRole."""

    metadata: Meta = Meta()
    rules: tuple[Rule, ...] = ()


class RoleReference(Part, frozen=True):
    """The role of a binding."""

    name: str = ""


class Subject(Part, frozen=True):
    """Who is given a role."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class Binding(Part, frozen=True):
    """A ClusterRoleBinding."""

    role_ref: RoleReference = RoleReference()
    subjects: tuple[Subject, ...] = ()


class Secret(Part, frozen=True):
    """A Secret. Shape: values are in base64."""

    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class ConfigMap(Part, frozen=True):
    """A ConfigMap."""

    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class Group(Part, frozen=True):
    """A group of the API."""

    name: str = ""


class Replica(Struct, frozen=True, kw_only=True):
    """What a ready pod says of itself on its health port; None where it does not say.

    Unit: ``certificate_ends`` is in seconds since 1970.
    """

    name: str
    certificate_ends: float | None = None
    config_valid: bool | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """All that is judged.

    Shape: ``namespace`` and ``service`` are where the webhook configurations point, or where its Deployment is; empty
    where there is neither. ``reached`` is the status that the API server got from the webhook's port. ``policy`` is
    None where the ConfigMap has faults, which are ``policy_faults``. ``tls`` is the Secret with the served certificate,
    ``authority`` that with our own CA; each None where the Deployment names none, and so is what is not there.
    """

    release: str
    version: KubernetesVersion | None  # None if it is not supported
    now: datetime
    program: str
    configurations: Read[tuple[Configuration, ...]]
    groups: Read[tuple[str, ...]]
    namespace: str = ""
    service_name: str = ""
    deployment: Read[Deployment | None] = None
    controller: Read[Deployment | None] = None
    service: Read[Service | None] = None
    slices: Read[tuple[EndpointSlice, ...]] = ()
    pods: Read[tuple[Pod, ...]] = ()
    budgets: Read[tuple[DisruptionBudget, ...]] = ()
    network_policies: Read[tuple[NetworkPolicy, ...]] = ()
    roles: Read[tuple[Role, ...]] = ()
    bindings: Read[tuple[Binding, ...]] = ()
    tls: Read[Secret | None] = None
    authority: Read[Secret | None] = None
    config_map: Read[ConfigMap | None] = None
    policy: Policy | None = None
    policy_faults: tuple[str, ...] = ()
    reached: Read[int | None] = None
    replicas: tuple[Read[Replica], ...] = ()
