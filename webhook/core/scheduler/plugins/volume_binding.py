"""The VolumeBinding plugin: bound claims need their volume on the node, others a free or a provisioned volume.

Unbound claims, smallest first, each take the smallest suitable free volume; for the rest, volumes are provisioned where
the class allows it and the driver, if it publishes that, has capacity left.

Source: kube-scheduler volumebinding volume_binding.go, binder.go; k8s.io/component-helpers storage/volume.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import ResourceList, compare_amounts, whole_units
from webhook.core.api.selectors import IN, Requirement, SelectorError, compile_selector, valid_selector
from webhook.core.api.storage import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
)
from webhook.core.api.types import NodeSelectorTerm, Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, NO_PROVISIONER, SELECTED_NODE
from webhook.core.budget import check_time
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.node_selection import nodes_meeting, nodes_selected
from webhook.core.scheduler.plugins.node_volume_limits import owner_fault
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, StatusOfNodes, failure, unresolvable
from webhook.core.scheduler.plugins.volumes import Storage, claim_name, missing_claim, reachable_from

VOLUME_BINDING = "VolumeBinding"
OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity"
_OTHER_NODE_BEFORE = "node(s) had volume node affinity conflict"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


_NO_ATTRIBUTES_CLASS = (
    "unsupported volumeAttributesClassName is set on claim {} when the feature-gate VolumeAttributesClass is disabled"
)


class _ClaimError(Exception):
    """A claim for which no volume can be looked for; the text is what the plugin then says."""


class _Question(Struct, frozen=True):
    """The pod's claims, bound ones and those that wait for the pod, with what is needed to find volumes."""

    bound: tuple[Claim, ...]
    waiting: tuple[Claim, ...]
    storage: Storage
    nodes: NodeView
    version: KubernetesVersion


