"""Label selectors, node selectors and tolerations, and their matches.

Selectors are compiled once and evaluated often. A null label selector matches nothing, an empty one everything. In some
releases, spread constraints with an empty selector count no pods: `webhook.core.scheduler.plugins.pod_topology_spread`
handles this.

Source: k8s.io/apimachinery pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go; k8s.io/component-helpers
scheduling/corev1; k8s.io/api core/v1/toleration.go.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.go_text import json_text, quote
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import (
    INT64_DIGITS,
    MAX_INT64,
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.api.well_known import NODE_NAME_FIELD

EQUALS = "="
IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GREATER = "Gt"
LESS = "Lt"
_OF_LABELS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})
_OF_NODES = _OF_LABELS | {GREATER, LESS}

# Like strconv.ParseInt: a sign and leading zeros, but no underscores, spaces or digits of other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
# Gt and Lt of tolerations accept only canonical decimals (content.IsDecimalInteger).
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


class SelectorError(ValueError):
    """A selector rejected by kube-apiserver. ``text(version)`` returns the release's message."""

    def __init__(self, text: Callable[[KubernetesVersion], str]) -> None:
        super().__init__(text(RECORDED))
        self.text = text


class Requirement(Struct, frozen=True):
    """A condition on a label.

    Attributes:
        operator: EQUALS or an operator of the API.
        values: In written order.

    Source: labels/selector.go ``Requirement``.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the condition. Source: labels/selector.go ``Matches``."""
        if self.operator in _POSITIVE:
            return labels.get(self.key, None) in self.values
        if self.operator == NOT_IN:
            return labels.get(self.key, None) not in self.values
        if self.operator == EXISTS:
            return self.key in labels
        if self.operator == DOES_NOT_EXIST:
            return self.key not in labels
        return len(self.values) == 1 and _compares(self.operator, labels.get(self.key), self.values[0])

    @property
    def text(self) -> str:
        """Upstream's text: ``app=web``, ``tier in (a,b)``, ``!x``. Source: labels/selector.go ``String``."""
        values = ",".join(sorted(self.values))
        return {
            EQUALS: f"{self.key}={values}",
            IN: f"{self.key} in ({values})",
            NOT_IN: f"{self.key} notin ({values})",
            EXISTS: self.key,
            DOES_NOT_EXIST: f"!{self.key}",
            GREATER: f"{self.key}>{values}",
            LESS: f"{self.key}<{values}",
        }[self.operator]


_POSITIVE = frozenset({EQUALS, IN})
_KEY = attrgetter("key")


class Selector(Struct, frozen=True):
    """A compiled label selector.

    Attributes:
        requirements: Sorted by key.
        nothing: True for the null selector, which matches no labels.

    Source: labels/selector.go ``internalSelector``, ``nothingSelector``.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether it matches all labels."""
        return not self.requirements and not self.nothing

    @property
    def contradicts_itself(self) -> bool:
        """Whether two conditions require different values of a key."""
        wanted = dict[str, tuple[str, ...]]()
        return any(
            condition.operator == EQUALS and wanted.setdefault(condition.key, condition.values) != condition.values
            for condition in self.requirements
        )

    @property
    def text(self) -> str:
        """Upstream's text, "" for the empty and the null selector. Source: labels/selector.go ``String``."""
        return ",".join(condition.text for condition in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects an object with these labels. Source: labels/selector.go ``Matches``."""
        return not self.nothing and all(condition.matches(labels) for condition in self.requirements)

    def joined(self, requirements: Iterable[Requirement]) -> "Selector":
        """Add conditions to the selector. Source: labels/selector.go ``Add``."""
        if self.nothing:
            return self
        return Selector(_by_key((*self.requirements, *requirements)))


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector of the API.

        >>> compile_selector(LabelSelector(match_labels={"app": "web"})).matches({"app": "web"})
        True

    Raises:
        SelectorError: If kube-apiserver rejects the selector.

    Source: meta/v1/helpers.go ``LabelSelectorAsSelector``.
    """
    if selector is None:
        return NOTHING
    # A fast path: nearly all labels are valid.
    requirements = [
        _checked(key, EQUALS, (value,))
        if key_faults(key) or value_faults(value)
        else Requirement(key, EQUALS, (value,))
        for key, value in (selector.match_labels or {}).items()
    ]
    if selector.match_expressions:
        requirements += [
            _requirement(expression, _OF_LABELS, "a valid label selector") for expression in selector.match_expressions
        ]
    return Selector(_by_key(requirements)) if requirements else EVERYTHING


def selector_from_labels(labels: Mapping[str, str] | None) -> Selector:
    """Compile a Service's or ReplicationController's selector, unchecked.

    Source: labels/selector.go ``SelectorFromSet``.
    """
    return Selector(_by_key(Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()))


def _by_key(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=_KEY))


def _requirement(
    written: LabelSelectorRequirement | NodeSelectorRequirement, operators: frozenset[str], kind: str
) -> Requirement:
    """Compile one condition.

    Source: meta/v1/helpers.go ``LabelSelectorAsSelector``; nodeaffinity/nodeaffinity.go
    ``nodeSelectorRequirementsAsSelector``.
    """
    if written.operator not in operators:
        raise SelectorError(lambda _: f"{quote(written.operator)} is not {kind} operator")
    return _checked(written.key, written.operator, written.values or ())


