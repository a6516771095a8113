"""LimitRanges by namespace, PriorityClasses and RuntimeClasses, and what one pod's admission reads of them."""

from collections.abc import Collection

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.apiserver.admission_plugins import (
    LIMIT_RANGE,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    AdmissionFacts,
    disagree,
)
from webhook.core.index.tables.shrinking import drop, drop_under, put_under

AdmissionObject = LimitRange | PriorityClass | RuntimeClass

# Kind -> the resource of its objects.
ADMISSION_RESOURCES = {LIMIT_RANGE: "limitranges", PRIORITY_CLASS: "priorityclasses", RUNTIME_CLASS: "runtimeclasses"}

_Asked = tuple[str, str, str, tuple[str, ...]]  # namespace, classes, and the kinds that were not read
# Nearly every review asks, and for one of few answers; whoever writes a pod chooses the names.
_MOST_ANSWERS = 256
_LONGEST_KEPT = 400  # characters of the names


class AdmissionTable:
    """The objects that kube-apiserver's admission plugins read."""

    def __init__(self) -> None:
        self._ranges: dict[str, dict[str, LimitRange]] = {}
        self._priorities: dict[str, PriorityClass] = {}
        self._defaults: dict[str, PriorityClass] = {}
        self._runtimes: dict[str, RuntimeClass] = {}
        self._answers: dict[_Asked, AdmissionFacts] = {}

    def put(self, value: AdmissionObject) -> None:
        """Add or replace an object."""
        self.remove(value)  # which forgets the answers too
        name = value.meta.name
        match value:
            case LimitRange():
                put_under(self._ranges, value.meta.namespace, name, value)
            case RuntimeClass():
                self._runtimes[name] = value
            case _:
                self._priorities[name] = value
                if value.global_default:
                    self._defaults[name] = value

    def remove(self, value: AdmissionObject) -> None:
        """Remove an object, if it is there."""
        self._answers.clear()
        name = value.meta.name
        match value:
            case LimitRange():
                drop_under(self._ranges, value.meta.namespace, name)
            case RuntimeClass():
                drop(self._runtimes, name)
            case _:
                drop(self._priorities, name)
                drop(self._defaults, name)

    def facts(
        self, namespace: str, priority_class: str, runtime_class: str, lacking: Collection[str]
    ) -> AdmissionFacts:
        """What is read for pods of the namespace that name these classes, if any."""
        unread = tuple([kind for kind, resource in ADMISSION_RESOURCES.items() if resource in lacking])
        asked = namespace, priority_class, runtime_class, unread
        known = self._answers.get(asked)
        if known is None:
            known = self._facts(namespace, priority_class, runtime_class, {*unread})
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            if len(namespace) + len(priority_class) + len(runtime_class) <= _LONGEST_KEPT:
                self._answers[asked] = known
        return known

    def _facts(self, namespace: str, priority_class: str, runtime_class: str, unread: set[str]) -> AdmissionFacts:
        """Source: priority/admission.go ``getDefaultPriorityClass``; runtimeclass/admission.go ``prepareObjects``."""
        # Upstream takes them in a random order; see `disagree`.
        ranges = tuple(each for _, each in sorted(self._ranges.get(namespace, {}).items()))
        if priority_class:
            priority = self._priorities.get(priority_class)
        else:
            priority = min(self._defaults.values(), key=lambda each: (each.value, each.meta.name), default=None)
        runtime = self._runtimes.get(runtime_class)
        absent = {PRIORITY_CLASS: priority_class and priority is None, RUNTIME_CLASS: runtime_class and runtime is None}
        unread -= {RUNTIME_CLASS} if not runtime_class or runtime else set()
        unread -= {PRIORITY_CLASS} if priority_class and priority else set()
        missing = tuple(kind for kind, is_absent in absent.items() if is_absent and kind not in unread)
        unclear = {LIMIT_RANGE} if disagree(ranges) else set()
        unknown = unread | unclear | {*missing}
        return AdmissionFacts(
            limit_ranges=ranges,
            priority_class=priority,
            runtime_class=runtime,
            unknown=tuple(kind for kind in ADMISSION_RESOURCES if kind in unknown),
            missing=missing,
        )
