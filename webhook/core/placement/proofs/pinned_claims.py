"""Find the nodes where pods can use their volumes: the existing ones of a StatefulSet, and new ones."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.storage import READ_WRITE_ONCE_POD, WAIT_FOR_FIRST_CONSUMER, Claim, StorageClass
from webhook.core.api.types import ClaimSpec, named_claims
from webhook.core.api.well_known import NO_PROVISIONER, SELECTED_NODE
from webhook.core.index.lost_nodes import keeps_name
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.node_volume_limits import (
    driver_of_class,
    driver_of_volume,
    drivers_of_own_volumes,
    free_attachments,
)
from webhook.core.scheduler.plugins.volume_binding import nodes_with_space, provisioning_nodes
from webhook.core.scheduler.plugins.volume_zone import usable_from
from webhook.core.scheduler.problem import Problem
from webhook.core.workloads.workload import ClaimTemplates

# The pods of a larger StatefulSet are not looked up one by one.
_MOST = 256
_NO_CLAIMS = ClaimTemplates(())
_UNKNOWN_DRIVER = "*"

Needs = tuple[int | None, tuple[str, ...]]


class Ordinal(Struct, frozen=True, kw_only=True):
    """One pod of a StatefulSet.

    Attributes:
        number: The ordinal.
        nodes: The nodes where all of its volumes are usable. None for every node.
        runs: Whether the pod runs and stays. A terminating pod counts only on an unreachable node, because its
            controller replaces it elsewhere.
        likely: Whether no known fact makes the pod's claims unusable.
        certain: Whether its claims are known to be usable on these nodes.
        drivers: The CSI driver of each volume that can count for an attach limit. "*" for an unknown driver.
    """

    number: int
    nodes: int | None
    runs: bool
    likely: bool
    certain: bool
    drivers: tuple[str, ...]

    @property
    def needs(self) -> Needs:
        """The pod's ``nodes`` and ``drivers``."""
        return self.nodes, self.drivers


class TemplateVolumes(Struct, frozen=True):
    """What the volumes in a pod template mean for several new pods.

    Attributes:
        drivers: The CSI driver of each ephemeral volume, except volumes without attach limits.
        certain: Whether all pods can get ephemeral volumes on the nodes of their scheduling problem.
        for_one_pod: Whether only one pod can use some claim (ReadWriteOncePod).
        first_decides: Whether the first pod decides where all others can use some claim.
    """

    drivers: tuple[str, ...] = ()
    certain: bool = True
    for_one_pod: bool = False
    first_decides: bool = False

    def are_certain(self, pods: int) -> bool:
        """Whether it is known on which nodes this number of pods can use the volumes."""
        return self.certain and (pods <= 1 or self.for_one_pod or not self.first_decides)


_NO_VOLUMES = TemplateVolumes()


class PodsToPlace(Struct, frozen=True):
    """The pods to place. Volumes pin some of them to nodes.

    Attributes:
        pinned: The number of pinned pods by their set of usable nodes. A node is usable if all volumes of the pod are
            usable there.
        free: The number of pods without pins.
    """

    pinned: Mapping[int, int]
    free: int

    @property
    def pods(self) -> int:
        return sum(self.pinned.values()) + self.free


class Ordinals(Struct, frozen=True):
    """The pods of a StatefulSet, the lowest ordinal first.

    ``limits`` is the number of new pods on a node before the node's attach limit of volumes is reached, by node slot.
    """

    pods: tuple[Ordinal, ...]
    limits: Mapping[int, int]

    def to_place(self, replicas: int, *, anew: bool = False) -> PodsToPlace:
        """The missing pods among the first ``replicas`` pods. With ``anew``, all of these pods."""
        reachable = [pod.nodes for pod in self.pods[:replicas] if anew or not pod.runs]
        return PodsToPlace(Counter(nodes for nodes in reachable if nodes is not None), reachable.count(None))

    def are_certain(self, replicas: int) -> bool:
        """Whether the claims of the first ``replicas`` pods are known to be usable."""
        return replicas <= len(self.pods) and all(pod.certain for pod in self.pods[:replicas])

    def are_likely(self, replicas: int) -> bool:
        """Whether no claim of the first ``replicas`` pods is known to be unusable."""
        return replicas <= len(self.pods) and all(pod.likely for pod in self.pods[:replicas])


def template_volumes(problem: Problem, index: ReadOnlyIndex) -> TemplateVolumes:
    """Return what the volumes of a pod mean for further pods of the same template.

    Args:
        problem: The pod's scheduling problem.
        index: The cluster.
    """
    storage, named = problem.storage, {*named_claims(problem.pod.pod_spec.volumes)}
    own = [claim for name, claim in storage.claims.items() if name not in named]
    shared = [claim for name, claim in storage.claims.items() if name in named]
    return TemplateVolumes(
        drivers=drivers_of_own_volumes(problem.pod, storage),
        certain=all(
            _nodes_for_new_volume(index, claim, storage.classes.get(claim.storage_class)) is not None for claim in own
        ),
        for_one_pod=any(READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()) for claim in shared),
        first_decides=not all(claim.bound or SELECTED_NODE in claim.annotations for claim in shared),
    )


