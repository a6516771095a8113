"""The constraints that injection would give a workload's pods, in a form that its template can declare.

    workload -> its first pod and that pod's owners -> injection -> constraints, unless they name one revision

With these constraints in the template, the pods are the same whether the webhook injects or not.
"""

from collections.abc import Iterator, Mapping

from msgspec import structs

from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, SpreadConstraint
from webhook.core.api.written_selector import selected_keys
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, Skip, SkipReason, inject
from webhook.core.index.objects import Owner
from webhook.core.index.overlay import with_owners
from webhook.core.index.owners import reference_to
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import DefaultConstraint, Defaults, Policy
from webhook.core.workloads.kinds import (
    DAEMON_SET,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISIONED,
    SELECTING,
    group_kind,
    native_version,
)
from webhook.core.workloads.workload import Template, Workload

_REVISION = "0"  # stands for any value of a revision label; it never leaves this module
_DEFAULT_REPLICAS = 1  # kube-apiserver's default, and that of Argo Rollouts

CONTROLLED = "made-by-a-controller"
SEVERAL_TEMPLATES = "several-templates"
SERVICES_UNKNOWN = "services-unknown"
NODES_UNKNOWN = "nodes-unknown"
NOT_DECLARABLE = "not-declarable"


def adopted(workload: Workload, namespace: str, within: Context) -> tuple[SpreadConstraint, ...] | str:
    """The constraints for the workload's template, or why there are none.

    Shape: ``namespace`` is not empty. A reason is a SkipReason or one of the constants above.
    """
    policy, index = within.policy, within.cluster
    reason = _excluded(workload, policy) or (SERVICES_UNKNOWN if index.lacks("services") else "")
    if reason:
        return reason
    pod, owners = _first_pod(workload, workload.templates[0], namespace, index)
    result = inject(pod, namespace, within.beside(with_owners(index, owners)), waited=True)
    if isinstance(result, Injection):
        return _declarable(result, workload, policy, index)
    return result.reason if isinstance(result, Skip) else SkipReason.OWNER_UNKNOWN


def _excluded(workload: Workload, policy: Policy) -> str:
    """Why the workload itself excludes defaults; empty if it does not."""
    kind = workload.group_kind
    if workload.meta.controller is not None:
        return CONTROLLED
    if len(workload.templates) != 1:
        return SEVERAL_TEMPLATES
    if workload.templates[0].template.pod_spec.constraints:
        return SkipReason.OWN_CONSTRAINTS
    if kind == DAEMON_SET:
        return SkipReason.DAEMON_SET
    named = {group_kind(*owner) for owner in policy.defaults.owners}
    return "" if kind == POD or kind in REVISIONED or kind in SELECTING | named else SkipReason.OTHER_OWNER


def _first_pod(
    workload: Workload, template: Template, namespace: str, index: ReadOnlyIndex
) -> tuple[PodTemplate, tuple[Owner, ...]]:
    """The pod that the controller would make, and the owners that it would have."""
    made = template.template
    kind = workload.group_kind
    if kind == POD:
        return made, ()
    top = Owner(
        api_version=workload.api_version,
        kind=workload.kind,
        meta=_meta(workload.meta, namespace),
        replicas=_replicas(workload, namespace, index),
        selector=_selector(workload, made),
    )
    revision = REVISIONED.get(kind)
    if revision is None:
        return _owned(made, made.labels, top), (top,)
    # Any value does: afterwards no constraint may depend on it.
    labels = {**made.labels, revision: _REVISION}
    # Controllers copy a Deployment's annotations to its ReplicaSets, including evenspread.io/skip.
    below = Owner(
        api_version=native_version(REPLICA_SET),
        kind=REPLICA_SET[1],
        meta=structs.replace(top.meta, name=f"{top.meta.name}/", owner_references=(reference_to(top),)),
        selector=top.selector and _with_label(top.selector, revision),
    )
    return _owned(made, labels, below), (top, below)


def _meta(meta: ObjectMeta, namespace: str) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=namespace, annotations=meta.annotations)


def _replicas(workload: Workload, namespace: str, index: ReadOnlyIndex) -> int | None:
    """The replicas that the workload states, else those of the running one, which an apply does not change."""
    if workload.replicas is not None or not (workload.built_in or workload.group_kind in REVISIONED):
        return workload.replicas
    running = index.owner(workload.api_version, workload.kind, namespace, workload.meta.name)
    return _DEFAULT_REPLICAS if running is None or running.replicas is None else running.replicas


def _selector(workload: Workload, template: PodTemplate) -> LabelSelector | None:
    """The workload's selector; for a ReplicationController without one, the API server takes the template's labels.

    Source: core/v1/defaults.go ``SetDefaults_ReplicationController``.
    """
    if workload.selector is None and workload.group_kind == REPLICATION_CONTROLLER:
        return LabelSelector(match_labels=template.labels)
    return workload.selector


def _with_label(selector: LabelSelector, key: str) -> LabelSelector:
    return structs.replace(selector, match_labels={**(selector.match_labels or {}), key: _REVISION})


def _owned(template: PodTemplate, labels: Mapping[str, str], owner: Owner) -> PodTemplate:
    meta = ObjectMeta(labels=labels, annotations=template.meta.annotations, owner_references=(reference_to(owner),))
    return PodTemplate(metadata=meta, spec=template.spec)


def _declarable(
    injection: Injection, workload: Workload, policy: Policy, index: ReadOnlyIndex
) -> tuple[SpreadConstraint, ...] | str:
    """The constraints, unless they depend on unknown nodes or name the revision of one ReplicaSet."""
    if index.lacks("nodes") and _counts_domains(injection.record.override, policy):
        return NODES_UNKNOWN
    revision = REVISIONED.get(workload.group_kind)
    if any(revision in selected_keys(constraint.selector) for constraint in injection.constraints):
        return NOT_DECLARABLE
    return injection.constraints


def _counts_domains(override: str | None, policy: Policy) -> bool:
    """Whether some default in force is hard or soft depending on domains that the configuration does not list."""
    return any(
        default.hard_when_domains is not None
        and len(policy.domains.get(default.constraint.topology_key or "", ())) < default.hard_when_domains
        for default in _in_force(override, policy.defaults)
    )


def _in_force(override: str | None, defaults: Defaults) -> Iterator[DefaultConstraint]:
    if override is None:
        yield from defaults.default_constraints
    for each in defaults.overrides:
        if each.name == override:
            yield from each.default_constraints
