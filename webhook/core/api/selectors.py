"""Label selectors and their matches.

Selectors are compiled once and evaluated often. A null label selector matches nothing, an empty one everything. In some
releases, spread constraints with an empty selector count no pods: `webhook.core.scheduler.plugins.pod_topology_spread`
handles this.

Source: k8s.io/apimachinery pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go.
"""

from collections.abc import Iterable, Mapping
from operator import attrgetter

from msgspec import Struct

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.requirements import Requirement, SelectorError, checked_requirement, compile_requirement
from webhook.core.api.types import DOES_NOT_EXIST, EQUALS, EXISTS, IN, NOT_IN, LabelSelector

_OF_LABELS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})
_KEY = attrgetter("key")


class Selector(Struct, frozen=True):
    """A compiled label selector.

    Attributes:
        requirements: Sorted by key.
        nothing: True for the null selector, which matches no labels.

    Source: labels/selector.go ``internalSelector``, ``nothingSelector``.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether it matches all labels."""
        return not self.requirements and not self.nothing

    @property
    def contradicts_itself(self) -> bool:
        """Whether two conditions require different values of a key."""
        wanted = dict[str, tuple[str, ...]]()
        return any(
            condition.operator == EQUALS and wanted.setdefault(condition.key, condition.values) != condition.values
            for condition in self.requirements
        )

    @property
    def text(self) -> str:
        """The selector as Kubernetes prints it. Empty for the empty and the null selector.

        Source: labels/selector.go ``String``.
        """
        return ",".join(condition.text for condition in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches these labels. Source: labels/selector.go ``Matches``."""
        return not self.nothing and all(condition.matches(labels) for condition in self.requirements)

    def joined(self, requirements: Iterable[Requirement]) -> "Selector":
        """Add conditions to the selector. Source: labels/selector.go ``Add``."""
        if self.nothing:
            return self
        return Selector(_by_key((*self.requirements, *requirements)))


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector of the API.

        >>> compile_selector(LabelSelector(match_labels={"app": "web"})).matches({"app": "web"})
        True

    Raises:
        SelectorError: If kube-apiserver rejects the selector.

    Source: meta/v1/helpers.go ``LabelSelectorAsSelector``.
    """
    if selector is None:
        return NOTHING
    # A fast path: nearly all labels are valid.
    requirements = [
        checked_requirement(key, EQUALS, (value,))
        if key_faults(key) or value_faults(value)
        else Requirement(key, EQUALS, (value,))
        for key, value in (selector.match_labels or {}).items()
    ]
    if selector.match_expressions:
        requirements += [
            compile_requirement(expression, _OF_LABELS, "a valid label selector")
            for expression in selector.match_expressions
        ]
    return Selector(_by_key(requirements)) if requirements else EVERYTHING


def selector_from_labels(labels: Mapping[str, str] | None) -> Selector:
    """Compile the selector of a Service or ReplicationController, without validation.

    Source: labels/selector.go ``SelectorFromSet``.
    """
    return Selector(_by_key(Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()))


def _by_key(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=_KEY))


def valid_selector(written: LabelSelector | None) -> Selector | None:
    """Compile a selector, with None if invalid."""
    try:
        return compile_selector(written)
    except SelectorError:
        return None
