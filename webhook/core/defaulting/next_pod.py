"""From a pod template to the next pod that its controller makes, as the scheduler would get it.

    Workload -> made_from -> Made       labels, name and owners as the controller gives them
    pod      -> posted    -> Posted     with the constraints that this webhook injects, and what the API server fills in

What other admission plugins do (LimitRange, RuntimeClass, PriorityClass, other webhooks) is not done here.
"""

from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, ObjectMeta, Pod, PodTemplate
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import CONTROLLER_REVISION_HASH, DEFAULT_NAMESPACE
from webhook.core.api.written_selector import selected_keys
from webhook.core.apiserver.pod_defaults import as_created
from webhook.core.defaulting.injection import Injection, Skip, inject
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Owner
from webhook.core.index.owners import reference_to
from webhook.core.policy.policy import Policy
from webhook.core.workloads.controller_labels import CRON_JOB, NOT_YET, STATEFUL_SET, labels_given, ordinal_labels
from webhook.core.workloads.kinds import REPLICA_SET, REVISIONED, group_kind
from webhook.core.workloads.workload import Template, Workload


class NextPod(Struct, frozen=True, kw_only=True):
    """A pod as its controller sends it.

    Shape: ``owners`` are controllers that have to exist for it, and may not yet.
    """

    template: PodTemplate
    owners: tuple[Owner, ...] = ()


class AdmittedPod(Struct, frozen=True):
    """A pod as the scheduler gets it; ``injected`` is why nothing was injected where nothing was."""

    pod: Pod
    injected: Injection | Skip | None


def after_admission(  # noqa: PLR0913 each is a fact of its own
    template: PodTemplate,
    namespace: str,
    policy: Policy,
    index: ClusterIndex,
    version: KubernetesVersion,
    *,
    injects: bool = True,
) -> AdmittedPod:
    """The pod after a create request that passes this webhook.

    Shape: ``injected`` is None where the configuration injects nothing. Without ``injects`` the webhook has had its
    turn already.
    """
    meta, spec, injected = template.meta, template.pod_spec, None
    if injects and policy.defaults.mode == "inject":
        found = inject(template, namespace, policy, index, version, waited=True)
        injected = found if isinstance(found, Injection | Skip) else None
        if isinstance(found, Injection):
            spec = replace(spec, topology_spread_constraints=found.constraints)
    status = template.status if isinstance(template, Pod) else None
    pod = Pod(metadata=replace(meta, namespace=meta.namespace or namespace), spec=spec, status=status)
    return AdmittedPod(as_created(pod, version), injected)


def next_pod(
    workload: Workload, template: Template, namespace: str, index: ClusterIndex, *, applied: bool = False
) -> NextPod:
    """The next pod of one template.

    Shape: ``applied`` says that the workload stands in the cluster as it is here; a manifest may be a new revision of
    it, and is taken for one. A Pod is its own template.
    """
    if workload.kind == "Pod":
        return NextPod(template=template.template)
    own = replace(
        workload.meta, namespace=namespace, uid=workload.meta.uid or NOT_YET, name=workload.meta.name or NOT_YET
    )
    above = Owner(
        api_version=workload.api_version,
        kind=workload.kind,
        meta=own,
        replicas=workload.replicas,
        selector=workload.selector,
    )
    kind = (workload.group, workload.kind)
    if kind in REVISIONED:
        made = _in_replica_set(above, template, index, REVISIONED[kind], applied=applied)
    elif kind == STATEFUL_SET:
        made = _ordinal(above, index, workload.first_ordinal)
    elif kind == CRON_JOB:
        made = _in_job(above)
    else:
        made = _Child(f"{own.name}-{NOT_YET}", above)
    written = template.template
    meta = ObjectMeta(
        name=made.name,
        namespace=namespace,
        labels=_labels(workload, written, made, applied=applied) or None,
        annotations=written.meta.annotations,
        owner_references=(reference_to(made.owner),),
    )
    owners = (above,) if made.owner is above else (above, made.owner)
    return NextPod(template=replace(written, metadata=meta), owners=owners)


