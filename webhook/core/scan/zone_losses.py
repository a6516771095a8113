"""How many pods of each workload would stay Pending if one zone failed: its nodes out of reach, or gone.

Each workload is looked at alone, beside all that runs elsewhere; pods that other workloads lose look for a node too, so
together there may be more. Pods of Jobs and DaemonSets are not counted, nor those without a controller.

Most workloads need no search: if a pod takes a place from others only on its own node, and as many nodes outside the
zone take one as there are pods, every order places all.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from webhook.core.api.selectors import Selector
from webhook.core.coming_pods.missing_pods import to_come
from webhook.core.coming_pods.next_pod import ComingPod
from webhook.core.index import node_sets
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.simulation import Effort
from webhook.core.scan.scan_context import FailingZone, ScanContext
from webhook.core.scan.scanned import Stranded, ZoneLoss
from webhook.core.scheduler.cycle import decide
from webhook.core.what_if.events import is_evicted
from webhook.core.workloads.workload import Template, Workload, selector_of

_EFFORT = Effort(states=2_000, orders=0)  # for each workload, zone and truth
_NONE = Stranded(0, 0)


def zone_losses(workload: Workload, made: Sequence[ComingPod], within: ScanContext) -> tuple[ZoneLoss, ...]:
    """What each zone's failure costs the workload, in the order of the zones; ``made`` are its next pods.

    Shape: nothing for a workload whose pods are not made anew, or cannot be told from others.
    """
    index, own, traits = within.index, selector_of(workload), workload.traits
    if index is None or own is None or len(workload.templates) != 1 or not workload.whole or workload.suspended:
        return ()
    if workload.is_pod or traits.on_every_node or traits.completes or not (within.zones and made):
        return ()
    asked = _Asked(workload, own, within, index, made[0])
    sure = asked.sure_nodes()
    return tuple(asked.loss(zone, sure=(sure & ~zone.nodes).bit_count() >= asked.wanted) for zone in within.zones)


def total_losses(zones: Iterable[FailingZone], losses: Iterable[ZoneLoss]) -> tuple[ZoneLoss, ...]:
    """What each zone's failure costs all workloads together."""
    by_zone: dict[str, list[ZoneLoss]] = {zone.name: [] for zone in zones}
    for each in losses:
        by_zone[each.zone].append(each)
    return tuple(
        ZoneLoss(
            zone=zone,
            wanted=sum(each.wanted for each in listed),
            unreachable=_sum([each.unreachable for each in listed]),
            gone=_sum([each.gone for each in listed]),
        )
        for zone, listed in by_zone.items()
    )


class _Asked:
    """One workload with one template, and how it is asked about."""

    def __init__(
        self, workload: Workload, own: Selector, within: ScanContext, index: ReadOnlyIndex, made: ComingPod
    ) -> None:
        self._workload, self._own, self._within, self._index = workload, own, within, index
        (self._template,), self._made = workload.templates, made
        self._source = replace(made.source, own=own)
        self._pods = index.pods.count(made.source.namespace, own)
        self.wanted = _replicas(self._template)

    def sure_nodes(self) -> int:
        """Nodes that take one of the pods each, whichever zone is lost and wherever the others are; none if unknown.

        Shape: a lost zone takes away pods and nodes, so what admits a pod before does so afterwards, unless that is a
        matter of other nodes: of hard constraints (injection may choose others then), of pods that want to be near, and
        of volumes that are told by ordinals.
        """
        made = self._made
        claims, problem = self._workload.claims, made.problem
        may_get = self._within.context.policy.defaults.injects and not made.sent.pod_spec.constraints
        if may_get or (claims is not None and claims.names):
            return 0
        near = problem.neighbours
        apart = all(problem.nodes.column(each.topology_key).one_each for each in near.anti_affinity_terms)
        return decide(problem).feasible if apart and not (problem.hard.constraints or near.affinity_terms) else 0

    def loss(self, zone: FailingZone, *, sure: bool) -> ZoneLoss:
        """What the zone's failure costs it; nothing where that is ``sure``."""
        unreachable = gone = _NONE
        flags = node_sets.flags(zone.nodes, self._index.nodes.view().size)
        here = sum(pods for slot, pods in self._pods.items() if flags[slot])
        # Nothing is made anew of a workload that has all of its pods, and none of them in the zone.
        if not sure and (here or sum(self._pods.values()) < self.wanted):
            gone = self._stranded(zone.gone)
            # As `simulate` has it.
            if is_evicted(self._made.problem.pod.pod_spec.tolerations or (), UNREACHABLE[-1]):
                unreachable = self._stranded(zone.unreachable)
        return ZoneLoss(zone=zone.name, wanted=self.wanted, unreachable=unreachable, gone=gone)

    def _stranded(self, index: ReadOnlyIndex) -> Stranded:
        came = to_come(self._source, self.wanted, self._within.context.with_index(index))
        if came.unknown:
            return Stranded(None, None)
        if not came.batches:
            return _NONE
        found, pods = came.outcome(_EFFORT), sum(each.pods for each in came.batches)
        return Stranded(
            None if found.most is None else pods - found.most, None if found.fewest is None else pods - found.fewest
        )


def _replicas(template: Template) -> int:
    return 1 if template.replicas is None else template.replicas


def _sum(listed: list[Stranded]) -> Stranded:
    """The sums: of the fewest a bound where one is not known, of the most None."""
    most = [each.most for each in listed if each.most is not None]
    return Stranded(sum(each.fewest or 0 for each in listed), sum(most) if len(most) == len(listed) else None)
