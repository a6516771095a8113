"""The VolumeBinding plugin: rejects nodes without access to a volume for each of the pod's claims.

Unbound claims, smallest first, each take the smallest suitable free volume. The other claims get new volumes, if the
class allows this on the node and the driver's published capacity suffices.

Source: kube-scheduler volumebinding volume_binding.go, binder.go; k8s.io/component-helpers storage/volume.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.node_selectors import values_in
from webhook.core.api.requirements import Requirement, SelectorError
from webhook.core.api.resources import ResourceList, compare_amounts, whole_units
from webhook.core.api.selectors import compile_selector, valid_selector
from webhook.core.api.storage import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
)
from webhook.core.api.types import IN, Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, NO_PROVISIONER, SELECTED_NODE
from webhook.core.budget import check_time
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.node_selection import nodes_meeting, nodes_selected
from webhook.core.scheduler.plugins.node_volume_limits import owner_fault
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, Status, StatusOfNodes, unresolvable
from webhook.core.scheduler.plugins.volumes import Storage, claim_name, missing_claim, reachable_from

VOLUME_BINDING = "VolumeBinding"
_OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity"
_OTHER_NODE_BEFORE = "node(s) had volume node affinity conflict"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
_VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


_NO_ATTRIBUTES_CLASS = (
    "unsupported volumeAttributesClassName is set on claim {} when the feature-gate VolumeAttributesClass is disabled"
)


class _ClaimError(Exception):
    """The VolumeBinding plugin's error about a claim: it cannot search for a matching volume."""


class _PodClaims(Struct, frozen=True):
    """A pod's claims, and the cluster facts for finding their volumes.

    Attributes:
        bound: The bound claims.
        waiting: The unbound claims with delayed binding.
    """

    bound: tuple[Claim, ...]
    waiting: tuple[Claim, ...]
    storage: Storage
    nodes: NodeView
    version: KubernetesVersion