def valid_selector(written: LabelSelector | None) -> Selector | None:
    """Compile a selector, with None if invalid."""
    try:
        return compile_selector(written)
    except SelectorError:
        return None


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Build a requirement, or raise SelectorError with the scheduler's text.

    Source: labels/selector.go ``NewRequirement``.
    """
    if _requirement_faults(key, operator, values, RECORDED):

        def text(version: KubernetesVersion) -> str:
            faults = _requirement_faults(key, operator, values, version)
            return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"

        raise SelectorError(text)
    return Requirement(key, operator, values)


def _requirement_faults(key: str, operator: str, values: tuple[str, ...], version: KubernetesVersion) -> list[str]:
    """Source: labels/selector.go ``NewRequirement``."""
    faults = []
    if key_faults(key):
        faults.append(f"key: Invalid value: {quote(key)}: {'; '.join(key_faults(key, version))}")
    if operator in {IN, NOT_IN} and not values:
        faults.append(
            f"values: Invalid value: {_listed((), version)}: for 'in', 'notin' operators, values set can't be empty"
        )
    elif operator in {EXISTS, DOES_NOT_EXIST} and values:
        faults.append(
            f"values: Invalid value: {_listed(values, version)}: values set must be empty for exists and does not exist"
        )
    elif operator in {GREATER, LESS}:
        if len(values) != 1:
            shown = _listed(values, version)
            faults.append(f"values: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required")
        faults += [
            f"values[{index}]: Invalid value: {quote(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if parse_integer(value) is None
        ]
    for index, value in enumerate(values):
        if value_faults(value):
            texts = "; ".join(value_faults(value, version))
            faults.append(f"values[{index}][{key}]: Invalid value: {quote(value)}: {texts}")
    return faults


def _listed(values: tuple[str, ...], version: KubernetesVersion) -> str:
    """Write a list of texts for an error: JSON, or ``%#v`` of Go in older releases.

    Source: field/errors.go ``ErrorBody``; before, ``%#v`` of fmt.
    """
    if gates.SHOWS_JSON.holds(version):
        return json_text(values or None)
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"


def parse_integer(text: str) -> int | None:
    """Parse like ``strconv.ParseInt(text, 10, 64)``, with None for an error. Source: strconv/atoi.go ``ParseInt``."""
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > INT64_DIGITS:
        return None
    # Strip leading zeros: Python rejects integers of more than 4,300 digits.
    number = int(f"{text[0] if text[0] == '-' else ''}{digits or '0'}")
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def _compares(operator: str, label: str | None, bound: str) -> bool:
    """Source: labels/selector.go ``Matches``."""
    value, limit = parse_integer(label or ""), parse_integer(bound)
    if value is None or limit is None:
        return False
    return (operator == GREATER and value > limit) or (operator == LESS and value < limit)


class FieldRequirement(Struct, frozen=True):
    """One condition on a node field. Only ``metadata.name`` has a value.

    Source: nodeaffinity/nodeaffinity.go ``nodeSelectorRequirementsAsFieldSelector``.
    """

    key: str
    value: str
    equal: bool

    def matches(self, name: str) -> bool:
        """Whether the node with this name meets it. Source: nodeaffinity/nodeaffinity.go ``extractNodeFields``."""
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
        terms: Alternatives. An empty tuple matches no node. None without required affinity.

    Source: nodeaffinity/nodeaffinity.go ``RequiredNodeAffinity``.
    """

    pairs: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None


def compile_required_nodes(node_selector: Mapping[str, str] | None, affinity: Affinity | None) -> RequiredNodes:
    """Compile the pod's condition. Source: nodeaffinity/nodeaffinity.go ``GetRequiredNodeAffinity``."""
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodes(selector_from_labels(node_selector), terms)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms. Terms without conditions match no node and are dropped.

    Source: nodeaffinity/nodeaffinity.go ``NewLazyErrorNodeSelector``.
    """
    terms = selector.node_selector_terms or ()
    return tuple(_compile_node_term(term) for term in terms if term.match_expressions or term.match_fields)


def _compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Compile a term with conditions. Source: nodeaffinity.go ``newNodeSelectorTerm``."""
    try:
        expressions = tuple(_requirement(one, _OF_NODES, "a node selector") for one in term.match_expressions or ())
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


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Whether the toleration tolerates the taint.

    ``compares`` is the gate TaintTolerationComparisonOperators, alpha and off up to 1.37.

    Source: core/v1/toleration.go ``ToleratesTaint``.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Equal":
        return (toleration.value or "") == taint.value
    if operator in {GREATER, LESS}:
        return compares and _compares_taint(operator, taint.value, toleration.value or "")
    return operator == EXISTS


def _compares_taint(operator: str, taint: str, bound: str) -> bool:
    """Source: core/v1/toleration.go ``compareNumericValues``."""
    if not _DECIMAL.fullmatch(taint) or not _DECIMAL.fullmatch(bound):
        return False
    return _compares(operator, taint, bound)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration] | None, effects: Iterable[str], *, compares: bool = False
) -> Taint | None:
    """Find the first untolerated taint of these effects. Source: corev1/helpers.go ``FindMatchingUntoleratedTaint``."""
    wanted = frozenset(effects)
    # In the node's order: messages of older releases name the first.
    for taint in taints:
        if taint.effect in wanted and not (
            tolerations and any(tolerates(toleration, taint, compares=compares) for toleration in tolerations)
        ):
            return taint
    return None
