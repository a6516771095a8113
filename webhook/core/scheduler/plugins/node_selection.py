"""Select nodes by node affinity and tolerations, as sets over all nodes.

Each requirement is evaluated per label value, not per node.

Source: k8s.io/component-helpers scheduling/corev1/helpers.go, nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Iterable, Sequence

from webhook.core.api.node_selectors import FieldRequirement, NodeTerm, RequiredNodes
from webhook.core.api.requirements import Requirement
from webhook.core.api.selectors import Selector
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import DOES_NOT_EXIST, EXISTS, GREATER, LESS, NOT_IN, Toleration
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_NAME_FIELD, NODE_STATES
from webhook.core.budget import check_time
from webhook.core.index.nodes import NodeView


def nodes_meeting(view: NodeView, requirement: Requirement) -> int:
    """Select nodes with labels that meet the requirement. Source: labels/selector.go ``Matches``."""
    column = view.column(requirement.key)
    operator = requirement.operator
    if operator == EXISTS:
        return column.present
    if operator == DOES_NOT_EXIST:
        return view.live & ~column.present
    if operator in (GREATER, LESS):
        key = requirement.key
        return column.nodes_of([n for n, value in enumerate(column.values) if requirement.matches({key: value})])
    named = 0
    for value in requirement.values:
        named |= column.with_value(value)
    # A node without the label meets NotIn too, so this starts from all live nodes.
    return view.live & ~named if operator == NOT_IN else named


def usable_nodes(view: NodeView, required: RequiredNodes) -> int:
    """Return the nodes that match the node selector and a term of the required node affinity.

    Source: nodeaffinity/nodeaffinity.go ``RequiredNodeAffinity``, ``Match``.
    """
    nodes = _meeting_all(view, required.pairs.requirements)
    return nodes if required.terms is None else nodes & nodes_of_terms(view, required.terms)


def nodes_of_terms(view: NodeView, terms: Iterable[NodeTerm], *, by_labels: bool = False) -> int:
    """Return the nodes that match any of the terms. ``by_labels`` ignores conditions on fields.

    Source: nodeaffinity/nodeaffinity.go ``nodeSelectorTerm``.
    """
    nodes = 0
    for term in terms:
        # Terms are alternatives. An invalid one matches nothing, and the others still count.
        if not term.invalid:
            selected = _meeting_all(view, term.expressions)
            for condition in () if by_labels else term.fields:
                selected &= _nodes_named(view, condition)
            nodes |= selected
    return nodes


def nodes_selected(view: NodeView, selector: Selector) -> int:
    """Return the nodes whose labels match the selector, as a bit set."""
    return _meeting_all(view, selector.requirements)


def tolerated_nodes(view: NodeView, tolerations: Sequence[Toleration] | None) -> int:
    """Return the nodes without an untolerated taint. Source: corev1/helpers.go ``FindMatchingUntoleratedTaint``."""
    nodes = view.live
    # Thousands of nodes share a few lists of taints.
    for taints, members in view.taint_classes:
        check_time()
        if first_untolerated(taints, tolerations, FILTERING_EFFECTS) is not None:
            nodes &= ~members
    return nodes


def _meeting_all(view: NodeView, requirements: Iterable[Requirement]) -> int:
    nodes = view.live
    for requirement in requirements:
        nodes &= nodes_meeting(view, requirement)
    return nodes


def _nodes_named(view: NodeView, condition: FieldRequirement) -> int:
    """Return the nodes that meet a condition on a field. Nodes without a name always meet it.

    Source: nodeaffinity/nodeaffinity.go ``extractNodeFields``, ``match``.
    """
    # Upstream tests fields only on a node with a name.
    nameless = _bit(view, "")
    # Every other field is empty on every node, so the condition holds for all nodes or none.
    if condition.key != NODE_NAME_FIELD:
        return view.live if condition.matches("") else nameless
    named = _bit(view, condition.value)
    return (named if condition.equal else view.live & ~named) | nameless


def _bit(view: NodeView, name: str) -> int:
    slot = view.slots.get(name)
    return 0 if slot is None else 1 << slot


def settled_nodes(view: NodeView) -> int:
    """Return a bit set of the nodes in normal operation: not cordoned, without taints in `NODE_STATES`."""
    nodes = view.live & ~view.unschedulable
    for taints, members in view.taint_classes:
        check_time()
        if any(taint.key in NODE_STATES for taint in taints):
            nodes &= ~members
    return nodes
