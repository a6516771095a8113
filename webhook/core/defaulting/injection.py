"""Choose default constraints for a pod without constraints, and write the JSON Patch.

    pod -> owner -> replicas -> override or defaults -> hard or soft -> deduced selector -> patch

As in kube-scheduler, a pod with its own constraints gets no defaults. The patch only adds fields, so it always applies.
A second pass finds the constraints and adds nothing.

Source: kube-scheduler podtopologyspread/common.go buildDefaultConstraints; controllers' labels in apps/v1, batch/v1.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.types import (
    HONOR,
    IGNORE,
    LabelSelector,
    ObjectMeta,
    PodTemplate,
    SpreadConstraint,
)
from webhook.core.api.well_known import (
    HOSTNAME,
    INJECTED_ANNOTATION,
    MIRROR_ANNOTATION,
    NAMESPACE_NAME,
    SKIP_ANNOTATION,
)
from webhook.core.api.written_selector import requirements, without_key
from webhook.core.apiserver.validation import validate_constraints
from webhook.core.context import Context
from webhook.core.defaulting.record import InjectionRecord, Operation, add_operation, annotation_patch
from webhook.core.index.owners import Awaited, controller_kind, find_owner, most_replicas, owner_selector
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import domain_count, has_karpenter
from webhook.core.policy.defaults import (
    Defaults,
    DefaultsOverride,
    configured_constraints,
    hard_or_soft,
    override_for,
)
from webhook.core.policy.options import DefaultsMode, RevisionKeys
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.plugins.default_selector import default_selector, label_selector
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.workloads.kinds import DAEMON_SET, JOB, REPLICA_SET, REVISIONED, SELECTING, group_kind
from webhook.core.yaml_text import plain


class SkipReason(StrEnum):
    """Why a pod gets no constraints."""

    OFF = "defaults-off"
    OWN_CONSTRAINTS = "own-constraints"
    OPTED_OUT = "opted-out"
    MIRROR = "mirror-pod"
    HAS_NODE = "has-node-name"
    OTHER_SCHEDULER = "other-scheduler"
    DAEMON_SET = "daemon-set"
    OTHER_OWNER = "other-owner-kind"
    OWNER_UNKNOWN = "owner-unknown"
    CLUSTER_UNKNOWN = "cluster-unknown"
    ONE_REPLICA = "one-replica"
    NO_DEFAULTS = "no-defaults"
    NO_SELECTOR = "no-selector"
    NO_ROOM = "annotations-full"
    REFUSED = "would-be-refused"
    # Reasons for a template without constraints to declare.
    CONTROLLED = "made-by-a-controller"
    SEVERAL_TEMPLATES = "several-templates"
    SERVICES_UNKNOWN = "services-unknown"
    NODES_UNKNOWN = "nodes-unknown"
    NOT_DECLARABLE = "not-declarable"


class Skip(Struct, frozen=True, gc=False):
    """The pod gets no constraints."""

    reason: SkipReason


class Injection(Struct, frozen=True, kw_only=True):
    """All constraints of the pod after injection. ``patch`` is empty unless the mode is ``inject``."""

    constraints: tuple[SpreadConstraint, ...]
    record: InjectionRecord
    patch: tuple[Operation, ...] = ()


def inject(pod: PodTemplate, namespace: str, context: Context, *, waited: bool = False) -> Injection | Skip | Awaited:
    """Choose the constraints for a new pod.

    Args:
        pod: The pod as sent, before the API server merges matchLabelKeys.
        namespace: The namespace of the request.
        context: Policy and cluster.
        waited: Never return ``Awaited``. An unknown owner is then a ``Skip``, and an unknown namespace has only the
            label with its name. If false, ``Awaited`` is returned only in modes that patch the pod, not in mode
            ``observe``.

    Source: podtopologyspread/common.go ``buildDefaultConstraints``.
    """
    waited = waited or not context.policy.defaults.injects
    result = _decide(pod, namespace, context, waited=waited)
    # The API server must not reject the pod for evenspread's constraints. Defaults are also validated in the policy.
    if isinstance(result, Injection) and validate_constraints(result.constraints, pod.labels, "", context.version):
        return Skip(SkipReason.REFUSED)
    return result


def _decide(pod: PodTemplate, namespace: str, context: Context, *, waited: bool) -> Injection | Skip | Awaited:
    policy, index, own = context.policy, context.index, pod.pod_spec.constraints
    fills = policy.defaults.fill_null_selector and any(map(_fillable, own))
    excluded = skip_reason(pod, policy, own=bool(own) and not fills)
    if excluded is not None or index is None:
        return Skip(excluded or SkipReason.CLUSTER_UNKNOWN)
    owner = find_owner(pod, namespace, index, waited=waited)
    if not waited and _awaits_namespace(namespace, policy.defaults, index):
        owner = Awaited(api_version="v1", kind="Namespace", namespace="", name=namespace)
    if isinstance(owner, Awaited):
        return Skip(SkipReason.OWNER_UNKNOWN) if waited else owner
    replicas = None if owner is None else most_replicas(owner, index)
    deduced = default_selector(pod.meta, namespace, index)  # as the scheduler does
    selector = owner_selector(pod, owner) if deduced.empty else label_selector(deduced)
    if owner is not None and opted_out(owner.meta):
        return Skip(SkipReason.OPTED_OUT)
    if selector is None or (replicas is not None and replicas <= 1):
        return Skip(SkipReason.NO_SELECTOR if selector is None else SkipReason.ONE_REPLICA)
    # As in kube-scheduler, a pod with its own constraint gets no defaults. Only missing selectors are filled.
    if own:
        return _fill_selectors(pod, policy.defaults, selector)
    labels = index.namespaces.labels(namespace) or {NAMESPACE_NAME: namespace}
    override = override_for(policy.defaults, labels, pod.labels, replicas)
    return _defaults(pod, selector, override, policy, index)


def skip_reason(pod: PodTemplate, policy: Policy, *, own: bool = False) -> SkipReason | None:
    """Return why `injection` or `fallback` does not patch the pod, or None.

    With ``own``, the pod's own constraints are a reason.
    """
    spec, annotations, defaults = pod.pod_spec, pod.meta.annotations or {}, policy.defaults
    kind = controller_kind(pod)
    known = {None, JOB, DAEMON_SET, *SELECTING, *(group_kind(*owner) for owner in defaults.owners)}
    # Users see the first reason that holds, so their own choices come before unknown facts.
    checks = (
        (defaults.mode == DefaultsMode.OFF, SkipReason.OFF),
        (opted_out(pod.meta), SkipReason.OPTED_OUT),
        (MIRROR_ANNOTATION in annotations, SkipReason.MIRROR),
        (bool(spec.node_name), SkipReason.HAS_NODE),
        (bool(spec.scheduler_name) and spec.scheduler_name not in policy.scheduler_names, SkipReason.OTHER_SCHEDULER),
        (own, SkipReason.OWN_CONSTRAINTS),
        (kind == DAEMON_SET, SkipReason.DAEMON_SET),
        (kind not in known, SkipReason.OTHER_OWNER),
    )
    return next((reason for holds, reason in checks if holds), None)


def opted_out(meta: ObjectMeta) -> bool:
    """Whether the author opted out of injection."""
    return (meta.annotations or {}).get(SKIP_ANNOTATION, "false") != "false"


def _awaits_namespace(namespace: str, defaults: Defaults, index: ReadOnlyIndex) -> bool:
    """Whether to wait for the namespace: it is unknown, and its labels could select an override."""
    return index.namespaces.labels(namespace) is None and any(
        requirement.key != NAMESPACE_NAME
        for override in defaults.overrides
        for requirement in override.namespace_selector.requirements
    )


def _fillable(constraint: SpreadConstraint) -> bool:
    # An entry without a topology key may be null, and JSON Patch cannot add to null. kube-apiserver rejects it anyway.
    return constraint.selector is None and bool(constraint.topology_key)


def _fill_selectors(pod: PodTemplate, defaults: Defaults, selector: LabelSelector) -> Injection | Skip:
    constraints, filled = list(pod.pod_spec.constraints), []
    operations = []
    for number, own in enumerate(constraints):
        if not _fillable(own):
            continue
        wanted, _ = _split_selector(selector, own.match_label_keys or (), pod.labels)
        constraints[number] = replace(own, label_selector=wanted)
        filled.append(number)
        operations.append(add_operation(f"/spec/topologySpreadConstraints/{number}/labelSelector", plain(wanted)))
    record = InjectionRecord(revision=revision(defaults), filled=tuple(filled))
    return _with_record(pod, defaults, Injection(constraints=tuple(constraints), record=record), operations)


def _defaults(
    pod: PodTemplate, selector: LabelSelector, override: DefaultsOverride | None, policy: Policy, index: ReadOnlyIndex
) -> Injection | Skip:
    defaults = policy.defaults
    # Karpenter counts a global minimum of 0 for hostname, so it would add a node for each pod.
    adds_nodes = not defaults.accept_node_growth and has_karpenter(index.nodes.view())

    def is_hard(domains: int, constraint: SpreadConstraint) -> bool:
        return _has_domains(domains, constraint, pod, policy, index)

    constraints = tuple(
        _complete(constraint, selector, pod, defaults)
        for constraint in hard_or_soft(configured_constraints(defaults, override), is_hard)
        if not (adds_nodes and constraint.topology_key == HOSTNAME)
    )
    if not constraints:
        return Skip(SkipReason.NO_DEFAULTS)
    name = None if override is None else override.name
    record = InjectionRecord(revision=revision(defaults), override=name, constraints=constraints)
    operation = add_operation("/spec/topologySpreadConstraints", plain(constraints))
    if pod.spec is None:  # JSON Patch needs an existing parent
        operation = add_operation("/spec", {"topologySpreadConstraints": plain(constraints)})
    return _with_record(pod, defaults, Injection(constraints=constraints, record=record), [operation])


def _has_domains(
    wanted: int, constraint: SpreadConstraint, pod: PodTemplate, policy: Policy, index: ReadOnlyIndex
) -> bool:
    """Whether at least ``wanted`` domains are eligible for this pod.

    The constraint's node policies decide about eligible domains. Domains listed in the configuration count even without
    nodes. For a pod that selects nodes, they count only with nodeAffinityPolicy Ignore, because the labels of their
    future nodes are unknown.
    """
    key, spec, view = constraint.topology_key or "", pod.pod_spec, index.nodes.view()
    nodes = tolerated_nodes(view, spec.tolerations) if constraint.node_taints_policy == HONOR else view.live
    selects_nodes = bool(spec.node_selector or (spec.affinity and spec.affinity.node_affinity))
    if not selects_nodes or constraint.node_affinity_policy == IGNORE:
        return domain_count(policy, view, key, nodes) >= wanted
    nodes &= usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
    return view.column(key).domain_count(nodes) >= wanted


def _complete(
    constraint: SpreadConstraint, selector: LabelSelector, pod: PodTemplate, defaults: Defaults
) -> SpreadConstraint:
    keys: dict[str, None] = {}
    if defaults.match_label_keys == RevisionKeys.AUTO:
        keys = dict.fromkeys(constraint.match_label_keys or ())
        if controller_kind(pod) == REPLICA_SET:
            keys |= dict.fromkeys([label for label in REVISIONED.values() if label in pod.labels][:1])
    rest, kept = _split_selector(selector, tuple(keys), pod.labels)
    return replace(constraint, label_selector=rest, match_label_keys=kept or None)


def _split_selector(
    selector: LabelSelector, keys: tuple[str, ...], labels: Mapping[str, str]
) -> tuple[LabelSelector, tuple[str, ...]]:
    """Split a selector into a selector and matchLabelKeys that together match the same pods.

    kube-apiserver rejects a key in both. A key stays in the selector if the pod's own value would match other pods, or
    if the selector would become empty.
    """
    kept = []
    for key in keys:
        rest = without_key(selector, key)
        if rest == selector:
            kept.append(key)
        elif rest != LabelSelector() and key in labels:
            of_key = (requirement for requirement in requirements(selector) if requirement.key == key)
            if all(requirement.matches({key: labels[key]}) for requirement in of_key):
                kept.append(key)
                selector = rest
    return selector, tuple(kept)


def revision(defaults: Defaults) -> str:
    """Return a short hash of the defaults."""
    return hashlib.blake2b(msgspec.json.encode(defaults, order="deterministic"), digest_size=4).hexdigest()


def _with_record(
    pod: PodTemplate, defaults: Defaults, injection: Injection, operations: list[Operation]
) -> Injection | Skip:
    noted = annotation_patch(pod.meta.annotations, INJECTED_ANNOTATION, msgspec.json.encode(injection.record).decode())
    if noted is None:
        return Skip(SkipReason.NO_ROOM)
    if not defaults.injects:
        return injection
    return replace(injection, patch=(*operations, noted))
