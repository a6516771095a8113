"""An installation in a cluster, as far as it could be read.

Objects are the API's own JSON; `at` reads a field. `Unread` takes the place of an object that could not be read.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from webhook.core.api.selectors import Selector, valid_selector
from webhook.core.api.types import LabelSelector
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import APP_INSTANCE
from webhook.core.decoders import converted
from webhook.core.policy.policy import Policy

_Fact = TypeVar("_Fact")
Object: TypeAlias = Mapping[str, Any]


class Unread(Struct, frozen=True):
    """Why something could not be read: ``403 Forbidden``."""

    reason: str


Read: TypeAlias = _Fact | Unread


def readable(facts: Iterable[Read[_Fact]]) -> tuple[_Fact, ...]:
    """Those that could be read."""
    return tuple(each for each in facts if not isinstance(each, Unread))


def items(facts: Read[tuple[Object, ...]]) -> tuple[Object, ...]:
    """The objects; none if they could not be read."""
    return () if isinstance(facts, Unread) else facts


def at(value: object, *path: str | int, default: Any = "") -> Any:  # noqa: ANN401 JSON
    """The value of a field, as ``at(pod, "spec", "containers", 0)``; the default where it is absent or null."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return default if value is None else value


def name_of(value: object) -> str:
    """The name of an object."""
    return str(at(value, "metadata", "name"))


def selector_of(value: object) -> Selector | None:
    """A labelSelector. None if it is absent or invalid."""
    return valid_selector(converted(value, LabelSelector)) if isinstance(value, Mapping) else None


def option(deployment: object, name: str) -> str:
    """The value of the argument ``--name=value`` of a Deployment's container; empty where there is none."""
    start = f"--{name}="
    return next((each.removeprefix(start) for each in arguments(deployment) if each.startswith(start)), "")


def arguments(deployment: object) -> tuple[str, ...]:
    """The arguments of a Deployment's container."""
    return tuple(map(str, at(deployment, "spec", "template", "spec", "containers", 0, "args", default=())))


def port(pod_spec: object, name: str) -> int:
    """The number of a named port of a pod's containers; 0 where there is none."""
    ports = [each for one in at(pod_spec, "containers", default=()) for each in at(one, "ports", default=())]
    return next((int(at(each, "containerPort", default=0)) for each in ports if at(each, "name") == name), 0)


def is_ready(pod: object) -> bool:
    """Whether a pod's readiness probe succeeds."""
    conditions = at(pod, "status", "conditions", default=())
    return any(at(each, "type") == "Ready" and at(each, "status") == "True" for each in conditions)


class Replica(Struct, frozen=True, kw_only=True):
    """What a pod answers on its health port: status and lines of /readyz, and metrics; None for an absent metric.

    Unit: times are in seconds since 1970. ``dry_runs`` counts the reviews of dry runs.
    """

    name: str
    readyz: Read[tuple[int, Mapping[str, str]]]
    begins: float | None = None
    ends: float | None = None
    config_valid: bool | None = None
    dry_runs: int | None = None


class Asked(Struct, frozen=True, kw_only=True):
    """What the API server did with a Deployment that was created by dry run; nothing was stored.

    Shape: ``status`` 0 with ``message`` says why none was sent. ``expected`` says whether the policy gives a warning,
    None if the policy is not known. ``counted`` says whether a replica counted a review meanwhile, None if not known.
    """

    namespace: str = ""
    status: int = 0
    message: str = ""
    warned: bool = False
    expected: bool | None = None
    counted: bool | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """Everything that is judged.

    Shape: ``namespace`` and ``service_name`` are where the webhook configurations point, or where the webhook's
    Deployment is; empty where there is neither. ``configurations`` have their ``kind``. ``report_apis`` has the verbs
    of the resource for reports of each API that the cluster serves, and None where the API lacks the resource.
    ``policy`` is None where the ConfigMap has faults, which are ``policy_faults``. ``tls_name`` and ``authority_name``
    are Secrets that the Deployment names; ``tls`` and ``authority`` are None where there is no such Secret.
    ``certificate`` is cert-manager's. ``reached`` is the status that the API server's proxy got from the webhook.
    """

    release: str
    version: KubernetesVersion | None
    now: datetime
    program: str
    configurations: Read[tuple[Object, ...]]
    report_apis: Read[Mapping[str, tuple[str, ...] | None]]
    namespace: str = ""
    service_name: str = ""
    deployment: Read[Object | None] = None
    controller: Read[Object | None] = None
    service: Read[Object | None] = None
    slices: Read[tuple[Object, ...]] = ()
    pods: Read[tuple[Object, ...]] = ()
    controller_pods: Read[tuple[Object, ...]] = ()
    lease: Read[Object | None] = None
    budgets: Read[tuple[Object, ...]] = ()
    network_policies: Read[tuple[Object, ...]] = ()
    roles: Read[tuple[Object, ...]] = ()
    bindings: Read[tuple[Object, ...]] = ()
    tls_name: str = ""
    tls: Read[Object | None] = None
    authority_name: str = ""
    authority: Read[Object | None] = None
    certificate: Object | None = None
    config_map: Read[Object | None] = None
    policy: Policy | None = None
    policy_faults: tuple[str, ...] = ()
    reached: Read[int | None] = None
    replicas: tuple[Replica, ...] = ()
    controllers: tuple[Replica, ...] = ()
    asked: Asked = Asked()


def configured(facts: Facts) -> Iterator[tuple[str, Object]]:
    """Each webhook of ours that is registered, with the title of its configuration."""
    for each in items(facts.configurations):
        for webhook in at(each, "webhooks", default=()):
            yield f"{each['kind']} {name_of(each)}", webhook


def release_of(facts: Facts) -> str:
    """The name of the Helm release; empty where it is not known."""
    return str(at(facts.deployment, "metadata", "labels", APP_INSTANCE))
