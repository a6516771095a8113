"""Objects that are not examined, and what shows it: the request and the cluster, never the object's word alone.

What an author writes into an object exempts it from nothing. A mirror pod is one that a node makes. A controller's
object is one of a kind that the controller's kind makes, if a controller sends it; a stranger's is if the cluster has
the owner and what the object says of its constraints stands in the owner, which was reviewed.

Source: k8s.io/kubernetes pkg/auth/nodeidentifier and plugin/pkg/admission/noderestriction; cmd/kube-controller-manager,
where each controller has an account of its own in kube-system, or shares the manager's user.
"""

from collections.abc import Iterable, Iterator

from webhook.core.api.selectors import DOES_NOT_EXIST, NOT_IN
from webhook.core.api.types import OwnerReference, SpreadConstraint
from webhook.core.api.well_known import (
    CONTROLLER_ACCOUNT_SUFFIX,
    CONTROLLER_MANAGER,
    KUBE_SYSTEM_ACCOUNT,
    MIRROR_ANNOTATION,
    NODE_USER,
    NODES_GROUP,
)
from webhook.core.context import Context
from webhook.core.index.objects import Declared, Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.judging import ReadObject
from webhook.core.rules.rule_set import BY_ID, RULES, denied_from
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import makes_kind
from webhook.core.workloads.workload import Template, Workload

_EXCLUDING = frozenset({NOT_IN, DOES_NOT_EXIST})


def why_unexamined(request: AdmissionRequest, given: ReadObject, context: Context) -> str:
    """Why an object is not examined; empty if it is. One that cannot be read is judged by its metadata."""
    meta, owner = given.meta, given.meta.controller
    if given.limit:  # nothing is known of its owner but who sends it
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
    """Whether the user is a controller of Kubernetes itself, or one that the policy names."""
    own = user.startswith(KUBE_SYSTEM_ACCOUNT) and user.endswith(CONTROLLER_ACCOUNT_SUFFIX)
    return own or user == CONTROLLER_MANAGER or user in policy.controllers


def _sent_by_node(request: AdmissionRequest) -> bool:
    kind = group_kind(request.api_version, request.kind)
    return kind == POD and request.user.startswith(NODE_USER) and NODES_GROUP in request.groups


def _made_by(owner: OwnerReference, request: AdmissionRequest, workload: Workload | None, context: Context) -> bool:
    """Whether this owner, which is reviewed, made the object."""
    policy, index = context.policy, context.index
    if not makes_kind(owner.api_version, owner.kind, group_kind(request.api_version, request.kind), policy.workloads):
        return False
    if is_controller(request.user, policy):
        return True
    return (
        workload is not None
        and index is not None
        and not _looks_further(policy)
        and _repeats(workload, _declared_by(owner, request.namespace, index))
    )


def _looks_further(policy: Policy) -> bool:
    """Whether something is denied that depends on more than the index keeps of an owner."""
    denying = [BY_ID[rule] for rule, mode in policy.rules.items() if mode is Mode.DENY]
    return any(not rule.of_a_part for rule in (*denying, *(each for each in RULES if denied_from(policy, each))))


def _declared_by(owner: OwnerReference, namespace: str, index: ReadOnlyIndex) -> tuple[Declared, ...]:
    """The owner's templates, or those of its own owner; nothing where the cluster does not have the owner."""
    found = _found(owner, namespace, index)
    above = found.meta.controller if found is not None and found.templates is None else None
    if above is not None:
        found = _found(above, namespace, index)
    return (found.templates if found is not None else None) or ()


def _found(reference: OwnerReference, namespace: str, index: ReadOnlyIndex) -> Owner | None:
    owner = index.owners.get(reference.api_version, reference.kind, namespace, reference.name)
    return owner if owner is not None and owner.meta.uid and owner.meta.uid == reference.uid else None


def _repeats(workload: Workload, declared: tuple[Declared, ...]) -> bool:
    return bool(workload.templates) and all(
        any(_repeats_one(template, each) for each in declared) for template in workload.templates
    )


def _repeats_one(template: Template, declared: Declared) -> bool:
    """Whether a template has these constraints and labels; controllers add labels of their own.

    None may be one that a constraint says to be absent or different: with it, the pod would not select itself. Those
    of ``matchLabelKeys``, which the owner's controller adds, must be there: without them, more pods would be counted.
    """
    labels = template.template.labels
    if template.template.pod_spec.constraints != declared.constraints or not declared.labels.items() <= labels.items():
        return False
    if any(not labels.keys() >= {*(each.match_label_keys or ())} for each in declared.constraints):
        return False
    return (labels.keys() - declared.labels.keys()).isdisjoint(_excluded_keys(declared.constraints))


def _excluded_keys(constraints: Iterable[SpreadConstraint]) -> Iterator[str]:
    for each in constraints:
        for requirement in (each.selector and each.selector.match_expressions) or ():
            if requirement.operator in _EXCLUDING:
                yield requirement.key
