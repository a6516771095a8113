"""Changes of a workload's hard constraints that may make all of its pods fit, smallest first.

What helps one pod need not help all of them, and looser is not always better: a larger maxSkew can open a new way to
get stuck. So a change counts once it was tried with all pods, which callers do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import fields, replace

from webhook.core.api.types import HONOR, SpreadConstraint
from webhook.core.apiserver.validation import soft_fields
from webhook.core.changes.one_pod import Change
from webhook.core.workloads.workload import Template

Changes = tuple[Change, ...]

_NAMES = {each.encode_name: each.name for each in fields(SpreadConstraint)}


class Loosenings(Struct, frozen=True, kw_only=True):
    """What is known of the constraints that are to be changed.

    Shape: by index in ``constraints``: ``domains`` are the domains that count, ``skews`` the lowest maxSkew that can
    help, where that is known. ``revision`` is the label that tells revisions apart, during a rolling update.
    ``further`` says how much further maxSkew is raised. ``pairs`` that two of the changes are tried together.
    """

    constraints: Sequence[SpreadConstraint]
    domains: Mapping[int, int] = {}
    skews: Mapping[int, int] = {}
    revision: str = ""
    further: int = 2
    pairs: bool = True
    first: Sequence[Changes] = ()

    def that_help(self, fits: Callable[[Changes], bool]) -> Iterator[Changes]:
        """The changes with which all pods fit: those that keep the pods spread, and then those that do not.

        Shape: two together, or all constraints at once, only where one alone does not help; of a field, the first value
        that does. A whole constraint is removed by a change without a field.
        """
        small = [*self._small()]
        yield from self._tried(fits, (*self.first, *((each,) for each in small)), self._pairs(small))
        hard = [index for index, each in enumerate(self.constraints) if each.hard]
        soft = [softened(self.constraints, index) for index in hard]
        yield from self._tried(fits, soft, [tuple(each for some in soft for each in some)] * (len(soft) > 1))

    @staticmethod
    def _tried(
        fits: Callable[[Changes], bool], alone: Iterable[Changes], otherwise: Iterable[Changes]
    ) -> Iterator[Changes]:
        solved: set[tuple[int, str]] = set()
        for changes in alone:
            field = changes[0].index, changes[0].field
            if field not in solved and fits(changes):
                solved.add(field)
                yield changes
        if not solved:
            yield from (found for found in [next(filter(fits, otherwise), None)] if found is not None)

    def _pairs(self, small: Sequence[Change]) -> Iterator[Changes]:
        for one, other in combinations(small, 2) if self.pairs else ():
            if (one.index, one.field) != (other.index, other.field):
                yield one, other

    def _small(self) -> Iterator[Change]:
        """One field of one constraint, after which pods are spread still."""
        hard = [(index, each) for index, each in enumerate(self.constraints) if each.hard]
        for field in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
            for index, each in hard:
                written = value_of(each, field)
                if written != HONOR and (written is not None or field == "nodeTaintsPolicy"):
                    yield Change(index, field, HONOR)
        for index, each in hard:
            there = self.domains.get(index, 0)
            if (each.min_domains or 1) > max(1, there):
                yield Change(index, "minDomains", there if there > 1 else None)
        for index, each in hard:
            keys = each.match_label_keys or ()
            if self.revision and self.revision not in keys and each.label_selector is not None:
                yield Change(index, "matchLabelKeys", (*keys, self.revision))
        for more in range(self.further):
            for index, each in hard:
                least = max(self.skews.get(index, 0), (each.max_skew or 0) + 1)
                yield Change(index, "maxSkew", least + more)


def softened(constraints: Sequence[SpreadConstraint], index: int) -> Changes:
    """The changes that make a constraint soft, or remove it, where it has a soft twin."""
    set_ = soft_fields(constraints[index], constraints)
    if set_ is None:
        return (Change(index),)
    return tuple(Change(index, name, value) for name, value in set_.items())


def with_changes(constraints: Sequence[SpreadConstraint], changes: Iterable[Change]) -> tuple[SpreadConstraint, ...]:
    """The constraints after the changes."""
    kept: list[SpreadConstraint | None] = [*constraints]
    for each in changes:
        written = kept[each.index]
        if written is not None:
            kept[each.index] = replace(written, **{_NAMES[each.field]: each.value}) if each.field else None
    return tuple(each for each in kept if each is not None)


def template_with(template: Template, changes: Iterable[Change]) -> Template:
    """The template with its constraints after the changes."""
    spec = template.template.pod_spec
    spec = replace(spec, topology_spread_constraints=with_changes(spec.constraints, changes))
    return replace(template, template=replace(template.template, spec=spec))


def value_of(constraint: SpreadConstraint, field: str) -> object:
    """A field by the API's name."""
    return getattr(constraint, _NAMES[field])
