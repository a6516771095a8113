"""The pod templates of one namespace's workloads, found by the labels that their pods will have."""

from collections.abc import Iterable, Iterator
from itertools import islice

from webhook.core.api.selectors import EQUALS, IN, Requirement, Selector
from webhook.core.index.objects import Owner

OwnerKey = tuple[str, str, str]  # group, kind, name

_POSITIVE = frozenset({EQUALS, IN})


class Templates:
    """The workloads whose templates are known, under every label that one of their templates has."""

    def __init__(self) -> None:
        self._owners: dict[OwnerKey, Owner] = {}
        self._labelled: dict[tuple[str, str], dict[OwnerKey, Owner]] = {}

    def put(self, key: OwnerKey, owner: Owner) -> None:
        """Take a workload as it is now."""
        self.remove(key)
        if owner.templates:
            self._owners[key] = owner
            for label in _labels(owner):
                self._labelled.setdefault(label, {})[key] = owner

    def remove(self, key: OwnerKey) -> None:
        """Let a workload go, known or not."""
        owner = self._owners.pop(key, None)
        for label in () if owner is None else _labels(owner):
            found = self._labelled[label]
            del found[key]
            if not found:
                del self._labelled[label]

    def matching(self, selector: Selector, most: int) -> Iterator[Owner]:
        """The workloads of which the selector matches a template; no more than so many are looked at."""
        for owner in () if selector.nothing else islice(self._candidates(selector), most):
            if any(selector.matches(each.labels) for each in owner.templates or ()):
                yield owner

    def _candidates(self, selector: Selector) -> Iterable[Owner]:
        """Those with the rarest of the labels that the selector asks for."""
        positive = [self._labelled_as(each) for each in selector.requirements if each.operator in _POSITIVE]
        return min(positive, key=len, default=self._owners).values()

    def _labelled_as(self, requirement: Requirement) -> dict[OwnerKey, Owner]:
        found = [self._labelled.get((requirement.key, value), {}) for value in requirement.values]
        return found[0] if len(found) == 1 else {key: owner for each in found for key, owner in each.items()}


def _labels(owner: Owner) -> set[tuple[str, str]]:
    return {label for each in owner.templates or () for label in each.labels.items()}