def run_volume_binding(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """The plugin's result. Source: volume_binding.go ``PreFilter``, ``Filter``."""
    volumes = pod.pod_spec.volumes or ()
    names = [(name, volume) for volume in volumes if (name := claim_name(pod.meta.name, volume)) is not None]
    if not names:
        return PASSES
    claims: list[Claim] = []
    for name, volume in names:
        claim = storage.claims.get(name)
        if claim is None:
            waits = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return PluginResult(unresolvable(missing_claim(name) if volume.persistent_volume_claim is not None else waits))
        fault = _claim_fault(claim)
        if not fault and volume.persistent_volume_claim is None:
            fault = owner_fault(claim, pod.meta.namespace, pod.meta.name, pod.meta.uid)
        if fault:
            return PluginResult(unresolvable(fault))
        claims.append(claim)
    if not pod.meta.namespace:  # upstream looks such claims up under another key than its cache stores them
        key = f"/{names[0][0]}"
        missing = f'persistentvolumeclaims "{key}" not found'
        if not gates.FINDS_CLAIMS_BY_LISTER.holds(version):
            missing = f'could not find v1.PersistentVolumeClaim "{key}"'
        return PluginResult(failure(f'error getting PVC "{key}": {missing}'))
    return _sorted_out(claims, storage, nodes, version)


def _claim_fault(claim: Claim) -> str:
    """Why a claim rejects the pod; "" if it does not. Source: volume_binding.go ``podHasPVCs``."""
    if claim.status is not None and claim.status.phase == "Lost":
        volume = claim.spec.volume_name or ""
        return f'persistentvolumeclaim "{claim.meta.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.meta.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.meta.name}" is being deleted'
    return ""


def _sorted_out(claims: Sequence[Claim], storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """Sort claims into bound ones and those that wait for the pod; an unbound one that should not wait rejects it.

    Source: binder.go ``GetPodVolumeClaims``.
    """
    bound, waiting, immediate = [], [], False
    for claim in claims:
        if claim.bound:
            bound.append(claim)
            continue
        storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return PluginResult(failure(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'))
        delayed = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        if delayed and not claim.spec.volume_name:
            waiting.append(claim)
        else:
            immediate = True
    # Only after all claims: a fault of a later claim's class comes first, as upstream returns it at once.
    if immediate:
        return PluginResult(unresolvable(UNBOUND_IMMEDIATE))
    question = _Question(tuple(bound), tuple(waiting), storage, nodes, version)
    return PluginResult(OK, lambda asked: _decide(question, asked), _nodes_of_local_volumes(question))


def _nodes_of_local_volumes(question: _Question) -> frozenset[str] | None:
    """The nodes that the affinity of bound volumes names; None where none does, or one of them is gone.

    Source: binder.go ``GetEligibleNodes`` and pkg/volume/util ``GetLocalPersistentVolumeNodeNames`` of 1.31.
    """
    if not gates.LOCAL_VOLUMES_NAME_NODES.holds(question.version):
        return None
    eligible: frozenset[str] | None = None
    for claim in question.bound:
        volume = question.storage.volumes.get(claim.spec.volume_name or "")
        if volume is None:
            return None
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
        named = frozenset(name for term in terms or () for name in _named_hosts(term))
        if named:
            eligible = named if eligible is None else eligible & named
    return eligible


def _named_hosts(term: NodeSelectorTerm) -> frozenset[str]:
    hosts = [
        frozenset(each.values or ())
        for each in term.match_expressions or ()
        if (each.key, each.operator) == (HOSTNAME, IN)
    ]
    return frozenset.intersection(*hosts) if hosts else frozenset()


def _decide(question: _Question, asked: int) -> list[StatusOfNodes]:
    """The plugin's Filter. Source: binder.go ``FindPodVolumes``."""
    conflicting, gone = _check_bound(question, asked)
    unbindable, without_space, errors = _check_waiting(question, asked)
    for _, failed in errors:
        asked &= ~failed
    other_node = OTHER_NODE if gates.VOLUME_AFFINITY_REASON.holds(question.version) else _OTHER_NODE_BEFORE
    by_reason = ((other_node, conflicting), (NONE_TO_BIND, unbindable), (NO_SPACE, without_space), (VOLUME_GONE, gone))
    return [*errors, *_combined(by_reason, asked)]


def _combined(by_reason: Iterable[tuple[str, int]], asked: int) -> Iterable[StatusOfNodes]:
    """Each combination of reasons with its nodes; the reasons are in upstream's order.

    Source: binder.go ``FindPodVolumes``, ``ConflictReasons``.
    """
    parts: list[tuple[tuple[str, ...], int]] = [((), asked)]
    for reason, failing in by_reason:
        parts = [
            (reasons, part)
            for before, all_nodes in parts
            for reasons, part in (((*before, reason), all_nodes & failing), (before, all_nodes & ~failing))
            if part
        ]
    return [(unresolvable(*reasons), part) for reasons, part in parts if reasons]


def _check_bound(question: _Question, asked: int) -> tuple[int, int]:
    """Bound claims. On each node the first claim that fails decides. Source: binder.go ``checkBoundClaims``.

    Shape: the nodes that a volume cannot be reached from, and those for which one does not exist any more.
    """
    conflicting = 0
    for claim in question.bound:
        volume = question.storage.volumes.get(claim.spec.volume_name or "")
        if volume is None:
            return conflicting, asked & ~conflicting
        conflicting |= asked & ~reachable_from(volume, question.nodes)
    return conflicting, 0


def _check_waiting(question: _Question, asked: int) -> tuple[int, int, list[StatusOfNodes]]:
    """Claims that wait. If their node was selected earlier, they are provisioned there; else they may bind a volume.

    Shape: the nodes where one of them gets no volume, those where one finds no space, and those where nothing can be
    told.
    Source: binder.go ``FindPodVolumes``.
    """
    selected, matching = [], []
    elsewhere = 0
    for claim in question.waiting:
        # An earlier attempt chose this node, and the volume is being made there.
        node = claim.annotations.get(SELECTED_NODE)
        if node is None:
            matching.append(claim)
        else:
            slot = question.nodes.slots.get(node)
            elsewhere |= asked & ~(0 if slot is None else 1 << slot)
            selected.append(claim)
    asked &= ~elsewhere
    if not matching:
        unprovided, without_space = _unprovided(selected, question, asked)
        return elsewhere | unprovided, without_space, []
    # The smallest first, so that it does not take the one volume that is large enough for another claim.
    matching.sort(key=_Size)
    unbindable, without_space, errors = elsewhere, 0, []
    # Nodes that reach the same volumes have the same answer, so each group of them is tried once.
    for part, volumes in _parts(matching, question, asked):
        try:
            left = _unmatched(matching, question, volumes)
        except _ClaimError as error:
            errors.append((failure(str(error)), part))
        else:
            unprovided, lacking = _unprovided([*selected, *left], question, part)
            unbindable |= unprovided
            without_space |= lacking
    return unbindable, without_space, errors


class _Size:
    """Orders claims by the storage that they request. Source: binder.go ``byPVCSize``."""

    def __init__(self, claim: Claim) -> None:
        self._requests = _requested(claim)

    def __lt__(self, other: "_Size") -> bool:
        return compare_amounts(self._requests, other._requests, STORAGE) < 0


def _requested(claim: Claim) -> ResourceList:
    return claim.spec.resources.requests if claim.spec.resources else None


def _parts(claims: Sequence[Claim], question: _Question, asked: int) -> Iterable[tuple[int, frozenset[str]]]:
    """The asked nodes, grouped by the free volumes that they can use."""
    free, nodes = question.storage.free, question.nodes
    everywhere: set[str] = set()
    near: dict[int, list[str]] = {}
    for volume in {each.meta.name: each for claim in claims for each in free[claim.meta.name]}.values():
        check_time()
        reach = reachable_from(volume, nodes)
        if reach == nodes.live:
            everywhere.add(volume.meta.name)
        else:
            for slot in node_sets.to_slots(reach & asked):
                near.setdefault(slot, []).append(volume.meta.name)
    groups: dict[frozenset[str], list[int]] = {}
    for slot, names in near.items():
        groups.setdefault(frozenset(names) | everywhere, []).append(slot)
    rest = asked & ~node_sets.from_slots(near.keys(), nodes.size)
    if rest:
        yield rest, frozenset(everywhere)
    for reachable, slots in groups.items():
        yield node_sets.from_slots(slots, nodes.size), reachable


def _unmatched(claims: Sequence[Claim], question: _Question, reachable: frozenset[str]) -> list[Claim]:
    """The claims without a suitable free volume. Source: binder.go ``findMatchingVolumes``."""
    chosen: set[str] = set()
    left = []
    for claim in claims:
        free = question.storage.free[claim.meta.name]
        not_chosen = [volume for volume in free if volume.meta.name not in chosen]
        volume = _best_volume(claim, not_chosen, reachable, question.version)
        if volume is None:
            left.append(claim)
        else:
            chosen.add(volume.meta.name)
    return left


def _best_volume(
    claim: Claim, free: Iterable[PersistentVolume], reachable: frozenset[str], version: KubernetesVersion
) -> PersistentVolume | None:
    """The volume reserved for the claim, else the smallest suitable one.

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
        if not _comparable(claim, volume, version):
            continue
        # A volume that somebody reserved for the claim is the only one for it: out of reach, there is none.
        if _made_for(claim, volume):
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


def _comparable(claim: Claim, volume: PersistentVolume, version: KubernetesVersion) -> bool:
    """Whether the claim may bind the volume, apart from labels and access modes.

    Source: storage/volume/pv_helpers.go ``FindMatchingVolume``.
    """
    spec, wanted = volume.spec, claim.spec
    return (
        (spec.claim_ref is None or _made_for(claim, volume))
        and compare_amounts(spec.capacity, _requested(claim), STORAGE) >= 0
        and (wanted.volume_mode or "Filesystem") == (spec.volume_mode or "Filesystem")
        and (
            (wanted.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
            if gates.MATCHES_ATTRIBUTES_CLASS.holds(version)
            else not spec.volume_attributes_class_name
        )
        and volume.meta.deletion_timestamp is None
    )


def _made_for(claim: Claim, volume: PersistentVolume) -> bool:
    """Whether the volume is reserved for the claim. Source: storage/volume/pv_helpers.go ``IsVolumeBoundToClaim``."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.meta.namespace, claim.meta.name):
        return False
    return reference.uid in ("", claim.meta.uid)


def _unprovided(claims: Sequence[Claim], question: _Question, asked: int) -> tuple[int, int]:
    """The nodes where one of the claims cannot be provisioned, and those where the first that could finds no space.

    Shape: each claim has a known class, or it would not wait.
    Source: binder.go ``checkVolumeProvisions``.
    """
    unprovided = without_space = 0
    for claim in claims:
        storage_class = question.storage.classes[claim.storage_class]
        unprovided |= asked & ~provisioning_nodes(storage_class, question.nodes)
        asked &= ~unprovided
        if asked and storage_class.meta.name in question.storage.capacities:
            capacities = question.storage.capacities[storage_class.meta.name]
            without_space |= asked & ~nodes_with_space(_requested(claim), capacities, question.nodes)
            asked &= ~without_space
    return unprovided, without_space


def nodes_with_space(requests: ResourceList | None, capacities: Iterable[StorageCapacity], view: NodeView) -> int:
    """The nodes from which the driver has capacity for a claim with these requests.

    Source: binder.go ``hasEnoughCapacity``, ``nodeHasAccess``.
    """
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
    """The nodes where a volume of the class can be provisioned. Source: binder.go ``checkVolumeProvisions``."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return 0
    if not storage_class.allowed_topologies:
        return nodes.live
    admitted = 0
    for term in storage_class.allowed_topologies:
        expressions = term.match_label_expressions or ()
        # Terms are alternatives, and one that asks nothing, or for no value, matches no node.
        if expressions and all(each.values for each in expressions):
            matching = nodes.live
            for each in expressions:
                matching &= nodes_meeting(nodes, Requirement(each.key, IN, each.values or ()))
            admitted |= matching
    return admitted
