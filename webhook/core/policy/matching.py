"""Exemptions from rules, and the objects they match."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.well_known import NAMESPACE_NAME


class MatchedObject(Struct, frozen=True, kw_only=True):
    """An object to compare with a `Match`. ``namespace_labels`` are empty if unknown."""

    namespace: str
    namespace_labels: Mapping[str, str] = {}
    kind: str = ""
    name: str = ""
    labels: Mapping[str, str] = {}


class Match(Struct, frozen=True, kw_only=True, rename="camel"):
    """Selects the objects of a policy exemption. An object must match every given field."""

    namespace: str | None = None
    namespace_selector: Selector = EVERYTHING
    kind: str | None = None
    name: str | None = None
    selector: Selector = EVERYTHING

    def matches(self, target: MatchedObject) -> bool:
        """Whether every given field matches the object."""
        return (
            self.namespace in {None, target.namespace}
            and self.kind in {None, target.kind}
            and self.name in {None, target.name}
            and self.namespace_selector.matches({NAMESPACE_NAME: target.namespace, **target.namespace_labels})
            and self.selector.matches(target.labels)
        )


class Exemption(Struct, frozen=True, kw_only=True, rename="camel"):
    """Objects whose findings of one rule are only audited. ``expires`` is the last valid day, an ISO date (UTC)."""

    rule: str
    match: Match
    reason: str
    expires: str | None = None
