"""What volumes that are there already mean for a StatefulSet: part of `spread-conflicts-affinity`."""

from collections.abc import Iterator

from webhook.core.ceiling import Home, addable_pinned
from webhook.core.claims import Missing
from webhook.core.model import HOSTNAME
from webhook.core.places import Tally
from webhook.core.rules.cases import Case, noun, softened
from webhook.core.rules.finding import Finding, one_line


def pinned_replicas(case: Case) -> Iterator[Finding]:
    """The pods that do not run yet and whose volumes are where the constraint will not have them.

    Shape: without the rule, which is the caller's.
    """
    missing = case.missing
    if missing is None or not missing.pinned:
        return
    running = case.wanted - sum(missing.pinned.values()) - missing.free
    for tally in case.tallies:
        homes, free = _homes(tally, missing)
        if not any(home.pinned for home in homes.values()):
            continue  # no volume holds a pod anywhere: what is in the way is something else
        placeable = running + free + sum(home.pinned for home in homes.values())
        admitted = running + addable_pinned(tuple(homes.values()), tally.limit, free)
        if admitted < placeable and tally.hard.certain:
            fix = softened(case, case.placed[tally.hard.place]) if _fits_without(case, tally, homes, free) else ("", "")
            yield _finding(case, tally, homes, admitted, fix)


def _homes(tally: Tally, missing: Missing) -> tuple[dict[int, Home], int]:
    """The domains with the pods that can be in no other, and how many pods may choose; those without a node are out."""
    column, free = tally.column, missing.free
    pinned: dict[int, int] = {}
    for nodes, pods in missing.pinned.items():
        choices = column.domains(nodes & tally.open)
        if len(choices) > 1:
            free += pods
        for number in choices if len(choices) == 1 else ():
            pinned[number] = pinned.get(number, 0) + pods
    opened = tally.open_domains
    counting = column.domains(tally.domains.counting)
    return {number: Home(tally.count(number), pinned.get(number, 0), number in opened) for number in counting}, free


def _finding(case: Case, tally: Tally, homes: dict[int, Home], admitted: int, fix: tuple[str, str]) -> Finding:
    placed = case.placed[tally.hard.place]
    number, home = max(homes.items(), key=lambda each: (each[1].pinned, -each[0]))
    value, detail = one_line(tally.column.values[number], 40), case.subject.policy.messages.detail
    named = detail == "full" or (detail != "minimal" and tally.column.key != HOSTNAME)
    where = f"{noun(tally)} {value}" if named else f"one {noun(tally)}"
    said = f"{case.fit(admitted)}: volumes hold {home.pinned} in {where}"
    return Finding(
        rule="",
        path=f"{placed.path}.whenUnsatisfiable",
        summary=said,
        remedy=fix[0],
        detail=f"{said}, and {placed.name} (maxSkew {tally.limit.max_skew}) lets it run no further ahead of the others;"
        " counted are pods that do not run yet",
        fix=fix[1],
        key=placed.key,
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _fits_without(case: Case, tally: Tally, homes: dict[int, Home], free: int) -> bool:
    """Whether all find a place without the constraint, even if those that may choose go where others have to."""
    if case.places.running or len(case.placed) > 1 or not case.fits((), case.wanted):
        return False
    live = case.places.problem.nodes.live
    return all(
        case.fits((), home.pinned + free, lost=live & ~tally.column.nodes(number))
        for number, home in homes.items()
        if home.pinned
    )
