"""The selector that the scheduler gives default constraints: what Services and controllers select."""

from collections.abc import Mapping

from webhook.core.api.selectors import EQUALS, NOTHING, Selector, SelectorError, compile_selector, selector_from_labels
from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, ObjectMeta, Service
from webhook.core.index.cluster_index import ClusterIndex

_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_SELECTING_OWNERS = {_REPLICATION_CONTROLLER, ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


def default_selector(meta: ObjectMeta, namespace: str, index: ClusterIndex) -> Selector:
    """What the scheduler deduces for a pod with this metadata; empty where there is nothing to deduce it from."""
    pairs: dict[str, str] = {}
    for service in pod_services(meta.labels or {}, namespace, index):
        pairs |= (service.spec and service.spec.selector) or {}
    controller = meta.controller
    if controller is None or (controller.api_version, controller.kind) not in _SELECTING_OWNERS:
        return selector_from_labels(pairs)
    # By name alone: the scheduler does not compare the uid either.
    owner = index.owner(controller.api_version, controller.kind, namespace, controller.name)
    selector = owner.selector if owner else None
    if (controller.api_version, controller.kind) == _REPLICATION_CONTROLLER:
        return selector_from_labels(pairs | dict((selector and selector.match_labels) or {}))
    try:
        owned = compile_selector(selector)
    except SelectorError:
        owned = NOTHING
    return selector_from_labels(pairs).joined(owned.requirements)


def pod_services(labels: Mapping[str, str], namespace: str, index: ClusterIndex) -> tuple[Service, ...]:
    """The namespace's Services that select a pod with these labels, by name.

    Shape: a Service without selector selects nothing, one with an empty selector everything.
    """
    services = index.services(namespace) if namespace else index.all_services()
    found = (s for s in services if _selects(s.spec.selector if s.spec else None, labels))
    return tuple(sorted(found, key=lambda service: (service.metadata or ObjectMeta()).name))


def label_selector(selector: Selector) -> LabelSelector:
    """A compiled selector as a constraint in a pod has to say it.

    Shape: a key that must equal two values (an owner that does not select the pod) cannot stand twice in matchLabels;
    its second value becomes an expression. What is asked twice is said once.
    """
    labels: dict[str, str] = {}
    expressions: dict[LabelSelectorRequirement, None] = {}
    for part in selector.requirements:
        if part.operator == EQUALS and labels.setdefault(part.key, part.values[0]) == part.values[0]:
            continue
        operator = "In" if part.operator == EQUALS else part.operator
        expressions[LabelSelectorRequirement(key=part.key, operator=operator, values=part.values or None)] = None
    return LabelSelector(match_labels=labels or None, match_expressions=tuple(expressions) or None)


def _selects(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.items() <= labels.items()