class _Child(NamedTuple):
    """What a controller gives a pod; ``owner`` is the direct one. Labels that all pods get are not among ``labels``."""

    name: str
    owner: Owner
    labels: Mapping[str, str] = {}


def _labels(workload: Workload, written: PodTemplate, made: _Child, *, applied: bool) -> Mapping[str, str]:
    labels = {**labels_given(workload, written), **made.labels}
    # Which revision of what stands in the cluster the next pod has is not known here; it may be the one that runs.
    if applied and labels.get(CONTROLLER_REVISION_HASH) == NOT_YET:
        del labels[CONTROLLER_REVISION_HASH]
    return labels


def _in_replica_set(above: Owner, template: Template, index: ClusterIndex, label: str, *, applied: bool) -> _Child:
    """The pod of a Deployment: of its largest ReplicaSet, or of a new one."""
    namespace = above.meta.namespace
    sets = [
        each
        for each in index.owners(namespace)
        if group_kind(each.api_version, each.kind) == REPLICA_SET and _is_of(each, above)
    ]
    current = max(sets, key=lambda each: (each.replicas or 0, each.meta.name), default=None) if applied else None
    labelled = ((current.selector.match_labels if current and current.selector else None) or {}).get(label)
    if current is not None and labelled is not None:
        return _Child(f"{current.meta.name}-{NOT_YET}", current, {label: labelled})
    selector = above.selector or LabelSelector(match_labels=template.template.labels)
    pairs = {**(selector.match_labels or {}), label: NOT_YET}
    name = f"{above.meta.name}-{NOT_YET}"
    new = Owner(
        api_version="apps/v1",
        kind="ReplicaSet",
        # Controllers copy the annotations, and so the opt-out.
        meta=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=NOT_YET,
            annotations=above.meta.annotations,
            owner_references=(reference_to(above),),
        ),
        replicas=above.replicas,
        selector=replace(selector, match_labels=pairs),
    )
    return _Child(f"{name}-{NOT_YET}", new, {label: NOT_YET})


def _is_of(owner: Owner, above: Owner) -> bool:
    controller = owner.meta.controller
    return controller is not None and (controller.kind, controller.name) == (above.kind, above.meta.name)


def _ordinal(above: Owner, index: ClusterIndex, first: int) -> _Child:
    """The pod of a StatefulSet with the lowest ordinal that is free, from the first on.

    Source: pkg/controller/statefulset stateful_set_utils.go ``getStartOrdinal``, ``updateIdentity``.
    """
    taken = set(index.pod_names(above.meta.namespace))
    ordinal = next(number for number in count(first) if f"{above.meta.name}-{number}" not in taken)
    name = f"{above.meta.name}-{ordinal}"
    return _Child(name, above, ordinal_labels(name, ordinal))


def _in_job(above: Owner) -> _Child:
    """The pod of a CronJob: of its next Job."""
    name = f"{above.meta.name}-{NOT_YET}"
    meta = ObjectMeta(name=name, namespace=above.meta.namespace, uid=NOT_YET, owner_references=(reference_to(above),))
    job = Owner(api_version="batch/v1", kind="Job", meta=meta, replicas=above.replicas, selector=above.selector)
    return _Child(f"{name}-{NOT_YET}", job)


def unknown_labels(pod: Pod) -> tuple[str, ...]:
    """The labels that the pod's constraints ask for and whose value only its controller will know."""
    asked: set[str] = set()
    for constraint in pod.pod_spec.constraints:
        asked.update(constraint.match_label_keys or (), selected_keys(constraint.selector))
    return tuple(key for key, value in pod.labels.items() if key in asked and value == NOT_YET)


def namespace_of(workload: Workload, given: str = "") -> str:
    """Where the pods go: as the object says, else as the caller does, else where kubectl would put it."""
    return workload.meta.namespace or given or DEFAULT_NAMESPACE
