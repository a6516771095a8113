"""Build a controller's next pod from a template, as the scheduler gets it.

    PodSource -> sent_pod        -> SentPod       labels, name and owners from the controller
    pod       -> after_admission -> AdmittedPod   with injected constraints and kube-apiserver's additions
    PodSource -> next_pod_of     -> NextPod       both

Quota and other webhooks are ignored.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from webhook.core.api.selectors import Selector
from webhook.core.api.types import LabelSelector, ObjectMeta, Pod, PodTemplate
from webhook.core.api.well_known import CONTROLLER_REVISION_HASH
from webhook.core.api.written_selector import selected_keys
from webhook.core.apiserver.admission_plugins import apply_plugins, as_created
from webhook.core.apiserver.pod_defaults import with_decoding_defaults
from webhook.core.cached_property import cached_property
from webhook.core.context import Context, problem_of
from webhook.core.defaulting.injection import Injection, Skip, inject
from webhook.core.index.objects import Owner
from webhook.core.index.overlay import with_owners
from webhook.core.index.owners import reference_to
from webhook.core.index.pod_admission import facts_for
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.problem import Problem
from webhook.core.workloads.kinds import (
    CRON_JOB,
    JOB,
    REPLICA_SET,
    REVISIONED,
    STATEFUL_SET,
    group_kind,
    native_version,
)
from webhook.core.workloads.labels_at_creation import (
    NOT_YET_KNOWN,
    is_placeholder,
    job_of,
    labels_at_creation,
    name_of,
    ordinal_labels,
    placeholder,
)
from webhook.core.workloads.workload import Template, Workload

_MOST_ORDINALS = 256  # The most pods of a StatefulSet to look up by name.


class PodSource(Struct, frozen=True, kw_only=True):
    """A template of a workload, used by a controller to create pods.

    Attributes:
        namespace: The namespace of the pods.
        own: Selects the workload's pods of every revision. None if unknown.
        applied: Whether the cluster already has the workload with this template. False for a manifest, because its
            template is a new revision.
    """

    workload: Workload
    template: Template
    namespace: str
    own: Selector | None = None
    applied: bool = False


class _SentPod(Struct, frozen=True, kw_only=True):
    """A pod as created by its controller, with its existing or future owners."""

    template: PodTemplate
    owners: tuple[Owner, ...] = ()


class _AdmittedPod(Struct, frozen=True):
    """A pod after admission, as the scheduler receives it.

    Attributes:
        injected: The injected constraints, or the reason for none. None if the policy injects nothing.
        unknown: The kinds of objects that the admission plugins need and the index lacks.
    """

    pod: Pod
    injected: Injection | Skip | None
    unknown: tuple[str, ...] = ()


class NextPod(_AdmittedPod, frozen=True, kw_only=True, dict=True):
    """The next pod that a controller creates from a workload's template.

    Attributes:
        source: The workload, its template and the namespace.
        sent: The pod in the controller's create request, before admission.
        context: The context of the rules. Its index also has the pod's owners, if the cluster lacks them.
    """

    source: PodSource
    sent: PodTemplate
    context: Context

    @cached_property
    def problem(self) -> Problem:
        return problem_of(self.pod, self.context)


def next_pod_of(source: PodSource, context: Context, *, posted: bool = True) -> NextPod:
    """Build the next pod of a source, as the scheduler gets it.

    ``posted`` is false for a pod that has already passed admission. This pod only gets kube-apiserver's defaults.

    Example:
        ``next_pod_of(PodSource(workload=web, template=web.templates[0], namespace="shop"), context).pod``
    """
    sent = sent_pod(source, context.cluster)
    around = context.with_index(with_owners(context.cluster, sent.owners)) if sent.owners else context
    ready = after_admission(sent.template, source.namespace, around, posted=posted)
    return NextPod(*astuple(ready), source=source, sent=sent.template, context=around)


def after_admission(template: PodTemplate, namespace: str, context: Context, *, posted: bool = True) -> _AdmittedPod:
    """Return the pod as the scheduler gets it after a create request.

    Args:
        template: The pod as sent.
        namespace: The namespace of the request.
        context: The policy and the cluster.
        posted: False for a pod that has already passed admission. This pod only gets kube-apiserver's defaults, without
            admission plugins or injected constraints.
    """
    meta, spec, injected = template.meta, template.pod_spec, None
    policy, index, version = context.policy, context.cluster, context.version
    status = template.status if isinstance(template, Pod) else None
    uid = "" if posted else meta.uid  # kube-apiserver chooses the uid of a new pod
    pod = Pod(metadata=replace(meta, namespace=meta.namespace or namespace, uid=uid), spec=spec, status=status)
    if not posted:
        return _AdmittedPod(as_created(pod, version), injected)
    facts = facts_for(pod, index)
    if policy.defaults.injects:
        # kube-apiserver runs its own plugins before webhooks, so injection sees the node selector of a RuntimeClass.
        seen = replace(template, spec=apply_plugins(with_decoding_defaults(pod, version), facts).pod_spec)
        result = inject(seen, namespace, context, waited=True)
        injected = result if isinstance(result, Injection | Skip) else None
        if isinstance(result, Injection):
            pod = replace(pod, spec=replace(spec, topology_spread_constraints=result.constraints))
    return _AdmittedPod(as_created(pod, version, facts), injected, facts.unknown)


def sent_pod(source: PodSource, index: ReadOnlyIndex) -> _SentPod:
    """Build the next pod of a template, as its controller sends it. For a Pod, the template is the Pod itself."""
    workload, written, namespace = source.workload, source.template.pod, source.namespace
    if workload.is_pod:
        return _SentPod(template=written)
    uid = workload.meta.uid or placeholder(workload, "uid")
    own = replace(workload.meta, namespace=namespace, uid=uid, name=name_of(workload))
    owner = Owner(
        api_version=workload.api_version,
        kind=workload.kind,
        meta=own,
        replicas=workload.replicas,
        selector=workload.selector,
    )
    kind = workload.group_kind
    if kind in REVISIONED:
        child = _in_replica_set(owner, source, index)
    elif kind == STATEFUL_SET:
        child = _ordinal(owner, index, workload.first_ordinal)
    elif kind == CRON_JOB:
        child = _in_job(owner, *job_of(workload))
    else:
        child = _Child(f"{own.name}-{NOT_YET_KNOWN}", owner)
    meta = ObjectMeta(
        name=child.name,
        namespace=namespace,
        labels=_labels(source, child, index) or None,
        annotations=written.meta.annotations,
        owner_references=(reference_to(child.owner),),
    )
    owners = (owner,) if child.owner is owner else (owner, child.owner)
    return _SentPod(template=replace(written, metadata=meta), owners=owners)


class _Child(NamedTuple):
    """A pod's name, direct owner, and labels added by its controller, such as the template hash."""

    name: str
    owner: Owner
    labels: Mapping[str, str] = {}


