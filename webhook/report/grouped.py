"""What is wrong with a group -> the event that tells of it."""

from collections.abc import Iterator

from webhook.core.api.selectors import valid_selector
from webhook.core.api.spread_group import API_VERSION, CAPS_HELD, KIND, SpreadGroup
from webhook.core.groups.status.forms import Distribution, Status
from webhook.report.scanned import Notice, reference, short_note

GROUP_CAP_EXCEEDED = "GroupCapExceeded"


def group_notices(of: SpreadGroup, status: Status) -> Iterator[Notice]:
    """The event that is due while a cap of the group is broken."""
    broken = [each for each in status.distribution if is_broken(each)]
    if broken:
        yield Notice(
            reason=GROUP_CAP_EXCEEDED,
            keys=frozenset(map(_key, broken)),
            note=short_note(status.condition(CAPS_HELD).message),
            regarding=reference(API_VERSION, KIND, of.meta.namespace, of.meta.name, of.meta.uid),
        )


def is_broken(each: Distribution) -> bool:
    """Whether a domain holds more than the cap leaves."""
    return max(each.domains.values(), default=0) > each.cap


def _key(each: Distribution) -> str:
    selector = valid_selector(each.selector) if each.selector is not None else None
    return f"{each.topology_key} {selector.text if selector is not None else ''}"
