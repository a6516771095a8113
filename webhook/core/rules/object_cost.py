"""Limits for the size of an object, and the estimated cost of its evaluation.

Each limit is far above real objects. The limits of a template bound the lookups on nodes and the counts of pods. With
5,000 nodes the largest template takes about 40 ms more than a plain template. The limits of a whole object bound the
comparisons between its constraints, up to 5 ms without a cluster.

    cost = milliseconds for the object's text + milliseconds for each template with 5,000 nodes (less with fewer nodes)

The cost is a weighted sum of the object's fields. A weight is the time of one more field with the most expensive
operator, kind and key, measured by `bench/field_cost.py`. On the measuring machine, a review of two correct constraints
takes 34 µs without a cluster. The weights for the text assume one fault per constraint.
"""

from collections.abc import Iterable, Sequence

from webhook.core.api.types import (
    GREATER,
    LESS,
    Affinity,
    LabelSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodSpec,
    PreferredSchedulingTerm,
    SpreadConstraint,
)
from webhook.core.api.well_known import JOB_COMPLETION_INDEX, POD_INDEX, REGION, WORKER_INDEX, ZONE
from webhook.core.budget import Missing, Reason
from webhook.core.workloads.workload import Workload

# Limits of a template. Unit: fields.
_MAX_COUNTED_TERMS = 16  # Constraints and affinity terms: the pods are counted for each.
_MAX_RESOURCES = 32  # Looked up on every node, as are the next two.
_MAX_NODE_REQUIREMENTS = 128
_MAX_TOLERATIONS = 128
_MAX_LABEL_REQUIREMENTS = 256  # each is compared with the labels of every group of equal pods
# Limits of an object. Unit: templates, constraints, keys.
MAX_TEMPLATES = 64  # each is placed separately
_MAX_CONSTRAINTS = 128  # rules compare constraints pairwise, and try each fix on all of them
_MAX_KEYS = 1024  # labels, values and keys are compared with each other, again for each tried fix

_OF_A_TEMPLATE = (
    (_MAX_COUNTED_TERMS, "constraints and required pod affinity terms"),
    (_MAX_RESOURCES, "resources"),
    (_MAX_NODE_REQUIREMENTS, "requirements on nodes"),
    (_MAX_TOLERATIONS, "tolerations"),
    (_MAX_LABEL_REQUIREMENTS, "labels in selectors"),
)
# JSON values anywhere in the object. A decoder blocks all other work for 0.1 to 0.2 s per million values.
MAX_VALUES = 65_536
TOO_MANY_VALUES = Reason(f"more than {MAX_VALUES:,} values", Missing.IMMENSE)


def exceeded_constraint_limit(constraints: Sequence[SpreadConstraint]) -> Reason | None:
    """Return the first limit exceeded by the constraints of all templates. None if all limits are kept."""
    if len(constraints) > _MAX_CONSTRAINTS:
        return Reason(f"more than {_MAX_CONSTRAINTS} constraints", Missing.IMMENSE)
    if keys_in(constraints) > _MAX_KEYS:
        return Reason(f"more than {_MAX_KEYS:,} labels, values and keys in constraints", Missing.IMMENSE)
    return None


def keys_in(constraints: Sequence[SpreadConstraint]) -> int:
    """Count the labels, values and keys of the constraints."""
    keys = 0
    for each in constraints:
        keys += len(each.match_label_keys or ()) + _labels_in(each.selector)
    return keys


