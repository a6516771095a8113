"""Size limits of objects: for rules that need the cluster, and for all rules.

Each limit is far above real objects. Limits of a template bound lookups per node and counts of pods. With 5,000 nodes
the largest template takes about 40 ms more than a plain one. Limits of the whole object bound comparisons between
constraints, which take up to 5 ms without a cluster.
"""

from collections.abc import Iterator, Sequence

from webhook.core.api.types import LabelSelector, PodAffinityTerm, PodSpec, SpreadConstraint
from webhook.core.budget import Missing, Reason
from webhook.core.workloads.workload import Workload

# Pods are counted for each.
_MAX_COUNTED_TERMS = 16
# Each is looked up on every node.
_MAX_RESOURCES = 32
_MAX_NODE_REQUIREMENTS = 128
_MAX_TOLERATIONS = 128
# Each is compared with the labels of every kind of pod that there is.
_MAX_LABEL_REQUIREMENTS = 256
# Each is placed by itself.
MAX_TEMPLATES = 64

_OF_A_TEMPLATE = (
    (_MAX_COUNTED_TERMS, "constraints and required pod affinity terms"),
    (_MAX_RESOURCES, "resources"),
    (_MAX_NODE_REQUIREMENTS, "requirements on nodes"),
    (_MAX_TOLERATIONS, "tolerations"),
    (_MAX_LABEL_REQUIREMENTS, "labels in selectors"),
)
# In all templates together. Rules compare constraints pairwise, and try each fix on all of them.
_MAX_CONSTRAINTS = 128
# Each is compared with the others, again for each tried fix.
_MAX_KEYS = 1024
# JSON values anywhere in the object. A decoder blocks all other work for 0.1 to 0.2 s per million values.
MAX_VALUES = 65_536
TOO_MANY_VALUES = Reason(f"more than {MAX_VALUES:,} values", Missing.IMMENSE)


def immense(constraints: Sequence[SpreadConstraint]) -> Reason | None:
    """The first limit for all rules that the constraints of all templates exceed. None if they are few enough."""
    if len(constraints) > _MAX_CONSTRAINTS:
        return Reason(f"more than {_MAX_CONSTRAINTS} constraints", Missing.IMMENSE)
    if keys_in(constraints) > _MAX_KEYS:
        return Reason(f"more than {_MAX_KEYS:,} labels, values and keys in constraints", Missing.IMMENSE)
    return None


def keys_in(constraints: Sequence[SpreadConstraint]) -> int:
    """How many labels, values and keys the constraints have."""
    keys = 0
    for each in constraints:
        keys += len(each.match_label_keys or ()) + labels_in(each.selector)
    return keys


def labels_in(selector: LabelSelector | None) -> int:
    """How many labels, values and keys the selector has."""
    if selector is None:
        return 0
    labels = len(selector.match_labels or ())
    for each in selector.match_expressions or ():
        labels += 1 + len(each.values or ())
    return labels


def exceeded(workload: Workload) -> Reason | None:
    """The first limit for rules that need the cluster that the object exceeds. None if it is small enough."""
    if len(workload.templates) > MAX_TEMPLATES:
        return Reason(f"more than {MAX_TEMPLATES} pod templates", Missing.TOO_LARGE)
    for template in workload.templates:
        for (most, things), size in zip(_OF_A_TEMPLATE, _sizes(template.template.pod_spec), strict=True):
            if size > most:
                return Reason(f"more than {most} {things}", Missing.TOO_LARGE)
    return None


def _sizes(spec: PodSpec) -> tuple[int, ...]:
    """How much of each kind there is, in the order of `_OF_A_TEMPLATE`."""
    terms = required_terms(spec)
    labels = 0
    for constraint in spec.constraints:
        labels += _label_requirements(constraint.selector)
    for term in terms:
        labels += _label_requirements(term.label_selector) + _label_requirements(term.namespace_selector)
        labels += len(term.namespaces or ())
    return (
        len(spec.constraints) + len(terms),
        resources(spec),
        len(spec.node_selector or ()) + sum(_expressions(spec)),
        len(spec.tolerations or ()),
        labels,
    )


def required_terms(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """The required terms of affinity and anti-affinity to pods."""
    if spec.affinity is None:
        return ()
    near, apart = spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity
    return (*((near.required if near else None) or ()), *((apart.required if apart else None) or ()))


def resources(spec: PodSpec) -> int:
    """How many different resources the pod asks for."""
    names = {*(spec.overhead or ())}
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    for asked in (spec.resources, *[each.resources for each in containers]):
        if asked is not None:
            names.update(asked.requests or (), asked.limits or ())
    return len(names)


def _expressions(spec: PodSpec) -> Iterator[int]:
    for term in spec.node_terms or ():
        yield len(term.match_expressions or ()) + len(term.match_fields or ())


def _label_requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())
