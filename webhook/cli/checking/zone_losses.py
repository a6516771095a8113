"""How many pods of each workload would stay Pending if one zone failed: its nodes out of reach, or gone.

Each workload is looked at alone, beside all that runs elsewhere; pods that other workloads lose look for a node too, so
together there may be more. Pods of Jobs and DaemonSets are not counted, nor those without a controller.

Most workloads need no search: if a pod takes a place from others only on its own node, and as many nodes outside the
zone take one as there are pods, every order places all.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from webhook.cli.checking.frame import Frame
from webhook.core.api.selectors import Selector, first_untolerated
from webhook.core.api.types import Toleration
from webhook.core.api.well_known import FILTERING_EFFECTS, NO_EXECUTE, ZONE
from webhook.core.defaulting.next_pod import namespace_of
from webhook.core.defaulting.pods_to_come import Setting, next_problem, to_come
from webhook.core.explain.edit_target import object_title
from webhook.core.index import node_sets
from webhook.core.index.lost_nodes import UNREACHABLE, without_nodes
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.simulation import Effort, simulate
from webhook.core.scheduler.cycle import decide
from webhook.core.workloads.own_selector import selector_of
from webhook.core.workloads.workload import Template, Workload

_EFFORT = Effort(states=2_000, orders=0)  # for each workload, zone and truth
_MOST_ZONES = 12  # of more values, the label is none of zones


class Pending(NamedTuple):
    """The fewest and the most pods without a node in the end, over all orders; None where that is not known."""

    fewest: int | None
    most: int | None


_NONE = Pending(0, 0)


class ZoneLoss(Struct, frozen=True, kw_only=True):
    """What the failure of one zone costs one workload, or all of them where ``title`` is empty.

    Shape: ``wanted`` are all pods that there are to be; pods that wait now are among those that stay Pending.
    """

    title: str
    zone: str
    wanted: int
    unreachable: Pending
    gone: Pending


def zone_losses(workloads: Iterable[Workload], frame: Frame) -> tuple[ZoneLoss, ...]:
    """What each zone's failure costs each workload that it costs something, the total of each zone first.

    Shape: nothing where nodes or pods are not known, and with a single zone.
    """
    index = frame.index
    if index is None or index.lacks("nodes", "pods"):
        return ()
    zones = index.view().column(ZONE)
    if zones.sets is None or not 1 < len(zones.values) <= _MOST_ZONES:
        return ()
    listed = [each for each in map(_asked, workloads) if each is not None]
    sure = [_sure_nodes(each, index, frame) for each in listed]
    totals, found = [], []
    for zone, lost in sorted(zip(zones.values, zones.sets, strict=True)):
        open_ = [each for each, nodes in zip(listed, sure, strict=True) if (nodes & ~lost).bit_count() < each.wanted]
        mine = [*_of_zone(zone, lost, open_, index, frame)]
        found += [each for each in mine if each.unreachable != _NONE or each.gone != _NONE]
        wanted = sum(each.wanted for each in listed)
        unreachable, gone = _sum(each.unreachable for each in mine), _sum(each.gone for each in mine)
        totals.append(ZoneLoss(title="", zone=zone, wanted=wanted, unreachable=unreachable, gone=gone))
    return (*totals, *found)


class _Asked(NamedTuple):
    workload: Workload
    template: Template
    namespace: str
    own: Selector
    wanted: int


def _asked(workload: Workload) -> _Asked | None:
    """The workload; None for one whose pods are not made anew, or cannot be told from others."""
    own, traits = selector_of(workload), workload.traits
    if own is None or len(workload.templates) != 1 or not workload.whole or workload.suspended:
        return None
    if workload.is_pod or traits.on_every_node or traits.completes:
        return None
    (template,) = workload.templates
    wanted = 1 if template.replicas is None else template.replicas
    return _Asked(workload, template, namespace_of(workload.meta.namespace), own, wanted)


def _of_zone(zone: str, lost: int, listed: Iterable[_Asked], index: ReadOnlyIndex, frame: Frame) -> Iterator[ZoneLoss]:
    truths = [without_nodes(index, lost, gone=gone) for gone in (False, True)]
    flags = node_sets.flags(lost, index.view().size)
    for each in listed:
        counts = index.count(each.namespace, each.own)
        here = sum(pods for slot, pods in counts.items() if flags[slot])
        # Nothing is made anew of a workload that has all of its pods, and none of them in the zone.
        if not here and sum(counts.values()) >= each.wanted:
            continue
        unreachable, gone = (_pending(each, truth, frame) for truth in truths)
        if _stays(each.template.template.pod_spec.tolerations or ()):
            unreachable = _NONE
        title = object_title(each.workload.kind, each.namespace, each.workload.meta.name)
        yield ZoneLoss(title=title, zone=zone, wanted=each.wanted, unreachable=unreachable, gone=gone)


def _stays(tolerations: tuple[Toleration, ...]) -> bool:
    """Whether the pods stay for ever on a node that cannot be reached."""
    for_ever = tuple(each for each in tolerations if each.toleration_seconds is None)
    evicting = [taint for taint in UNREACHABLE if taint.effect == NO_EXECUTE]
    return first_untolerated(evicting, for_ever, FILTERING_EFFECTS) is None


def _sure_nodes(asked: _Asked, index: ReadOnlyIndex, frame: Frame) -> int:
    """Nodes that take one of the pods each, whichever zone is lost and wherever the others are; none if unknown.

    Shape: a lost zone takes away pods and nodes, so what admits a pod before does so afterwards, unless that is a
    matter of other nodes: of hard constraints (injection may choose others then), of pods that want to be near, and of
    volumes that are told by ordinals.
    """
    spec = asked.template.template.pod_spec
    may_get = frame.policy.defaults.mode == "inject" and not spec.constraints
    if may_get or (asked.workload.claims is not None and asked.workload.claims.names):
        return 0
    problem = next_problem(asked.workload, asked.template, _setting(asked, index, frame))
    near = problem.neighbours
    apart = all(problem.nodes.column(each.topology_key).one_each for each in near.own)
    return decide(problem).feasible if apart and not (problem.hard.constraints or near.wanted) else 0


def _setting(asked: _Asked, index: ReadOnlyIndex, frame: Frame) -> Setting:
    return Setting(
        index=index,
        policy=frame.policy,
        version=frame.version,
        namespace=asked.namespace,
        own=asked.own,
        applied=True,
    )


def _pending(asked: _Asked, index: ReadOnlyIndex, frame: Frame) -> Pending:
    came = to_come(asked.workload, asked.template, asked.wanted, _setting(asked, index, frame))
    if came.unknown:
        return Pending(None, None)
    if not came.parties:
        return _NONE
    found, pods = simulate(came.game(), _EFFORT), sum(each.pods for each in came.parties)
    return Pending(
        None if found.most is None else pods - found.most, None if found.fewest is None else pods - found.fewest
    )


def _sum(each: Iterable[Pending]) -> Pending:
    """The sums; None where one is not known."""
    listed = [*each]
    fewest = [pending.fewest for pending in listed if pending.fewest is not None]
    most = [pending.most for pending in listed if pending.most is not None]
    known = len(listed)
    return Pending(sum(fewest) if len(fewest) == known else None, sum(most) if len(most) == known else None)
