"""The table of owners and autoscalers, with an index of the pod templates' labels.

Rules compare a constraint's selector with the templates of other workloads. Only templates with the selector's rarest
required label are compared.
"""

from collections.abc import Iterator
from heapq import nsmallest

from webhook.core.api.requirements import Requirement
from webhook.core.api.selectors import Selector
from webhook.core.api.types import EQUALS, IN
from webhook.core.budget import check_time
from webhook.core.index.objects import Autoscaler, Owner, is_controlled_by
from webhook.core.index.read_only import Owners
from webhook.core.index.tables.shrinking import Grouped, drop, drop_under, put_under
from webhook.core.workloads.kinds import GroupKind, group_of

_OwnerKey = tuple[str, str, str]  # group, kind, name

_POSITIVE = frozenset({EQUALS, IN})


class OwnerTable(Owners):
    """Owners by namespace, kind and name, and autoscalers by their target."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[GroupKind, dict[str, Owner]]] = {}
        self._templates: dict[str, _Templates] = {}
        self._scalers = Grouped[tuple[str, GroupKind, str], tuple[str, str], Autoscaler]()

    def put(self, value: Owner | Autoscaler) -> None:
        """Add or replace an object."""
        namespace, name = value.meta.namespace, value.meta.name
        if isinstance(value, Autoscaler):
            self._scalers.put(value.target, (namespace, name), value)
            return
        kind = group_of(value.api_version), value.kind
        put_under(self._owners.setdefault(namespace, {}), kind, name, value)
        templates = self._templates.setdefault(namespace, _Templates())
        templates.put((*kind, name), value)
        if not templates:
            drop(self._templates, namespace)

    def remove(self, value: Owner | Autoscaler) -> None:
        """Remove an object, if present."""
        namespace, name = value.meta.namespace, value.meta.name
        if isinstance(value, Autoscaler):
            self._scalers.remove((namespace, name))
            return
        kind = group_of(value.api_version), value.kind
        kinds, templates = self._owners.get(namespace), self._templates.get(namespace)
        if kinds is not None:
            drop_under(kinds, kind, name)
            if not kinds:
                drop(self._owners, namespace)
        if templates is not None:
            templates.remove((*kind, name))
            if not templates:
                drop(self._templates, namespace)

    def namespaces(self) -> tuple[str, ...]:
        """All namespaces with an owner."""
        return tuple(self._owners)

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        check_time()
        return self._owners.get(namespace, {}).get((group_of(api_version), kind), {}).get(name)

    def of_namespace(self, namespace: str) -> tuple[Owner, ...]:
        check_time()
        return tuple(owner for owners in self._owners.get(namespace, {}).values() for owner in owners.values())

    def controlled(self, namespace: str, kind: str, name: str) -> tuple[Owner, ...]:
        return tuple(owner for owner in self.of_namespace(namespace) if is_controlled_by(owner, kind, name))

    def matching(self, namespace: str, selector: Selector, most: int) -> tuple[Owner, ...]:
        check_time()
        templates = self._templates.get(namespace)
        return () if templates is None else tuple(templates.matching(selector, most))

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        scalers = self._scalers.values((namespace, (group_of(api_version), kind), name))
        return min(scalers, key=lambda scaler: scaler.meta.name, default=None)


class _Templates:
    """A table of workloads with known pod templates, indexed by each template label."""

    def __init__(self) -> None:
        self._owners: dict[_OwnerKey, Owner] = {}
        self._labelled: dict[tuple[str, str], dict[_OwnerKey, Owner]] = {}

    def put(self, key: _OwnerKey, owner: Owner) -> None:
        """Add or replace a workload."""
        self.remove(key)
        if owner.templates:
            self._owners[key] = owner
            for label in _labels(owner):
                put_under(self._labelled, label, key, owner)

    def remove(self, key: _OwnerKey) -> None:
        """Remove a workload, if present."""
        owner = drop(self._owners, key)
        for label in () if owner is None else _labels(owner):
            drop_under(self._labelled, label, key)

    def __bool__(self) -> bool:
        """Whether the table has any workload."""
        return bool(self._owners)

    def matching(self, selector: Selector, most: int) -> Iterator[Owner]:
        """The workloads with a matching template, among the first ``most`` candidates by name."""
        candidates = {} if selector.nothing else self._candidates(selector)
        for key in nsmallest(most, candidates):
            if any(selector.matches(template.labels) for template in candidates[key].templates or ()):
                yield candidates[key]

    def _candidates(self, selector: Selector) -> dict[_OwnerKey, Owner]:
        """Return the workloads with the selector's rarest required label.

        Return all workloads if the selector requires no label.
        """
        positive = [
            self._labelled_as(requirement) for requirement in selector.requirements if requirement.operator in _POSITIVE
        ]
        return min(positive, key=len, default=self._owners)

    def _labelled_as(self, requirement: Requirement) -> dict[_OwnerKey, Owner]:
        by_value = [self._labelled.get((requirement.key, value), {}) for value in requirement.values]
        return (
            by_value[0] if len(by_value) == 1 else {key: owner for owners in by_value for key, owner in owners.items()}
        )


def _labels(owner: Owner) -> set[tuple[str, str]]:
    return {label for template in owner.templates or () for label in template.labels.items()}
