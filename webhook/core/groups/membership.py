"""The SpreadGroups that pods belong to: those of their namespace whose selector matches their labels."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.api.selectors import Selector, SelectorError, compile_selector
from webhook.core.api.spread_group import SpreadGroup
from webhook.core.groups.group import Group
from webhook.core.groups.reading import GroupError, group_of
from webhook.core.index.read_only import ReadOnlyIndex


class Membership(Struct, frozen=True):
    """A group as it was ``written`` and read, and the ``selector`` of its pods."""

    written: SpreadGroup
    group: Group
    selector: Selector


def memberships(namespace: str, labels: Mapping[str, str], index: ReadOnlyIndex) -> Iterator[Membership]:
    """The groups of pods with these labels; a group that cannot be planned has no pods."""
    for each in index.namespaces.groups(namespace):
        selector = _selector(each)
        if selector is None or not selector.matches(labels):
            continue
        try:
            yield Membership(each, group_of(each), selector)
        except GroupError:
            continue


def _selector(of: SpreadGroup) -> Selector | None:
    try:
        return None if of.spec is None else compile_selector(of.spec.selector)
    except SelectorError:
        return None
