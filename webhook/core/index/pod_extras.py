"""Collect the host ports, volumes and anti-affinity terms of a pod."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.types import ANY_ADDRESS, Container, EphemeralSource, ObjectMeta, PodSpec, Volume
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.affinity_terms import Term, resolve_term

# The weight of a volume other than a plain claim. Reading it can fail. The weight exceeds any limit, so the scheduler's
# NodeVolumeLimits always reads it, and fails like upstream.
_PAST_ANY_LIMIT = 2**31


HostPort = tuple[str, str, int]  # address, protocol, port


def host_ports(spec: PodSpec, version: KubernetesVersion) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars.

    Source: pkg/scheduler/util/utils.go ``GetHostPorts``; kube-scheduler framework/types.go ``sanitize``.
    """
    ports: list[HostPort] = []
    for container in (spec.init_containers or ()) if gates.SIDECARS_HAVE_PORTS.holds(version) else ():
        if container.ports and container.restart_policy == "Always":
            ports += _ports_of(container)
    for container in spec.containers or ():
        if container.ports:
            ports += _ports_of(container)
    return tuple(ports)


def _ports_of(container: Container) -> Iterator[HostPort]:
    """Source: kube-scheduler framework/types.go ``sanitize``."""
    for port in container.ports or ():
        if port.host_port is not None and port.host_port > 0:
            yield port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port


class Mounted(Struct, frozen=True):
    """The volumes of a pod on a node.

    The claim of an ephemeral volume belongs to the pod only if the claim's owner has the pod's ``name`` and ``uid``.
    """

    namespace: str
    name: str
    uid: str
    volumes: tuple[Volume, ...]

    @property
    def weight(self) -> int:
        """An upper bound of the number of volumes that the pod needs from any one driver.

        If reading a volume can fail, the bound exceeds every limit.
        """
        claims = (volume.persistent_volume_claim for volume in self.volumes)
        return sum(1 if claim is not None and claim.claim_name else _PAST_ANY_LIMIT for claim in claims)


class Extras(Struct, frozen=True):
    """The host ports, volumes and required anti-affinity terms of a pod. Most pods have none of these."""

    ports: tuple[HostPort, ...] = ()
    mounted: Mounted | None = None
    terms: tuple[Term, ...] = ()


NO_EXTRAS = Extras()


def extras_of(meta: ObjectMeta, spec: PodSpec, version: KubernetesVersion) -> Extras:
    """Collect the pod's host ports, volumes and anti-affinity terms. Source: framework/types.go ``Update``."""
    anti_affinity = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    required = (anti_affinity.required if anti_affinity is not None else None) or ()
    ports = host_ports(spec, version)
    # The scheduler ignores all other kinds of volumes, such as ConfigMaps, Secrets and emptyDir.
    volumes = tuple(map(_without_template, filter(_is_relevant, spec.volumes))) if spec.volumes else ()
    if not (required or ports or volumes):
        return NO_EXTRAS
    try:
        terms = tuple(resolve_term(term, meta.namespace) for term in required)
    except ValueError:
        terms = ()  # Upstream also drops all terms if one is invalid.
    mounted = Mounted(meta.namespace, meta.name, meta.uid, volumes) if volumes else None
    return Extras(ports, mounted, terms)


def _without_template(volume: Volume) -> Volume:
    # A running pod's claims exist, so their templates are dropped to save memory.
    return volume if volume.ephemeral is None else replace(volume, ephemeral=EphemeralSource())


def _is_relevant(volume: Volume) -> bool:
    """Whether the volume has a claim, or names a disk directly."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.azure_disk, volume.cinder)
    return volume.has_claim or any(
        disk is not None for disk in (*disks, volume.iscsi, volume.rbd, volume.portworx_volume)
    )