def _labels(source: PodSource, made: _Child, index: ReadOnlyIndex) -> Mapping[str, str]:
    labels = {**labels_at_creation(source.workload, source.template.pod), **made.labels}
    if not source.applied or not is_placeholder(labels.get(CONTROLLER_REVISION_HASH, "")):
        return labels
    running = _running_revisions(source.workload, made.owner.meta, index)
    if running is None or len(running) > 1:
        # The next pod can be of any running revision.
        del labels[CONTROLLER_REVISION_HASH]
    elif running:
        (labels[CONTROLLER_REVISION_HASH],) = running
    return labels


def _running_revisions(workload: Workload, meta: ObjectMeta, index: ReadOnlyIndex) -> set[str] | None:
    """Return the revisions of a StatefulSet's running pods. None for other kinds, because pod names are unknown."""
    if workload.group_kind != STATEFUL_SET:
        return None
    numbers = workload.ordinals(min(1 if workload.replicas is None else workload.replicas, _MOST_ORDINALS))
    pods = (index.pods.on_node(meta.namespace, f"{meta.name}-{number}") for number in numbers)
    labels = [pod.labels for pod in pods if pod is not None]
    return {own[CONTROLLER_REVISION_HASH] for own in labels if CONTROLLER_REVISION_HASH in own}


def _in_replica_set(above: Owner, source: PodSource, index: ReadOnlyIndex) -> _Child:
    """Build the next pod of a Deployment: from its largest ReplicaSet, or from a new one.

    Source: deployment/sync.go ``getNewReplicaSet``.
    """
    key, revision = REVISIONED[source.workload.group_kind], placeholder(source.workload, "revision")
    # During a rollout there are several. The largest most likely creates the next pod.
    owners = index.owners.controlled(source.namespace, above.kind, above.meta.name) if source.applied else ()
    sets = [owner for owner in owners if group_kind(owner.api_version, owner.kind) == REPLICA_SET]
    current = max(sets, key=lambda owner: (owner.replicas or 0, owner.meta.name), default=None)
    labelled = ((current.selector.match_labels if current and current.selector else None) or {}).get(key)
    if current is not None and labelled is not None:
        return _Child(f"{current.meta.name}-{NOT_YET_KNOWN}", current, {key: labelled})
    selector = above.selector or LabelSelector(match_labels=source.template.pod.labels)
    name = f"{above.meta.name}-{NOT_YET_KNOWN}"
    new = Owner(
        api_version=native_version(REPLICA_SET),
        kind=REPLICA_SET[1],
        # Controllers copy the annotations, including evenspread.io/skip.
        meta=ObjectMeta(
            name=name,
            namespace=source.namespace,
            uid=f"{above.meta.uid}-{revision}",
            annotations=above.meta.annotations,
            owner_references=(reference_to(above),),
        ),
        replicas=above.replicas,
        selector=replace(selector, match_labels={**(selector.match_labels or {}), key: revision}),
    )
    return _Child(f"{name}-{NOT_YET_KNOWN}", new, {key: revision})


def _ordinal(above: Owner, index: ReadOnlyIndex, first: int) -> _Child:
    """Build the next pod of a StatefulSet, with the lowest free ordinal.

    Source: pkg/controller/statefulset stateful_set_utils.go ``getStartOrdinal``, ``updateIdentity``.
    """
    # A StatefulSet fills gaps first, from the lowest ordinal.
    ordinal = index.pods.free_ordinal(above.meta.namespace, above.meta.name, first)
    name = f"{above.meta.name}-{ordinal}"
    return _Child(name, above, ordinal_labels(name, ordinal))


def _in_job(above: Owner, name: str, uid: str) -> _Child:
    """Return the next pod of a CronJob's next Job. Source: cronjob/utils.go ``getJobFromTemplate2``."""
    meta = ObjectMeta(name=name, namespace=above.meta.namespace, uid=uid, owner_references=(reference_to(above),))
    job = Owner(
        api_version=native_version(JOB), kind=JOB[1], meta=meta, replicas=above.replicas, selector=above.selector
    )
    return _Child(f"{name}-{NOT_YET_KNOWN}", job)


def unknown_labels(pod: Pod) -> tuple[str, ...]:
    """Return the pod's label keys with values still to be chosen by its controller.

    Only keys used by the selectors or matchLabelKeys of the pod's constraints are returned.
    """
    selected: set[str] = set()
    for constraint in pod.pod_spec.constraints:
        selected.update(constraint.match_label_keys or (), selected_keys(constraint.selector))
    return tuple(key for key, value in pod.labels.items() if key in selected and is_placeholder(value))