def run_volume_binding(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """Run VolumeBinding. Source: volume_binding.go ``PreFilter``, ``Filter``."""
    volumes = pod.pod_spec.volumes or ()
    names = [(name, volume) for volume in volumes if (name := claim_name(pod.meta.name, volume)) is not None]
    if not names:
        return PASSES
    claims: list[Claim] = []
    for name, volume in names:
        claim = storage.claims.get(name)
        if claim is None:
            waits = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            missing = missing_claim(name) if volume.persistent_volume_claim is not None else waits
            return PluginResult(unresolvable(missing))
        fault = _claim_fault(claim)
        if not fault and volume.persistent_volume_claim is None:
            fault = owner_fault(claim, pod.meta.namespace, pod.meta.name, pod.meta.uid)
        if fault:
            return PluginResult(unresolvable(fault))
        claims.append(claim)
    if not pod.meta.namespace:  # upstream looks up such a claim under another key than its cache's
        key = f"/{names[0][0]}"
        missing = f'persistentvolumeclaims "{key}" not found'
        if not gates.FINDS_CLAIMS_BY_LISTER.holds(version):
            missing = f'could not find v1.PersistentVolumeClaim "{key}"'
        return PluginResult(Status.of_error(f'error getting PVC "{key}": {missing}'))
    return _sort_claims(claims, storage, nodes, version)


def _claim_fault(claim: Claim) -> str:
    """Return why the claim rejects the pod. Empty if it does not. Source: volume_binding.go ``podHasPVCs``."""
    if claim.status is not None and claim.status.phase == "Lost":
        volume = claim.spec.volume_name or ""
        return f'persistentvolumeclaim "{claim.meta.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.meta.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.meta.name}" is being deleted'
    return ""


def _sort_claims(
    claims: Sequence[Claim], storage: Storage, nodes: NodeView, version: KubernetesVersion
) -> PluginResult:
    """Split the pod's claims into bound claims and claims waiting for a node.

    Any other claim rejects the pod. Source: binder.go ``GetPodVolumeClaims``.
    """
    bound, waiting, immediate = [], [], False
    for claim in claims:
        if claim.bound:
            bound.append(claim)
            continue
        storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return PluginResult(Status.of_error(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'))
        if waits_for_pod(claim, storage_class):
            waiting.append(claim)
        else:
            immediate = True
    # After the loop, because upstream returns errors of later claims' classes at once.
    if immediate:
        return PluginResult(unresolvable(UNBOUND_IMMEDIATE))
    pod_claims = _PodClaims(tuple(bound), tuple(waiting), storage, nodes, version)
    return PluginResult(OK, lambda candidates: _decide(pod_claims, candidates), _nodes_of_local_volumes(pod_claims))


def waits_for_pod(claim: Claim, storage_class: StorageClass | None) -> bool:
    """Whether an unbound claim gets its volume only after its pod gets a node.

    Source: binder.go ``GetPodVolumeClaims``.
    """
    delayed = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return delayed and not claim.spec.volume_name


def _nodes_of_local_volumes(pod_claims: _PodClaims) -> frozenset[str] | None:
    """Return the nodes named by the affinity of bound volumes. None for all nodes.

    Source: binder.go ``GetEligibleNodes`` and pkg/volume/util ``GetLocalPersistentVolumeNodeNames`` of 1.31.
    """
    if not gates.LOCAL_VOLUMES_NAME_NODES.holds(pod_claims.version):
        return None
    eligible: frozenset[str] | None = None
    for claim in pod_claims.bound:
        volume = pod_claims.storage.volumes.get(claim.spec.volume_name or "")
        if volume is None:
            return None
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
        named = frozenset(name for term in terms or () for name in values_in(term.match_expressions, HOSTNAME) or ())
        if named:
            eligible = named if eligible is None else eligible & named
    return eligible


def _decide(pod_claims: _PodClaims, candidates: int) -> list[StatusOfNodes]:
    """Run the volume binding plugin's Filter on the candidate nodes.

    Returns:
        The status of each rejected node, grouped by reasons.

    Source: binder.go ``FindPodVolumes``.
    """
    conflicting, gone = _check_bound(pod_claims, candidates)
    unbindable, without_space, errors = _check_waiting(pod_claims, candidates)
    for _, failed in errors:
        candidates &= ~failed
    other_node = _OTHER_NODE if gates.VOLUME_AFFINITY_REASON.holds(pod_claims.version) else _OTHER_NODE_BEFORE
    by_reason = ((other_node, conflicting), (NONE_TO_BIND, unbindable), (NO_SPACE, without_space), (_VOLUME_GONE, gone))
    return [*errors, *_combine_reasons(by_reason, candidates)]


def _combine_reasons(by_reason: Iterable[tuple[str, int]], candidates: int) -> Iterable[StatusOfNodes]:
    """Yield each set of reasons with its nodes, in upstream's order.

    Source: binder.go ``FindPodVolumes``, ``ConflictReasons``.
    """
    parts: list[tuple[tuple[str, ...], int]] = [((), candidates)]
    for reason, failing in by_reason:
        parts = [
            (reasons, part)
            for before, all_nodes in parts
            for reasons, part in (((*before, reason), all_nodes & failing), (before, all_nodes & ~failing))
            if part
        ]
    return [(unresolvable(*reasons), part) for reasons, part in parts if reasons]


def _check_bound(pod_claims: _PodClaims, candidates: int) -> tuple[int, int]:
    """Test the candidate nodes against the pod's bound claims.

    The first failing claim decides the reason of a node.

    Returns:
        The nodes that cannot reach a claim's volume, and the nodes rejected because a claim's volume does not exist.

    Source: binder.go ``checkBoundClaims``.
    """
    conflicting = 0
    for claim in pod_claims.bound:
        volume = pod_claims.storage.volumes.get(claim.spec.volume_name or "")
        if volume is None:
            return conflicting, candidates & ~conflicting
        conflicting |= candidates & ~reachable_from(volume, pod_claims.nodes)
    return conflicting, 0


def _check_waiting(pod_claims: _PodClaims, candidates: int) -> tuple[int, int, list[StatusOfNodes]]:
    """Check the claims with delayed binding.

    A claim with an earlier selected node gets a new volume there. Any other claim may also bind a free volume.

    Returns:
        The nodes without a volume for some claim, the nodes without space, and the nodes with an error.

    Source: binder.go ``FindPodVolumes``.
    """
    selected, matching = [], []
    elsewhere = 0
    for claim in pod_claims.waiting:
        # An earlier attempt selected this node, and its volume is being provisioned.
        node = claim.annotations.get(SELECTED_NODE)
        if node is None:
            matching.append(claim)
        else:
            slot = pod_claims.nodes.slots.get(node)
            elsewhere |= candidates & ~(0 if slot is None else 1 << slot)
            selected.append(claim)
    candidates &= ~elsewhere
    if not matching:
        unprovided, without_space = _nodes_without_new_volume(selected, pod_claims, candidates)
        return elsewhere | unprovided, without_space, []
    # The smallest first, so that it does not take the only volume large enough for another claim.
    matching.sort(key=_Size)
    unbindable, without_space, errors = elsewhere, 0, []
    # Nodes with the same reachable volumes have the same result, so each group is tried once.
    for part, volumes in _group_nodes(matching, pod_claims, candidates):
        try:
            left = _unmatched(matching, pod_claims, volumes)
        except _ClaimError as error:
            errors.append((Status.of_error(str(error)), part))
        else:
            unprovided, lacking = _nodes_without_new_volume([*selected, *left], pod_claims, part)
            unbindable |= unprovided
            without_space |= lacking
    return unbindable, without_space, errors


class _Size:
    """Sorts claims by requested storage. Source: binder.go ``byPVCSize``."""

    def __init__(self, claim: Claim) -> None:
        self._requests = _requested(claim)

    def __lt__(self, other: "_Size") -> bool:
        return compare_amounts(self._requests, other._requests, STORAGE) < 0


def _requested(claim: Claim) -> ResourceList:
    return claim.spec.resources.requests if claim.spec.resources else None


def _group_nodes(
    claims: Sequence[Claim], pod_claims: _PodClaims, candidates: int
) -> Iterable[tuple[int, frozenset[str]]]:
    """Group the candidate nodes by the free volumes that they can reach."""
    free, nodes = pod_claims.storage.free, pod_claims.nodes
    everywhere: set[str] = set()
    near: dict[int, list[str]] = {}
    for volume in {free_one.meta.name: free_one for claim in claims for free_one in free[claim.meta.name]}.values():
        check_time()
        reach = reachable_from(volume, nodes)
        if reach == nodes.live:
            everywhere.add(volume.meta.name)
        else:
            for slot in node_sets.to_slots(reach & candidates):
                near.setdefault(slot, []).append(volume.meta.name)
    groups: dict[frozenset[str], list[int]] = {}
    for slot, names in near.items():
        groups.setdefault(frozenset(names) | everywhere, []).append(slot)
    rest = candidates & ~node_sets.from_slots(near.keys(), nodes.size)
    if rest:
        yield rest, frozenset(everywhere)
    for reachable, slots in groups.items():
        yield node_sets.from_slots(slots, nodes.size), reachable


def _unmatched(claims: Sequence[Claim], pod_claims: _PodClaims, reachable: frozenset[str]) -> list[Claim]:
    """List the claims without a suitable free volume. Source: binder.go ``findMatchingVolumes``."""
    chosen: set[str] = set()
    left = []
    for claim in claims:
        free = pod_claims.storage.free[claim.meta.name]
        not_chosen = [volume for volume in free if volume.meta.name not in chosen]
        volume = _best_volume(claim, not_chosen, reachable, pod_claims.version)
        if volume is None:
            left.append(claim)
        else:
            chosen.add(volume.meta.name)
    return left


def _best_volume(
    claim: Claim, free: Iterable[PersistentVolume], reachable: frozenset[str], version: KubernetesVersion
) -> PersistentVolume | None:
    """Return the volume reserved for the claim, else the smallest suitable volume. None without one.

    Source: storage/volume/pv_helpers.go ``FindMatchingVolume``.
    """
    key = f"{claim.meta.namespace}/{claim.meta.name}"
    if claim.spec.volume_attributes_class_name and not gates.MATCHES_ATTRIBUTES_CLASS.holds(version):
        raise _ClaimError(_NO_ATTRIBUTES_CLASS.format(key))
    try:
        selector = None if claim.spec.selector is None else compile_selector(claim.spec.selector)
    except SelectorError as error:
        raise _ClaimError(f"error creating internal label selector for claim: {key}: {error.text(version)}") from None
    best: PersistentVolume | None = None
    for volume in free:
        check_time()
        if not _is_bindable(claim, volume, version):
            continue
        # A reserved volume is the claim's only choice, even out of reach.
        if _is_reserved_for(claim, volume):
            return volume if volume.meta.name in reachable else None
        suits = (
            volume.status is not None
            and volume.status.phase == "Available"
            and (selector is None or selector.matches(volume.meta.labels or {}))
            and volume.meta.name in reachable
            and {*(claim.spec.access_modes or ())} <= {*(volume.spec.access_modes or ())}
        )
        if suits and (best is None or compare_amounts(volume.spec.capacity, best.spec.capacity, STORAGE) < 0):
            best = volume
    return best


def _is_bindable(claim: Claim, volume: PersistentVolume, version: KubernetesVersion) -> bool:
    """Whether the claim fits the volume, apart from labels and access modes.

    Source: storage/volume/pv_helpers.go ``FindMatchingVolume``.
    """
    spec, wanted = volume.spec, claim.spec
    return (
        (spec.claim_ref is None or _is_reserved_for(claim, volume))
        and compare_amounts(spec.capacity, _requested(claim), STORAGE) >= 0
        and (wanted.volume_mode or "Filesystem") == (spec.volume_mode or "Filesystem")
        and (
            (wanted.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
            if gates.MATCHES_ATTRIBUTES_CLASS.holds(version)
            else not spec.volume_attributes_class_name
        )
        and volume.meta.deletion_timestamp is None
    )


def _is_reserved_for(claim: Claim, volume: PersistentVolume) -> bool:
    """Whether the volume is reserved for the claim. Source: storage/volume/pv_helpers.go ``IsVolumeBoundToClaim``."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.meta.namespace, claim.meta.name):
        return False
    return reference.uid in ("", claim.meta.uid)


def _nodes_without_new_volume(claims: Sequence[Claim], pod_claims: _PodClaims, candidates: int) -> tuple[int, int]:
    """Return the nodes unable to provision some claim, and the nodes without space.

    Space means storage capacity. Each claim has a known storage class. Claims with an unknown class are handled
    elsewhere.

    Source: binder.go ``checkVolumeProvisions``.
    """
    unprovided = without_space = 0
    for claim in claims:
        storage_class = pod_claims.storage.classes[claim.storage_class]
        unprovided |= candidates & ~provisioning_nodes(storage_class, pod_claims.nodes)
        candidates &= ~unprovided
        if candidates and storage_class.meta.name in pod_claims.storage.capacities:
            capacities = pod_claims.storage.capacities[storage_class.meta.name]
            without_space |= candidates & ~nodes_with_space(_requested(claim), capacities, pod_claims.nodes)
            candidates &= ~without_space
    return unprovided, without_space


def nodes_with_space(requests: ResourceList | None, capacities: Iterable[StorageCapacity], view: NodeView) -> int:
    """Select nodes with enough driver capacity. Source: binder.go ``hasEnoughCapacity``, ``nodeHasAccess``."""
    requested = (requests or {}).get(STORAGE)
    if requested is None:
        return view.live
    size, nodes = whole_units(requested), 0
    for capacity in capacities:
        check_time()
        limit, topology = capacity.limit, capacity.node_topology
        selector = None if topology is None else valid_selector(topology)
        if selector is not None and limit is not None and whole_units(limit) >= size:
            nodes |= nodes_selected(view, selector)
    return nodes


def provisioning_nodes(storage_class: StorageClass, nodes: NodeView) -> int:
    """Select nodes on which the class can provision a volume. Source: binder.go ``checkVolumeProvisions``."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return 0
    if not storage_class.allowed_topologies:
        return nodes.live
    admitted = 0
    for term in storage_class.allowed_topologies:
        expressions = term.match_label_expressions or ()
        # Terms are alternatives. A term without conditions or values matches no node.
        if expressions and all(expression.values for expression in expressions):
            matching = nodes.live
            for expression in expressions:
                matching &= nodes_meeting(nodes, Requirement(expression.key, IN, expression.values or ()))
            admitted |= matching
    return admitted
