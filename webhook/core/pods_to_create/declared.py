"""Find the constraints injected into a workload's pods, to declare them.

    workload -> its next pod and that pod's owners -> injection -> constraints

Constraints that select a single revision cannot be declared. With the other constraints in the template, the pods are
the same with and without injection.
"""

from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, PodTemplate, SpreadConstraint
from webhook.core.api.written_selector import selected_keys
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, Skip, SkipReason, inject
from webhook.core.index.overlay import with_owners
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.next_pod import PodSource, sent_pod
from webhook.core.policy.policy import Policy
from webhook.core.workloads.kinds import DAEMON_SET, POD, REPLICATION_CONTROLLER, REVISIONED, SELECTING, group_kind
from webhook.core.workloads.workload import Workload


def declarable_constraints(workload: Workload, namespace: str, context: Context) -> tuple[SpreadConstraint, ...] | Skip:
    """Return the constraints to declare in the workload's template, or why there are none.

    ``namespace`` must not be empty.
    """
    policy, index = context.policy, context.cluster
    reason = _why_excluded(workload, policy) or (SkipReason.SERVICES_UNKNOWN if index.lacks("services") else None)
    if reason is not None:
        return Skip(reason)
    template, revision = workload.templates[0], REVISIONED.get(workload.group_kind)
    own = _selector(workload, template.pod)
    stated = replace(workload, selector=own, replicas=_replicas(workload, namespace, index))
    made = sent_pod(PodSource(workload=stated, template=template, namespace=namespace), index)
    # A constraint in the template must not use labels with different values between pods.
    declared = {*template.pod.labels, revision}
    labels = {key: value for key, value in made.template.labels.items() if key in declared}
    pod = replace(made.template, metadata=replace(made.template.meta, labels=labels))
    result = inject(pod, namespace, context.with_index(with_owners(index, made.owners)), waited=True)
    if not isinstance(result, Injection):
        return result if isinstance(result, Skip) else Skip(SkipReason.OWNER_UNKNOWN)
    if index.lacks("nodes") and _counts_domains(result.record.override, policy):
        return Skip(SkipReason.NODES_UNKNOWN)
    if any(revision in selected_keys(constraint.selector) for constraint in result.constraints):
        return Skip(SkipReason.NOT_DECLARABLE)
    return result.constraints


def _why_excluded(workload: Workload, policy: Policy) -> SkipReason | None:
    kind = workload.group_kind
    named = {group_kind(*owner) for owner in policy.defaults.owners}
    if workload.meta.controller is not None:
        return SkipReason.CONTROLLED
    if len(workload.templates) != 1:
        return SkipReason.SEVERAL_TEMPLATES
    if workload.templates[0].pod.pod_spec.constraints:
        return SkipReason.OWN_CONSTRAINTS
    if kind == DAEMON_SET:
        return SkipReason.DAEMON_SET
    return None if kind == POD or kind in REVISIONED or kind in SELECTING | named else SkipReason.OTHER_OWNER


def _replicas(workload: Workload, namespace: str, index: ReadOnlyIndex) -> int | None:
    """Return the workload's replicas. Without the field, return those in the cluster, because an apply keeps them."""
    if workload.replicas is not None or not (workload.built_in or workload.group_kind in REVISIONED):
        return workload.replicas
    running = index.owners.get(workload.api_version, workload.kind, namespace, workload.meta.name)
    return 1 if running is None else running.wanted


def _selector(workload: Workload, template: PodTemplate) -> LabelSelector | None:
    """The workload's selector. A ReplicationController without selector uses the template's labels.

    Source: core/v1/defaults.go ``SetDefaults_ReplicationController``.
    """
    if workload.selector is None and workload.group_kind == REPLICATION_CONTROLLER:
        return LabelSelector(match_labels=template.labels)
    return workload.selector


def _counts_domains(override: str | None, policy: Policy) -> bool:
    """Whether missing configured domains decide if a default constraint is hard.

    Such a constraint has ``hard_when_domains``, and the configuration lists fewer domains of its key.

    Args:
        override: The name of the workload's override. None for the general defaults.
        policy: The configuration.
    """
    defaults = policy.defaults
    in_force = [*defaults.default_constraints] if override is None else []
    for candidate in defaults.overrides:
        in_force += candidate.default_constraints if candidate.name == override else ()
    return any(
        default.hard_when_domains is not None
        and len(policy.domains.get(default.constraint.topology_key or "", ())) < default.hard_when_domains
        for default in in_force
    )
