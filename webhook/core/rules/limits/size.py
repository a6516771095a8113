"""How large an object may be for rules to look at it: beside a cluster, and at all.

Each limit is far above what people write. Those of a template are of what is looked up on every node or counted among
all pods: beside 5,000 nodes the largest template takes some 40 ms more than a plain one. Those of the whole object are
of what rules compare with each other, which without a cluster takes at most 5 ms then.
"""

from collections.abc import Iterator, Sequence

from webhook.core.api.types import LabelSelector, PodAffinityTerm, PodSpec, SpreadConstraint
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

_TOO_MANY_COUNTED = f"more than {_MAX_COUNTED_TERMS} constraints and required pod affinity terms"
_TOO_MANY_RESOURCES = f"more than {_MAX_RESOURCES} resources"
_TOO_MANY_NODE_REQUIREMENTS = f"more than {_MAX_NODE_REQUIREMENTS} requirements on nodes"
_TOO_MANY_TOLERATIONS = f"more than {_MAX_TOLERATIONS} tolerations"
_TOO_MANY_LABEL_REQUIREMENTS = f"more than {_MAX_LABEL_REQUIREMENTS} labels in selectors"
_TOO_MANY_TEMPLATES = f"more than {MAX_TEMPLATES} pod templates"

_OF_A_TEMPLATE = (
    (_MAX_COUNTED_TERMS, _TOO_MANY_COUNTED),
    (_MAX_RESOURCES, _TOO_MANY_RESOURCES),
    (_MAX_NODE_REQUIREMENTS, _TOO_MANY_NODE_REQUIREMENTS),
    (_MAX_TOLERATIONS, _TOO_MANY_TOLERATIONS),
    (_MAX_LABEL_REQUIREMENTS, _TOO_MANY_LABEL_REQUIREMENTS),
)
# In all templates together: rules compare constraints with each other, and try a fix of one on all of them.
_MAX_CONSTRAINTS = 128
# Each is asked for among the others, and when a fix is tried.
_MAX_KEYS = 1024
_TOO_MANY_CONSTRAINTS = f"more than {_MAX_CONSTRAINTS} constraints"
_TOO_MANY_KEYS = f"more than {_MAX_KEYS:,} labels, values and keys in constraints"
# Of JSON, wherever they are. A million take a decoder 0.1 to 0.2 s, in which nothing else runs.
MAX_VALUES = 65_536
TOO_MANY_VALUES = f"more than {MAX_VALUES:,} values"

TOO_LONG = "a review of more than 7 MiB"
IMMENSE = frozenset({_TOO_MANY_CONSTRAINTS, _TOO_MANY_KEYS, TOO_MANY_VALUES, TOO_LONG})
"""Why no rule looks at an object."""
TOO_COSTLY = "too costly to look at beside this cluster"
BUSY = "busy with other large objects"
CROWDED = "busy with large objects of others"
"""Why no process had time, through no fault of the author: rules look at the cluster without a search then."""
TIMELY = frozenset({TOO_COSTLY, BUSY})
"""Why there was no time for an object that costs much; see `cost`."""
TOO_LARGE = IMMENSE | TIMELY | {_TOO_MANY_TEMPLATES, *(text for _, text in _OF_A_TEMPLATE)}
"""What rules lack of an object that is too large for them."""


def immense(constraints: Sequence[SpreadConstraint]) -> str:
    """The first limit that the constraints of all templates exceed, one of `IMMENSE`; empty if they are few enough."""
    if len(constraints) > _MAX_CONSTRAINTS:
        return _TOO_MANY_CONSTRAINTS
    return _TOO_MANY_KEYS if keys_in(constraints) > _MAX_KEYS else ""


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


def exceeded(workload: Workload) -> str:
    """The first limit that the object exceeds, one of `TOO_LARGE`; empty if it is small enough."""
    if len(workload.templates) > MAX_TEMPLATES:
        return _TOO_MANY_TEMPLATES
    for template in workload.templates:
        for (most, text), size in zip(_OF_A_TEMPLATE, _sizes(template.template.pod_spec), strict=True):
            if size > most:
                return text
    return ""


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
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        yield len(term.match_expressions or ()) + len(term.match_fields or ())


def _label_requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())