def volumes_are_unknown(problem: Problem, pods: int, index: ReadOnlyIndex, *, running: bool) -> bool:
    """Whether it is unknown which nodes the volumes of these equal pods leave to each pod.

    With ``running``, the pods replace running pods, and the attachments freed by them count as unknown.
    """
    volumes = template_volumes(problem, index)
    if volumes.for_one_pod or not volumes.are_certain(pods):
        return True
    return running and bool(attachable_pods(Counter(volumes.drivers), pods, index))


def attachable_pods(drivers: Mapping[str, int], pods: int, index: ReadOnlyIndex) -> dict[int, int]:
    """Return how many new pods fit below the attach limits of a node, by node slot.

    Nodes with enough for ``pods`` more pods may be missing. ``drivers`` has the number of volumes of each pod.
    """
    unknown, most = drivers.get(_UNKNOWN_DRIVER, 0), dict[int, int]()
    every = {driver: 0 for each in index.volumes.attach_limits().values() for driver in each} if unknown else {}
    for driver, known in {**every, **drivers}.items():
        volumes = known + unknown
        for slot, free in free_attachments(driver, volumes * pods, index).items():
            most[slot] = min(free // volumes, most.get(slot, pods))
    return most


def ordinals(  # noqa: PLR0913 each a fact of its own
    index: ReadOnlyIndex,
    namespace: str,
    name: str,
    claims: ClaimTemplates | None,
    numbers: range,
    *,
    volumes: TemplateVolumes = _NO_VOLUMES,
) -> Ordinals | None:
    """Read a StatefulSet's pods with the ordinals in ``numbers``.

    Find the nodes usable with the volume claims of each pod. ``volumes`` are those of the pod template itself. None for
    too many pods.
    """
    if len(numbers) > _MOST:
        return None
    pods = [_ordinal(index, namespace, name, number, claims or _NO_CLAIMS) for number in numbers]
    if volumes != _NO_VOLUMES:
        certain = volumes.are_certain(len(pods)) and not volumes.for_one_pod
        pods = [replace(pod, certain=pod.certain and certain) for pod in pods]
    most = Counter[str]()
    for pod in pods:
        most |= Counter(pod.drivers + volumes.drivers)
    # Assume the highest number of volumes for all pods. In the worst case a fix is missing.
    return Ordinals(tuple(pods), attachable_pods(most, len(pods), index))


def _ordinal(index: ReadOnlyIndex, namespace: str, owner: str, ordinal: int, claims: ClaimTemplates) -> Ordinal:
    pod, view = f"{owner}-{ordinal}", index.nodes.view()
    nodes, certain, likely, drivers = view.live, True, True, list[str]()
    for number, (name, named_class) in enumerate(zip(claims.names, claims.classes, strict=True)):
        claim = index.volumes.claim(namespace, f"{name}-{pod}")
        volume = index.volumes.volume(claim.spec.volume_name or "") if claim is not None and claim.bound else None
        if volume is not None:
            nodes &= usable_from(volume, view)
            sure = hoped = claim is not None and _is_sound(claim)
            drivers.append(driver_of_volume(volume, migrates=True)[0])
        else:
            written = ClaimSpec(resources=claims.requests[number] if claims.requests else None)
            storage_class = _class_of(index, claim, named_class)
            is_usable = claim is None or _is_sound(claim)
            made = _nodes_for_new_volume(index, claim or Claim(spec=written), storage_class) if is_usable else None
            drivers.append(driver_of_class(storage_class, migrates=True) if storage_class else _UNKNOWN_DRIVER)
            nodes &= view.live if made is None else made
            sure = made is not None
            hoped = sure or (claim is None and not named_class)
        certain, likely = certain and sure, likely and hoped
    return Ordinal(
        number=ordinal,
        nodes=None if nodes == view.live else nodes,
        runs=keeps_name(index, namespace, pod),
        likely=likely,
        certain=certain,
        drivers=tuple(filter(None, drivers)),
    )


def _is_sound(claim: Claim) -> bool:
    is_lost = claim.status is not None and claim.status.phase == "Lost"
    alone = READ_WRITE_ONCE_POD in (claim.spec.access_modes or ())
    return not (is_lost or alone or claim.meta.deletion_timestamp)


def _class_of(index: ReadOnlyIndex, claim: Claim | None, named_class: str) -> StorageClass | None:
    name = named_class if claim is None else claim.storage_class
    return index.volumes.storage_class(name) if name or claim is not None else index.volumes.default_class()


def _nodes_for_new_volume(index: ReadOnlyIndex, claim: Claim, storage_class: StorageClass | None) -> int | None:
    """The nodes able to provision the volume of an unbound claim. None if unknown.

    Source: volumebinding/binder.go ``FindPodVolumes``, ``checkVolumeProvisions``.
    """
    if claim.spec.volume_name or SELECTED_NODE in claim.annotations:
        return None
    view = index.nodes.view()
    if (
        storage_class is None
        or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER
        or storage_class.provisioner == NO_PROVISIONER
    ):
        return None
    nodes, class_name = provisioning_nodes(storage_class, view), storage_class.meta.name
    driver = index.volumes.drivers().get(storage_class.provisioner)
    if driver is not None and driver.spec.storage_capacity:
        requests = claim.spec.resources.requests if claim.spec.resources else None
        nodes &= nodes_with_space(requests, index.volumes.capacities(class_name), view)
    # A free volume may serve other nodes too, and any pod may take it.
    free = index.volumes.candidates(replace(claim, spec=replace(claim.spec, storage_class_name=class_name)))
    return None if any(usable_from(volume, view) & ~nodes for volume in free) else nodes
