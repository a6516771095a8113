"""The workloads of one namespace, indexed by the labels in their pod templates.

A constraint's selector is compared with the templates of other workloads; only those that share its rarest label are.
"""

from collections.abc import Iterator
from heapq import nsmallest

from webhook.core.api.selectors import EQUALS, IN, Requirement, Selector
from webhook.core.index.objects import Owner
from webhook.core.index.tables.shrinking import drop, drop_under, put_under

OwnerKey = tuple[str, str, str]  # group, kind, name

_POSITIVE = frozenset({EQUALS, IN})


class Templates:
    """The workloads whose templates are known, each under every label of its templates."""

    def __init__(self) -> None:
        self._owners: dict[OwnerKey, Owner] = {}
        self._labelled: dict[tuple[str, str], dict[OwnerKey, Owner]] = {}

    def put(self, key: OwnerKey, owner: Owner) -> None:
        """Add or replace a workload."""
        self.remove(key)
        if owner.templates:
            self._owners[key] = owner
            for label in _labels(owner):
                put_under(self._labelled, label, key, owner)

    def remove(self, key: OwnerKey) -> None:
        """Remove a workload, if it is there."""
        owner = drop(self._owners, key)
        for label in () if owner is None else _labels(owner):
            drop_under(self._labelled, label, key)

    def __bool__(self) -> bool:
        """Whether there is any workload."""
        return bool(self._owners)

    def matching(self, selector: Selector, most: int) -> Iterator[Owner]:
        """The workloads with a template that the selector matches, among the first ``most`` candidates by name."""
        candidates = {} if selector.nothing else self._candidates(selector)
        for key in nsmallest(most, candidates):
            if any(selector.matches(each.labels) for each in candidates[key].templates or ()):
                yield candidates[key]

    def _candidates(self, selector: Selector) -> dict[OwnerKey, Owner]:
        """The workloads with the rarest of the labels that the selector requires; all if it requires none."""
        positive = [self._labelled_as(each) for each in selector.requirements if each.operator in _POSITIVE]
        return min(positive, key=len, default=self._owners)

    def _labelled_as(self, requirement: Requirement) -> dict[OwnerKey, Owner]:
        by_value = [self._labelled.get((requirement.key, value), {}) for value in requirement.values]
        return by_value[0] if len(by_value) == 1 else {key: owner for each in by_value for key, owner in each.items()}


def _labels(owner: Owner) -> set[tuple[str, str]]:
    return {label for each in owner.templates or () for label in each.labels.items()}
