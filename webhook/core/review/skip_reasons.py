"""Decide which objects skip the review.

Authors cannot exempt their objects. A mirror pod must come from a node. An object with an owner is skipped if the
owner's kind makes such objects and one of these holds:

- a controller sends the request;
- the cluster has the owner, and the owner's reviewed template has the object's constraints.

Source: k8s.io/kubernetes pkg/auth/nodeidentifier and plugin/pkg/admission/noderestriction; cmd/kube-controller-manager,
where each controller has an account of its own in kube-system, or shares the manager's user.
"""

from collections.abc import Iterable, Iterator

from webhook.core.api.types import DOES_NOT_EXIST, NOT_IN, OwnerReference, SpreadConstraint
from webhook.core.api.well_known import (
    CONTROLLER_ACCOUNT_SUFFIX,
    CONTROLLER_MANAGER,
    KUBE_SYSTEM_ACCOUNT,
    MIRROR_ANNOTATION,
    NODE_USER,
    NODES_GROUP,
)
from webhook.core.context import Context
from webhook.core.index.objects import DeclaredTemplate, Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.read_object import ReadObject
from webhook.core.rules.rule_set import BY_ID, RULES, denied_from
from webhook.core.workloads.kind_fields import makes_kind
from webhook.core.workloads.kinds import POD
from webhook.core.workloads.workload import Template, Workload

_EXCLUDING = frozenset({NOT_IN, DOES_NOT_EXIST})


def why_unexamined(request: AdmissionRequest, given: ReadObject, context: Context) -> str:
    """Return why an object is not examined. Empty for an examined object.

    For an unreadable object, the object's metadata decide.
    """
    meta, owner = given.meta, given.meta.controller
    if given.limit:  # The object is not decoded, so only the sender is known.
        return "its owner is reviewed" if is_controller(request.user, context.policy) else ""
    if given.workload is None and given.decode_error is None:
        return "no pod template"
    if meta.deletion_timestamp is not None:
        return "being deleted"
    if owner is not None and _made_by(owner, request, given.workload, context):
        return "its owner is reviewed"
    if meta.annotations and MIRROR_ANNOTATION in meta.annotations and _sent_by_node(request):
        return "mirror pod"
    return ""


def is_controller(user: str, policy: Policy) -> bool:
    """Whether the user is one of Kubernetes' own controllers, or a controller from the policy."""
    own = user.startswith(KUBE_SYSTEM_ACCOUNT) and user.endswith(CONTROLLER_ACCOUNT_SUFFIX)
    return own or user == CONTROLLER_MANAGER or user in policy.controllers


def _sent_by_node(request: AdmissionRequest) -> bool:
    return request.group_kind == POD and request.user.startswith(NODE_USER) and NODES_GROUP in request.groups


def _made_by(owner: OwnerReference, request: AdmissionRequest, workload: Workload | None, context: Context) -> bool:
    policy, index = context.policy, context.index
    if not makes_kind(owner.api_version, owner.kind, request.group_kind, policy.workloads):
        return False
    if is_controller(request.user, policy):
        return True
    return (
        workload is not None
        and index is not None
        and not _denies_beyond_constraints(policy)
        and _repeats(workload, _declared_by(owner, request.namespace, index))
    )


def _denies_beyond_constraints(policy: Policy) -> bool:
    """Whether a rule in mode deny needs more than the indexed constraints and labels of templates."""
    denying = [BY_ID[rule] for rule, mode in policy.rules.items() if mode is Mode.DENY]
    return any(not rule.of_a_part for rule in (*denying, *(each for each in RULES if denied_from(policy, each))))


def _declared_by(owner: OwnerReference, namespace: str, index: ReadOnlyIndex) -> tuple[DeclaredTemplate, ...]:
    """Return the templates of the owner, or of the owner's own controller. Empty for an unknown owner."""
    holder = _owner_of(owner, namespace, index)
    above = holder.meta.controller if holder is not None and holder.templates is None else None
    if above is not None:
        holder = _owner_of(above, namespace, index)
    return (holder.templates if holder is not None else None) or ()


def _owner_of(reference: OwnerReference, namespace: str, index: ReadOnlyIndex) -> Owner | None:
    owner = index.owners.get(reference.api_version, reference.kind, namespace, reference.name)
    return owner if owner is not None and owner.meta.uid and owner.meta.uid == reference.uid else None


def _repeats(workload: Workload, declared: tuple[DeclaredTemplate, ...]) -> bool:
    return bool(workload.templates) and all(
        any(_repeats_one(template, each) for each in declared) for template in workload.templates
    )


def _repeats_one(template: Template, declared: DeclaredTemplate) -> bool:
    """Whether the template repeats the declared constraints and labels.

    A controller may have added other labels, except two kinds. A label key excluded by a constraint's selector may not
    be added, because the pod would not match its own selector. No key in ``matchLabelKeys`` may be missing, because the
    constraint would count more pods.
    """
    labels = template.pod.labels
    if template.pod.pod_spec.constraints != declared.constraints or not declared.labels.items() <= labels.items():
        return False
    if any(not labels.keys() >= {*(each.match_label_keys or ())} for each in declared.constraints):
        return False
    return (labels.keys() - declared.labels.keys()).isdisjoint(_excluded_keys(declared.constraints))


def _excluded_keys(constraints: Iterable[SpreadConstraint]) -> Iterator[str]:
    for each in constraints:
        for requirement in (each.selector and each.selector.match_expressions) or ():
            if requirement.operator in _EXCLUDING:
                yield requirement.key
