"""The facts about an installation. `Unread` replaces an object without read permission."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeAlias, TypeVar

from msgspec import Struct

from webhook.cli.commands.doctor.api_fields import Object, at, name_of
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import APP_INSTANCE
from webhook.core.policy.policy import Policy

_Fact = TypeVar("_Fact")


class Unread(Struct, frozen=True):
    """Why something could not be read: ``403 Forbidden``."""

    reason: str


Read: TypeAlias = _Fact | Unread


def items(objects: Read[tuple[Object, ...]]) -> tuple[Object, ...]:
    """The objects. Empty if they could not be read."""
    return () if isinstance(objects, Unread) else objects


class Replica(Struct, frozen=True, kw_only=True):
    """A pod's answers on its health port: status and lines of /readyz, and metrics.

    The fields after ``readyz`` are metrics, and None if absent. ``begins`` and ``ends`` are the certificate's validity,
    in seconds since 1970. ``dry_runs`` is the number of reviews of dry-run requests.
    """

    name: str
    readyz: Read[tuple[int, Mapping[str, str]]]
    begins: float | None = None
    ends: float | None = None
    config_valid: bool | None = None
    dry_runs: int | None = None


class DryRun(Struct, frozen=True, kw_only=True):
    """The API server's answer to a Deployment created by dry run.

    Attributes:
        namespace: The Deployment's namespace. Empty if none was sent.
        status: HTTP status. 0 if none was sent.
        message: The API server's message, or why none was sent.
        warned: Whether the answer has a warning of evenspread.
        expected: Whether the policy warns about this Deployment. None if unknown.
        counted: Whether a replica counted a review meanwhile. None if unknown.
    """

    namespace: str = ""
    status: int = 0
    message: str = ""
    warned: bool = False
    expected: bool | None = None
    counted: bool | None = None


class InstallationFacts(Struct, frozen=True, kw_only=True):
    """All inputs of the checks by ``evenspread doctor``.

    A field with an object is None if the object is absent.

    Attributes:
        release: The version string reported by the API server.
        version: The Kubernetes release in ``release``. None if evenspread does not support the release.
        now: The API server's time.
        program: evenspread's release, from the version label of the webhook's Deployment.
        configurations: Webhook configurations of evenspread, with their ``kind``.
        admission_policies: Admission policies and bindings of evenspread, with their ``kind``.
        given_policy: The policy in --config, to compare the admission policies with. None without --config.
        given_file: The value of --config.
        report_apis: Maps each report API of the API server to the verbs of its report resource. The verbs are None if
            the API lacks this resource.
        namespace: Namespace of the registered Service, else of the webhook's Deployment. Empty without both.
        service_name: Name of the registered Service. The Deployment and the ConfigMap have the same name.
        controller: The controller's Deployment.
        tls_name: Name of the Secret with the serving certificate, from the webhook's Deployment.
        authority_name: Name of the Secret with evenspread's own CA, from the webhook's Deployment.
        certificate: cert-manager's Certificate for the serving certificate.
        policy: The policy in the ConfigMap. None if the ConfigMap has faults.
        policy_faults: The faults of the ConfigMap.
        reached: HTTP status of a request to the webhook through the API server's proxy.
        replicas: Running pods of the webhook.
        controllers: Running pods of the controller.
    """

    release: str
    version: KubernetesVersion | None
    now: datetime
    program: str
    configurations: Read[tuple[Object, ...]]
    report_apis: Read[Mapping[str, tuple[str, ...] | None]]
    admission_policies: Read[tuple[Object, ...]] = ()
    given_policy: Policy | None = None
    given_file: str = ""
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
    dry_run: DryRun = DryRun()


def configured(facts: InstallationFacts) -> Iterator[tuple[str, Object]]:
    """Yield each registered webhook of evenspread, with the title of its configuration."""
    for configuration in items(facts.configurations):
        for webhook in at(configuration, "webhooks", default=()):
            yield f"{configuration['kind']} {name_of(configuration)}", webhook


def release_of(facts: InstallationFacts) -> str:
    """The name of the Helm release. Empty if unknown."""
    return str(at(facts.deployment, "metadata", "labels", APP_INSTANCE))


def only_policies(facts: InstallationFacts) -> bool:
    """Whether the cluster has admission policies of evenspread, but no webhook."""
    return facts.deployment is None and bool(items(facts.admission_policies))
