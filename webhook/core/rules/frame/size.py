"""How large an object may be for rules to look at it beside a cluster.

Each limit is far above what people write, and is of something that is looked up on every node or counted among all
pods: beside 5,000 nodes the largest template takes some 40 ms more than a plain one.
"""

from collections.abc import Iterator
from itertools import chain

from webhook.core.api.types import LabelSelector, PodAffinityTerm, PodSpec
from webhook.core.workloads.workload import Workload

# Pods are counted for each.
_MOST_COUNTED = 16
# Each is looked up on every node.
_MOST_RESOURCES = 32
_MOST_NODE_REQUIREMENTS = 128
_MOST_TOLERATIONS = 128
# Each is compared with the labels of every kind of pod that there is.
_MOST_LABEL_REQUIREMENTS = 256
# Each is placed by itself.
_MOST_TEMPLATES = 64

_TOO_MANY_COUNTED = f"more than {_MOST_COUNTED} constraints and required pod affinity terms"
_TOO_MANY_RESOURCES = f"more than {_MOST_RESOURCES} resources"
_TOO_MANY_NODE_REQUIREMENTS = f"more than {_MOST_NODE_REQUIREMENTS} requirements on nodes"
_TOO_MANY_TOLERATIONS = f"more than {_MOST_TOLERATIONS} tolerations"
_TOO_MANY_LABEL_REQUIREMENTS = f"more than {_MOST_LABEL_REQUIREMENTS} labels in selectors"
_TOO_MANY_TEMPLATES = f"more than {_MOST_TEMPLATES} pod templates"

_OF_A_TEMPLATE = (
    (_MOST_COUNTED, _TOO_MANY_COUNTED),
    (_MOST_RESOURCES, _TOO_MANY_RESOURCES),
    (_MOST_NODE_REQUIREMENTS, _TOO_MANY_NODE_REQUIREMENTS),
    (_MOST_TOLERATIONS, _TOO_MANY_TOLERATIONS),
    (_MOST_LABEL_REQUIREMENTS, _TOO_MANY_LABEL_REQUIREMENTS),
)
TOO_LARGE = frozenset({_TOO_MANY_TEMPLATES, *(text for _, text in _OF_A_TEMPLATE)})
"""What rules lack of an object that is too large for them."""


def exceeded(workload: Workload) -> str:
    """The first limit that the object exceeds, one of `TOO_LARGE`; empty if it is small enough."""
    if len(workload.templates) > _MOST_TEMPLATES:
        return _TOO_MANY_TEMPLATES
    for template in workload.templates:
        for (most, text), size in zip(_OF_A_TEMPLATE, _sizes(template.template.pod_spec), strict=True):
            if size > most:
                return text
    return ""


def _sizes(spec: PodSpec) -> tuple[int, ...]:
    """How much of each kind there is, in the order of `_OF_A_TEMPLATE`."""
    terms = _required_terms(spec)
    selectors = [*(each.selector for each in spec.constraints), *(each.label_selector for each in terms)]
    return (
        len(spec.constraints) + len(terms),
        _resources(spec),
        _node_requirements(spec),
        len(spec.tolerations or ()),
        sum(map(_label_requirements, selectors)) + sum(map(_of_namespaces, terms)),
    )


def _required_terms(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    if spec.affinity is None:
        return ()
    near, apart = spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity
    return (*((near.required if near else None) or ()), *((apart.required if apart else None) or ()))


def _resources(spec: PodSpec) -> int:
    """How many resources the containers request."""
    written = [
        each.resources.requests or ()
        for each in (*(spec.containers or ()), *(spec.init_containers or ()))
        if each.resources
    ]
    return len(set(chain.from_iterable(written)))


def _node_requirements(spec: PodSpec) -> int:
    return len(spec.node_selector or ()) + sum(_expressions(spec))


def _expressions(spec: PodSpec) -> Iterator[int]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        yield len(term.match_expressions or ()) + len(term.match_fields or ())


def _label_requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())


def _of_namespaces(term: PodAffinityTerm) -> int:
    return len(term.namespaces or ()) + _label_requirements(term.namespace_selector)