def _labels_in(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    labels = len(selector.match_labels or ())
    for each in selector.match_expressions or ():
        labels += 1 + len(each.values or ())
    return labels


def exceeded_template_limit(workload: Workload) -> Reason | None:
    """Return the first size limit exceeded by a pod template. None if all are kept.

    Above a limit, rules with cluster data are not evaluated.
    """
    if len(workload.templates) > MAX_TEMPLATES:
        return Reason(f"more than {MAX_TEMPLATES} pod templates", Missing.TOO_LARGE)
    for template in workload.templates:
        for (most, things), size in zip(_OF_A_TEMPLATE, _sizes(template.pod.pod_spec), strict=True):
            if size > most:
                return Reason(f"more than {most} {things}", Missing.TOO_LARGE)
    return None


def _sizes(spec: PodSpec) -> tuple[int, ...]:
    """Count the entries of a pod spec for each limit in `_OF_A_TEMPLATE`, for example tolerations."""
    terms = _required_terms(spec)
    expressions = [len(term.match_expressions or ()) + len(term.match_fields or ()) for term in spec.node_terms or ()]
    labels = sum(_label_requirements(constraint.selector) for constraint in spec.constraints)
    for term in terms:
        labels += _label_requirements(term.label_selector) + _label_requirements(term.namespace_selector)
        labels += len(term.namespaces or ())
    return (
        len(spec.constraints) + len(terms),
        _resources(spec),
        len(spec.node_selector or ()) + sum(expressions),
        len(spec.tolerations or ()),
        labels,
    )


def _required_terms(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    return (*(spec.pod_affinity.required or ()), *(spec.pod_anti_affinity.required or ()))


def _resources(spec: PodSpec) -> int:
    names = {*(spec.overhead or ())}
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    for asked in (spec.resources, *[each.resources for each in containers]):
        if asked is not None:
            names.update(asked.requests or (), asked.limits or ())
    return len(names)


def _label_requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())


MOST_IN_LINE = 5.0
"""The highest cost of a review in the event loop, where others wait. Unit: milliseconds."""

_NODES = 5000  # the measured cluster; the weights below apply to it
# Milliseconds for each field of the text, without a cluster.
_WRITTEN_TEMPLATE, _WRITTEN_CONSTRAINT, _WRITTEN_KEY = 0.1, 0.15, 0.02
_BARE_TEMPLATE = 0.02  # without constraints, only pods-refused evaluates it
_WRITTEN_TERM_LABEL = 0.005  # the syntax of labels is checked, for some several times
# Milliseconds for each field, with 5,000 nodes.
_POD, _TEMPLATE = 0.3, 1.7  # two constraints: one dry run, or all placement rules
_OF_THREE_HARD = 1 / 48  # the cause is searched in every set of constraints: 6 take 4.5 ms, 10 take 21
_POD_TERM = 0.4  # pods are counted for it
_PREFERRED_TERM = 0.004
_NODE_REQUIREMENT = 0.01
_COMPARED = 5.0  # Gt and Lt parse every value of the label on nodes
_COMPARING = frozenset({GREATER, LESS})
_VALUE = 0.003
_LABEL = 0.008
# Labels of all services with few values. A selector with such a label counts most pods, 150,000 in 10 ms.
_SHARED_VALUES, _SHARED_VALUE = frozenset({ZONE, REGION, POD_INDEX, JOB_COMPLETION_INDEX, WORKER_INDEX}), 10.0
_TOLERATION = 0.01
_USUAL_RESOURCES, _RESOURCE = 2, 0.55  # cpu and memory have columns in the index
_OTHER = 0.006  # a volume, for any number of nodes; a label, a port or a container takes less


def is_costly(workload: Workload, nodes: int) -> bool:
    """Whether evaluating the workload would delay other reviews too much.

    False if the workload exceeds a limit of `exceeded_constraint_limit`.
    """
    return weigh(workload, nodes)[0]


def weigh(workload: Workload, nodes: int, *, grouped: bool = False) -> tuple[bool, Reason | None]:
    """Return whether an object is too costly, and which limit its constraints exceed.

    The evaluation of a costly object would delay other reviews. The limit is the result of
    `exceeded_constraint_limit`, or None. An object above it is not evaluated, so it is not costly.

    Args:
        workload: The object.
        nodes: The number of nodes in the cluster.
        grouped: Whether a SpreadGroup selects a pod template of the object.
    """
    if cost(workload, nodes, grouped=grouped) <= MOST_IN_LINE:
        return False, None
    # The text of an immense object alone costs more.
    limit = exceeded_constraint_limit(
        [each for template in workload.templates for each in template.pod.pod_spec.constraints]
    )
    return not limit and (
        not exceeded_template_limit(workload) or cost(workload, 0, grouped=grouped) > MOST_IN_LINE
    ), limit


def cost(workload: Workload, nodes: int, *, grouped: bool = False) -> float:
    """Return an upper bound of the evaluation time of an object within the limits.

    Args:
        workload: The object.
        nodes: The nodes of the cluster. More than 5,000 count as 5,000.
        grouped: Whether a SpreadGroup selects a template. Then its pods are placed even without constraints.

    Returns:
        Milliseconds.
    """
    # Expensive rules need constraints or caps of a group. There may be thousands of templates.
    if not grouped and not any(each.pod.pod_spec.constraints for each in workload.templates):
        return max(0, len(workload.templates) - MAX_TEMPLATES) * _BARE_TEMPLATE
    written, beside = 0.0, 0.0
    once = _POD if workload.is_pod else _TEMPLATE
    for each in workload.templates:
        spec = each.pod.pod_spec
        constraints = spec.constraints
        written += _WRITTEN_TEMPLATE + len(constraints) * _WRITTEN_CONSTRAINT + keys_in(constraints) * _WRITTEN_KEY
        if nodes:
            written += _labels_in_terms(spec) * _WRITTEN_TERM_LABEL
            written += (len(each.pod.labels) + len(spec.volumes or ()) + _containers_and_ports(spec)) * _OTHER
            written += _preferred_terms(spec) * _PREFERRED_TERM
            beside += once + _of_spec(spec)
    return written + beside * min(1.0, nodes / _NODES)


def _labels_in_terms(spec: PodSpec) -> int:
    if spec.affinity is None:
        return 0
    preferred = (each.preference for each in _preferred_node_terms(spec.affinity) if each.preference is not None)
    node_terms = (*(spec.node_terms or ()), *preferred)
    pod_terms = (*spec.pod_affinity.terms, *spec.pod_anti_affinity.terms)
    return sum(len(each.values or ()) for term in node_terms for each in _requirements(term)) + sum(
        _labels_in(each.label_selector) + _labels_in(each.namespace_selector) for each in pod_terms
    )


def _preferred_node_terms(affinity: Affinity) -> Sequence[PreferredSchedulingTerm]:
    return (affinity.node_affinity.preferred if affinity.node_affinity else None) or ()


def _requirements(term: NodeSelectorTerm) -> tuple[NodeSelectorRequirement, ...]:
    return (*(term.match_expressions or ()), *(term.match_fields or ()))


def _of_spec(spec: PodSpec) -> float:
    hard, labels = 0, 0.0
    for each in spec.constraints:
        hard += each.hard
        labels += _of_labels(each.selector, each.match_label_keys or ())
    return (
        hard**3 * _OF_THREE_HARD
        + labels
        + (0 if spec.affinity is None else _of_affinity(spec))
        + len(spec.node_selector or ()) * _NODE_REQUIREMENT
        + len(spec.tolerations or ()) * _TOLERATION
        + max(0, _resources(spec) - _USUAL_RESOURCES) * _RESOURCE
    )


def _of_affinity(spec: PodSpec) -> float:
    required_terms = _required_terms(spec)
    return (
        len(required_terms) * _POD_TERM
        + sum(
            _of_labels(each.label_selector, (*(each.match_label_keys or ()), *(each.mismatch_label_keys or ())))
            for each in required_terms
        )
        + _of_node_terms(spec.node_terms or ())
    )


def _preferred_terms(spec: PodSpec) -> int:
    if spec.affinity is None:
        return 0
    kinds = (spec.pod_affinity.preferred, spec.pod_anti_affinity.preferred, _preferred_node_terms(spec.affinity))
    return sum(len(each or ()) for each in kinds)


def _of_labels(selector: LabelSelector | None, keys: tuple[str, ...]) -> float:
    shared = len(_SHARED_VALUES.intersection(keys))
    if selector is None:
        return shared * _SHARED_VALUE
    labels = selector.match_labels or {}
    requirements, values = len(labels), 0
    shared += len(_SHARED_VALUES.intersection(labels))
    for each in selector.match_expressions or ():
        requirements += 1
        values += len(each.values or ())
        shared += each.key in _SHARED_VALUES
    return requirements * _LABEL + values * _VALUE + shared * _SHARED_VALUE


def _of_node_terms(terms: Iterable[NodeSelectorTerm]) -> float:
    total = 0.0
    for term in terms:
        for each in _requirements(term):
            total += _COMPARED if each.operator in _COMPARING else _NODE_REQUIREMENT
            total += len(each.values or ()) * _VALUE
    return total


def _containers_and_ports(spec: PodSpec) -> int:
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return len(containers) + sum(len(each.ports or ()) for each in containers)
