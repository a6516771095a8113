"""Node selectors and required node affinity, compiled.

Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from webhook.core.api.requirements import Requirement, SelectorError, compile_requirement
from webhook.core.api.selectors import EVERYTHING, Selector, selector_from_labels
from webhook.core.api.types import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_IN,
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from webhook.core.api.well_known import NODE_NAME_FIELD

_OPERATORS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS})


class FieldRequirement(Struct, frozen=True):
    """A condition on a node field.

    Only the field ``metadata.name`` exists. Any other field counts as empty.

    Source: nodeaffinity/nodeaffinity.go ``nodeSelectorRequirementsAsFieldSelector``.
    """

    key: str
    value: str
    equal: bool

    def matches(self, name: str) -> bool:
        """Whether a node of this name matches. Source: nodeaffinity/nodeaffinity.go ``extractNodeFields``."""
        return ((name if self.key == NODE_NAME_FIELD else "") == self.value) is self.equal


class NodeTerm(Struct, frozen=True):
    """A compiled node selector term. All of its conditions must hold.

    `webhook.core.scheduler.plugins.node_selection` lists the matching nodes.

    Attributes:
        invalid: True for a term with an invalid condition. It matches no node.

    Source: nodeaffinity/nodeaffinity.go ``nodeSelectorTerm``.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    invalid: bool = False


class RequiredNodes(Struct, frozen=True):
    """A pod's condition on nodes, from nodeSelector and required node affinity.

    Attributes:
        terms: Alternative terms of the required node affinity. None without one. An empty tuple matches no node.

    Source: nodeaffinity/nodeaffinity.go ``RequiredNodeAffinity``.
    """

    pairs: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None


def compile_required_nodes(node_selector: Mapping[str, str] | None, affinity: Affinity | None) -> RequiredNodes:
    """Compile a nodeSelector and a node affinity. Source: nodeaffinity/nodeaffinity.go ``GetRequiredNodeAffinity``."""
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodes(selector_from_labels(node_selector), terms)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile a node selector's terms. A term without conditions matches no node, and is dropped.

    Source: nodeaffinity/nodeaffinity.go ``NewLazyErrorNodeSelector``.
    """
    terms = selector.node_selector_terms or ()
    return tuple(_compile_node_term(term) for term in terms if term.match_expressions or term.match_fields)


def values_in(conditions: Iterable[NodeSelectorRequirement] | None, key: str) -> frozenset[str] | None:
    """Return the values of the key allowed by all ``In`` conditions. None without such a condition.

    Source: kube-scheduler framework/plugins/nodeaffinity/node_affinity.go ``PreFilter``.
    """
    sets = [
        frozenset(condition.values or ())
        for condition in conditions or ()
        if (condition.key, condition.operator) == (key, IN)
    ]
    return frozenset.intersection(*sets) if sets else None


def _compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Compile a term with conditions. Source: nodeaffinity.go ``newNodeSelectorTerm``."""
    try:
        expressions = tuple(
            compile_requirement(one, _OPERATORS, "a node selector") for one in term.match_expressions or ()
        )
        fields = tuple(_field_requirement(condition) for condition in term.match_fields or ())
    except SelectorError:
        return NodeTerm(invalid=True)
    return NodeTerm(expressions, fields)


def _field_requirement(written: NodeSelectorRequirement) -> FieldRequirement:
    """Source: nodeaffinity/nodeaffinity.go ``nodeSelectorRequirementsAsFieldSelector``."""
    values = written.values or ()
    if written.operator not in {IN, NOT_IN} or len(values) != 1:
        raise SelectorError(lambda _: "a condition on a field needs In or NotIn and one value")
    return FieldRequirement(written.key, values[0], written.operator == IN)
