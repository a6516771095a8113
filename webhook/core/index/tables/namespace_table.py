"""The table of namespaces, services, SpreadGroups, and the objects that admission of pods reads."""

from collections.abc import Collection, Mapping
from operator import attrgetter

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.spread_group import MOST_GROUPS, SpreadGroup
from webhook.core.api.types import Service
from webhook.core.api.well_known import NAMESPACE_NAME
from webhook.core.apiserver.admission_plugins import (
    LIMIT_RANGE,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    AdmissionFacts,
    limit_ranges_disagree,
)
from webhook.core.index.objects import AdmissionObject, Namespace, meta_of
from webhook.core.index.read_only import Namespaces
from webhook.core.index.tables.shrinking import drop, drop_under, put_under

# Kind -> the resource of its objects.
ADMISSION_RESOURCES = {LIMIT_RANGE: "limitranges", PRIORITY_CLASS: "priorityclasses", RUNTIME_CLASS: "runtimeclasses"}

_AdmissionKey = tuple[str, str, str, tuple[str, ...]]  # namespace, classes, and the unreadable kinds
# Nearly every review needs one of a few answers, but the author of a pod can choose any names.
_MOST_ANSWERS = 256
_LONGEST_KEPT = 400  # characters of all names together


class NamespaceTable(Namespaces):
    """Namespaces with their objects, and the objects that kube-apiserver's admission plugins read.

    Args:
        lacking: The unreadable resources. The caller may change it.
    """

    def __init__(self, lacking: Collection[str]) -> None:
        self._lacking = lacking
        self._namespaces: dict[str, Namespace] = {}
        self._services: dict[str, dict[str, Service]] = {}
        self._groups: dict[str, dict[str, SpreadGroup]] = {}
        self._oldest: dict[str, tuple[SpreadGroup, ...]] = {}  # Cached until a group of the namespace changes.
        self._ranges: dict[str, dict[str, LimitRange]] = {}
        self._priorities: dict[str, PriorityClass] = {}
        self._defaults: dict[str, PriorityClass] = {}
        self._runtimes: dict[str, RuntimeClass] = {}
        self._answers: dict[_AdmissionKey, AdmissionFacts] = {}

    def put(self, value: Namespace | Service | SpreadGroup | AdmissionObject) -> None:
        """Add or replace an object."""
        namespace, name = meta_of(value).namespace, meta_of(value).name
        match value:
            case Namespace():
                self._namespaces[name] = value
            case Service():
                put_under(self._services, namespace, name, value)
            case SpreadGroup():
                put_under(self._groups, namespace, name, value)
                drop(self._oldest, namespace)
            case LimitRange():
                self._answers.clear()
                put_under(self._ranges, namespace, name, value)
            case RuntimeClass():
                self._answers.clear()
                self._runtimes[name] = value
            case PriorityClass():
                self.remove(value)  # It can be a default no longer.
                self._priorities[name] = value
                if value.global_default:
                    self._defaults[name] = value

    def remove(self, value: Namespace | Service | SpreadGroup | AdmissionObject) -> None:
        """Remove an object, if present."""
        namespace, name = meta_of(value).namespace, meta_of(value).name
        match value:
            case Namespace():
                drop(self._namespaces, name)
            case Service():
                drop_under(self._services, namespace, name)
            case SpreadGroup():
                drop_under(self._groups, namespace, name)
                drop(self._oldest, namespace)
            case LimitRange():
                self._answers.clear()
                drop_under(self._ranges, namespace, name)
            case RuntimeClass():
                self._answers.clear()
                drop(self._runtimes, name)
            case PriorityClass():
                self._answers.clear()
                drop(self._priorities, name)
                drop(self._defaults, name)

    def known(self) -> set[str]:
        """All namespaces with a Namespace object or a service."""
        return {*self._namespaces, *self._services}

    def labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._namespaces.get(name)
        if namespace is None:
            return None
        # The API server adds this label to every namespace. Objects from files can lack it.
        return {NAMESPACE_NAME: name, **(namespace.meta.labels or {})}

    def raw_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._namespaces.get(name)
        return None if namespace is None else namespace.meta.labels or {}

    def all_labels(self) -> Mapping[str, Mapping[str, str]]:
        return {name: namespace.meta.labels or {} for name, namespace in self._namespaces.items()}

    def services(self, name: str) -> tuple[Service, ...]:
        return tuple(self._services[name].values()) if name in self._services else ()

    def all_services(self) -> tuple[Service, ...]:
        return tuple(service for services in self._services.values() for service in services.values())

    def groups(self, name: str) -> tuple[SpreadGroup, ...]:
        return self._oldest_first(name)[:MOST_GROUPS]

    def all_groups(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        return {namespace: self._oldest_first(namespace) for namespace in self._groups}

    def _oldest_first(self, namespace: str) -> tuple[SpreadGroup, ...]:
        """All groups of the namespace. The order is cached, because reviews need it and users can create many."""
        if namespace not in self._groups:
            return ()
        if namespace not in self._oldest:
            known = self._groups[namespace].values()
            self._oldest[namespace] = tuple(sorted(known, key=attrgetter("age_order")))
        return self._oldest[namespace]

    def admission_facts(self, name: str, priority_class: str, runtime_class: str) -> AdmissionFacts:
        unread = tuple([kind for kind, resource in ADMISSION_RESOURCES.items() if resource in self._lacking])
        key = name, priority_class, runtime_class, unread
        known = self._answers.get(key)
        if known is None:
            known = self._facts(name, priority_class, runtime_class, {*unread})
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            if len(name) + len(priority_class) + len(runtime_class) <= _LONGEST_KEPT:
                self._answers[key] = known
        return known

    def _facts(self, namespace: str, priority_class: str, runtime_class: str, unread: set[str]) -> AdmissionFacts:
        """Return the LimitRanges, PriorityClass and RuntimeClass for a pod's admission.

        Removes kinds from ``unread`` if the pod does not need them, or if the pod's object of the kind is known.

        Source: priority/admission.go ``getDefaultPriorityClass``; runtimeclass/admission.go ``prepareObjects``.
        """
        # Upstream takes them in a random order; see `limit_ranges_disagree`.
        ranges = tuple(limits for _, limits in sorted(self._ranges.get(namespace, {}).items()))
        if priority_class:
            priority = self._priorities.get(priority_class)
        else:
            priority = min(
                self._defaults.values(), key=lambda default: (default.value, default.meta.name), default=None
            )
        runtime = self._runtimes.get(runtime_class)
        absent = {PRIORITY_CLASS: priority_class and priority is None, RUNTIME_CLASS: runtime_class and runtime is None}
        unread -= {RUNTIME_CLASS} if not runtime_class or runtime else set()
        unread -= {PRIORITY_CLASS} if priority_class and priority else set()
        missing = tuple(kind for kind, is_absent in absent.items() if is_absent and kind not in unread)
        unclear = {LIMIT_RANGE} if limit_ranges_disagree(ranges) else set()
        unknown = unread | unclear | {*missing}
        return AdmissionFacts(
            limit_ranges=ranges,
            priority_class=priority,
            runtime_class=runtime,
            unknown=tuple(kind for kind in ADMISSION_RESOURCES if kind in unknown),
            missing=missing,
        )
