"""The selector of default constraints, from the pod's Services and controller.

Source: kube-scheduler plugins/helper/spread.go.
"""

from collections.abc import Mapping

from webhook.core.api.selectors import NOTHING, Selector, selector_from_labels, valid_selector
from webhook.core.api.types import EQUALS, LabelSelector, LabelSelectorRequirement, ObjectMeta, Service
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.workloads.kinds import REPLICATION_CONTROLLER, SELECTING, native_version

# The scheduler supports only this version of each.
_SELECTING_OWNERS = {(native_version(kind), kind[1]) for kind in SELECTING}
_REPLICATION_CONTROLLER = (native_version(REPLICATION_CONTROLLER), REPLICATION_CONTROLLER[1])


def default_selector(meta: ObjectMeta, namespace: str, index: ReadOnlyIndex) -> Selector:
    """Return the selector of default constraints. Empty without a Service or owner.

    Source: plugins/helper/spread.go ``DefaultSelector``.
    """
    pairs: dict[str, str] = {}
    for service in pod_services(meta.labels or {}, namespace, index):
        pairs |= (service.spec and service.spec.selector) or {}
    controller = meta.controller
    if controller is None or (controller.api_version, controller.kind) not in _SELECTING_OWNERS:
        return selector_from_labels(pairs)
    # By name only: the scheduler does not compare uids.
    owner = index.owners.get(controller.api_version, controller.kind, namespace, controller.name)
    selector = owner.selector if owner else None
    if (controller.api_version, controller.kind) == _REPLICATION_CONTROLLER:
        return selector_from_labels(pairs | dict((selector and selector.match_labels) or {}))
    owned = valid_selector(selector) or NOTHING
    return selector_from_labels(pairs).joined(owned.requirements)


def pod_services(labels: Mapping[str, str], namespace: str, index: ReadOnlyIndex) -> tuple[Service, ...]:
    """Return the namespace's Services that select a pod, sorted by name.

    A Service without a selector selects no pod. A Service with an empty selector selects every pod.

    Source: plugins/helper/spread.go ``GetPodServices``.
    """
    services = index.namespaces.services(namespace) if namespace else index.namespaces.all_services()
    selecting = (service for service in services if _selects(service.spec.selector if service.spec else None, labels))
    return tuple(sorted(selecting, key=lambda service: (service.metadata or ObjectMeta()).name))


def label_selector(selector: Selector) -> LabelSelector:
    """Convert a compiled selector to the API's form.

    The selector can combine a Service and a controller, so two requirements can name different values of one key.
    matchLabels has only one value for a key, so the second value becomes an expression. Equal requirements are merged.

    Source: meta/v1/helpers.go ``LabelSelectorAsSelector``, the inverse of this function.
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
    """Source: plugins/helper/spread.go ``GetPodServices``."""
    return selector is not None and selector.items() <= labels.items()
