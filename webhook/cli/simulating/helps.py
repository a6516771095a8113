"""Changes of a workload's own constraints after which all pods fit, in every order.

What is tried are the changes that would help the first pod that waits (`core.explain.fixes`); each is then played with
all pods, and offered only if none of them can wait.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import fields, replace

from webhook.cli.checking.frame import Frame
from webhook.cli.simulating.play import Ending, Outcomes, play
from webhook.cli.simulating.pods import Maker, player
from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.explain.fix_text import fix_text
from webhook.core.explain.fixes import ConstraintChange, PodFix
from webhook.core.explain.obstacles import segment_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.simulation import Effort, Outcome
from webhook.core.workloads.workload import Template

_FIELDS = {each.encode_name: each.name for each in fields(SpreadConstraint)}
_FURTHER = 4  # how much further maxSkew is raised than the first pod that waits needs
_MOST = 4  # fixes that are offered


class Help(Struct, frozen=True, kw_only=True):
    """A change with which all pods fit in every order.

    Shape: ``path`` is of the constraint or its field in the object ``target``; ``before`` and ``after`` are its values,
    None where it is absent. ``harms`` says in words what is given up.
    """

    text: str
    target: str
    path: str
    before: object
    after: object
    wanted: int
    harms: tuple[str, ...] = ()


def helps(of: Outcomes, end: Ending, frame: Frame, index: ClusterIndex, effort: Effort) -> Iterator[Help]:
    """The changes with which all pods of a player fit, smallest first.

    Shape: none for pods that no template is known of, and for rolling updates.
    """
    maker = end.player.maker
    if maker is None or end.player.rollout is not None:
        return
    if len(maker.template.template.pod_spec.constraints) != len(end.after.problem.pod.pod_spec.constraints):
        return  # those of the pod were injected
    solved: list[ConstraintChange] = []
    for fix in _wider(end.after.fixes):
        first = fix.changes[0]
        if any((each.index, each.field) == (first.index, first.field) for each in solved if len(fix.changes) == 1):
            continue
        changed = replace(maker, template=_with(maker.template, fix.changes))
        players = [player(changed, frame, index) if each is end.player else each for each in of.players]
        played = play(players, index, effort, lambda _: None)
        if played.interrupted:
            return
        verdict = played.each[of.players.index(end.player)]
        if verdict.outcome is Outcome.FITS:
            yield _help(fix, maker, end, verdict.wanted)
            solved.append(first)
        if len(solved) == _MOST:
            return


def _wider(found: Sequence[PodFix]) -> Iterator[PodFix]:
    """The fixes; those of one maxSkew also with larger values."""
    for fix in found:
        yield fix
        (first, *more), value = fix.changes, fix.changes[0].value
        if first.field == "maxSkew" and not more and isinstance(value, int):
            yield from (PodFix((replace(first, value=value + each),), fix.open) for each in range(1, _FURTHER + 1))


def _with(template: Template, changes: Sequence[ConstraintChange]) -> Template:
    """The template with the changes of its constraints."""
    constraints: list[SpreadConstraint | None] = [*template.template.pod_spec.constraints]
    for change in changes:
        written = constraints[change.index]
        if written is not None:
            constraints[change.index] = (
                replace(written, **{_FIELDS[change.field]: change.value}) if change.field else None
            )
    kept = tuple(each for each in constraints if each is not None)
    spec = replace(template.template.pod_spec, topology_spread_constraints=kept)
    return replace(template, template=replace(template.template, spec=spec))


def _help(fix: PodFix, maker: Maker, end: Ending, wanted: int) -> Help:
    first, *more = fix.changes
    constraint = maker.template.template.pod_spec.constraints[first.index]
    path = f"{maker.template.constraints_path}[{first.index}]"
    return Help(
        text=fix_text(fix, end.after.balances),
        target=maker.title,
        path=path if more or not first.field else f"{path}.{first.field}",
        before=None if more or not first.field else getattr(constraint, _FIELDS[first.field]),
        after=None if more else first.value,
        wanted=wanted,
        harms=tuple(dict.fromkeys(_harm(each, maker) for each in fix.changes if _harm(each, maker))),
    )


def _harm(change: ConstraintChange, maker: Maker) -> str:
    """What is given up by a change, in words; empty where it is nothing but the count of nodes that no pod can use."""
    key = maker.template.template.pod_spec.constraints[change.index].topology_key or ""
    segment = "node" if key == HOSTNAME else segment_of(key)
    match change.field, change.value:
        case "maxSkew", value:
            return f"one {segment} may have {value} pods more than another"
        case "whenUnsatisfiable" | "", _:
            return f"all pods may come to stand in one {segment}"
        case "minDomains", int(value):
            return f"pods may run in only {value} {segment}{'' if value == 1 else 's'}"
        case _:
            return ""
