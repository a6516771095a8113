"""``evenspread skew``: whose pods are looked at, the table, and the JSON."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from webhook.cli.checking.frame import Frame
from webhook.cli.explaining.as_json import Json
from webhook.cli.simulating.pods import Maker
from webhook.cli.terminal import BOLD, GREEN, RED, YELLOW, Paint
from webhook.core.defaulting.injection import Injection
from webhook.core.defaulting.next_pod import after_admission, next_pod, problem_of
from webhook.core.explain.explanation import Balance
from webhook.core.explain.obstacles import segment_of
from webhook.core.explain.skews import Origin, Skew, skews
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.text import one_line, plural

_NAME = 60
# More are summed up: hosts mostly.
_MOST_DOMAINS = 6
_FROM = {Origin.DECLARED: "template", Origin.INJECTED: "injected", Origin.DEFAULT: "scheduler"}


class Standing(Struct, frozen=True):
    """A constraint of a workload, and how its pods stand."""

    maker: Maker
    skew: Skew


def standings(makers: Iterable[Maker], frame: Frame, index: ReadOnlyIndex) -> list[Standing]:
    """The constraints of all templates: what is above maxSkew first, then by namespace and name."""
    found = []
    for maker in makers:
        template = next_pod(maker.workload, maker.template, maker.namespace, index, applied=True).template
        ready = after_admission(template, maker.namespace, frame.policy, index, frame.version)
        injected = isinstance(ready.injected, Injection)
        found += [
            Standing(maker, each) for each in skews(problem_of(ready.pod, index, frame.policy), injected=injected)
        ]
    return sorted(found, key=lambda each: (not each.skew.exceeded, each.maker.namespace, each.maker.title))


def is_broken(of: Standing) -> bool:
    """Whether a hard constraint is above its maxSkew: no pod more would be let into the fullest domain."""
    return of.skew.exceeded and of.skew.balance.hard


def render(found: Sequence[Standing], where: str, *, color: bool) -> Iterator[str]:
    """The table, and below it how many constraints are above maxSkew; ``where`` is the namespace, empty for all."""
    paint = Paint(color=color)
    if not found:
        yield paint(f"no workload with pods of its own in {where or 'any namespace'}", GREEN) + "\n"
        return
    rows = [("NAMESPACE", "WORKLOAD", "CONSTRAINT", "MAXSKEW", "SKEW", "WHEN", "FROM", "PODS"), *map(_row, found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for number, row in enumerate(rows):
        line = "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]])
        yield paint(line, *_colour(found[number - 1] if number else None)) + "\n"
    above = [each for each in found if each.skew.exceeded]
    hard = sum(map(is_broken, above))
    ends = f"{len(above)} of {plural(len(found), 'constraint')} above maxSkew"
    yield "\n" + paint(f"{ends}, {hard} of them DoNotSchedule" if above else ends, RED if hard else GREEN) + "\n"


def _colour(of: Standing | None) -> Sequence[str]:
    if of is None:
        return (BOLD,)
    return () if not of.skew.exceeded else (RED,) if is_broken(of) else (YELLOW,)


def _row(of: Standing) -> tuple[str, ...]:
    balance = of.skew.balance
    return (
        one_line(of.maker.namespace, _NAME),
        one_line(f"{of.maker.workload.kind}/{of.maker.workload.meta.name}", _NAME),
        one_line(balance.name, _NAME),
        str(balance.domains.constraint.max_skew),
        f"{of.skew.skew}{'!' if of.skew.exceeded else ''}",
        balance.written.when_unsatisfiable or "",
        _FROM[of.skew.origin],
        _counts(balance),
    )


def _counts(balance: Balance) -> str:
    """``a 3, b 1, c 0``; of many domains the fewest and the most."""
    counts = balance.domains.counts
    if not counts:
        return f"no node with {segment_of(balance.domains.constraint.topology_key)} counts"
    if len(counts) <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, _NAME)} {number}" for name, number in sorted(counts.items()))
    fewest, most = min(counts.values()), max(counts.values())
    empty = sum(not number for number in counts.values())
    rest = f", {empty:,} of them empty" if empty and most else ""
    return f"{f'{fewest} to {most}' if most else 'none'} in {len(counts):,} domains{rest}"


def shape(of: Standing) -> Json:
    """The JSON of a constraint."""
    balance, workload = of.skew.balance, of.maker.workload
    parsed = balance.domains.constraint
    return {
        "namespace": of.maker.namespace,
        "kind": workload.kind,
        "apiVersion": workload.api_version,
        "name": workload.meta.name,
        "topologyKey": parsed.topology_key,
        "whenUnsatisfiable": balance.written.when_unsatisfiable,
        # A Service and a ReplicaSet, from which the scheduler deduces it, may ask for the same.
        "selector": ",".join(dict.fromkeys(each.text for each in parsed.selector.requirements)),
        "maxSkew": parsed.max_skew,
        "skew": of.skew.skew,
        "globalMinimum": balance.domains.global_minimum,
        "domains": dict(sorted(balance.domains.counts.items())),
        "origin": str(of.skew.origin),
    }
