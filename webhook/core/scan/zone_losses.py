"""Count the pods of each workload that stay Pending if a zone fails.

Each workload is examined alone, next to the pods outside the zone. Other workloads' lost pods compete for the same
nodes, so the real number can be higher. Pods of Jobs and DaemonSets, and pods without a controller, do not count.

Most workloads need no search. If each pod only affects its own node, and enough nodes outside the zone admit a pod,
every order places all pods.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from webhook.core.api.selectors import Selector
from webhook.core.api.tolerations import is_evicted
from webhook.core.index import node_sets
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.placement_verdict import Effort
from webhook.core.pods_to_create.missing_pods import missing_pods
from webhook.core.pods_to_create.next_pod import NextPod
from webhook.core.scan.scan_context import FailingZone, ScanContext
from webhook.core.scan.scan_results import Stranded, ZoneLoss
from webhook.core.scheduler.cycle import decide
from webhook.core.workloads.workload import Workload, selector_of

_EFFORT = Effort(states=2_000, orders=0)  # for each workload, zone, and kind of failure (unreachable or gone)
_NONE = Stranded(0, 0)


def zone_losses(workload: Workload, next_pods: Sequence[NextPod], within: ScanContext) -> tuple[ZoneLoss, ...]:
    """Return the Pending pods after each zone's failure, in the order of the zones.

    Empty for a workload without replacement pods (``next_pods``), or with pods that cannot be identified.
    """
    index, own, traits = within.index, selector_of(workload), workload.traits
    if index is None or own is None or len(workload.templates) != 1 or not workload.whole or workload.suspended:
        return ()
    if workload.is_pod or traits.on_every_node or traits.completes or not (within.zones and next_pods):
        return ()
    losses = _WorkloadLosses(workload, own, within, index, next_pods[0])
    sure = losses.sure_nodes()
    return tuple(losses.loss(zone, sure=(sure & ~zone.nodes).bit_count() >= losses.wanted) for zone in within.zones)


def total_losses(zones: Iterable[FailingZone], losses: Iterable[ZoneLoss]) -> tuple[ZoneLoss, ...]:
    """Sum up the losses of all workloads for each zone."""
    by_zone: dict[str, list[ZoneLoss]] = {zone.name: [] for zone in zones}
    for loss in losses:
        by_zone[loss.zone].append(loss)
    return tuple(
        ZoneLoss(
            zone=zone,
            wanted=sum(loss.wanted for loss in listed),
            unreachable=_sum([loss.unreachable for loss in listed]),
            gone=_sum([loss.gone for loss in listed]),
        )
        for zone, listed in by_zone.items()
    )


class _WorkloadLosses:
    def __init__(
        self, workload: Workload, own: Selector, within: ScanContext, index: ReadOnlyIndex, next_pod: NextPod
    ) -> None:
        self._workload, self._own, self._within, self._index = workload, own, within, index
        (self._template,), self._next_pod = workload.templates, next_pod
        self._source = replace(next_pod.source, own=own)
        self._pods = index.pods.count(next_pod.source.namespace, own)
        self.wanted = 1 if self._template.replicas is None else self._template.replicas

    def sure_nodes(self) -> int:
        """Return the nodes certain to admit one more pod after any other zone's failure.

        The result is a bit set. It is 0 if no node is certain. A zone failure only removes pods and nodes. So a node
        that admits a pod before the failure normally admits it afterwards. No node is certain if admission depends on
        other nodes: through hard constraints (also those that injection may add), pod affinity, or volumes assigned by
        ordinal.
        """
        next_pod = self._next_pod
        claims, problem = self._workload.claims, next_pod.problem
        may_inject = self._within.context.policy.defaults.injects and not next_pod.sent.pod_spec.constraints
        if may_inject or (claims is not None and claims.names):
            return 0
        terms = problem.neighbours
        alone = all(problem.nodes.column(term.topology_key).one_each for term in terms.anti_affinity_terms)
        return decide(problem).feasible if alone and not (problem.hard.constraints or terms.affinity_terms) else 0

    def loss(self, zone: FailingZone, *, sure: bool) -> ZoneLoss:
        """Return the numbers of Pending pods after the zone's failure.

        With ``sure``, all pods are known to find a node, so the numbers are 0.
        """
        unreachable = gone = _NONE
        flags = node_sets.flags(zone.nodes, self._index.nodes.view().size)
        here = sum(pods for slot, pods in self._pods.items() if flags[slot])
        # A workload with all of its pods outside the zone needs no new pods.
        if not sure and (here or sum(self._pods.values()) < self.wanted):
            gone = self._stranded(zone.gone)
            # A pod that tolerates an unreachable node is not evicted. `simulate` uses the same test.
            if is_evicted(self._next_pod.problem.pod.pod_spec.tolerations or (), UNREACHABLE[-1]):
                unreachable = self._stranded(zone.unreachable)
        return ZoneLoss(zone=zone.name, wanted=self.wanted, unreachable=unreachable, gone=gone)

    def _stranded(self, index: ReadOnlyIndex) -> Stranded:
        missing = missing_pods(self._source, self.wanted, self._within.context.with_index(index))
        if missing.unknown:
            return Stranded(None, None)
        if not missing.batches:
            return _NONE
        simulation, pods = missing.simulate(_EFFORT), sum(batch.pods for batch in missing.batches)
        return Stranded(
            None if simulation.most is None else pods - simulation.most,
            None if simulation.fewest is None else pods - simulation.fewest,
        )


def _sum(listed: list[Stranded]) -> Stranded:
    """Return the sum of the Pending pods of all workloads after a zone failure.

    If the number of a workload is unknown, ``fewest`` of the sum is a lower bound and ``most`` is None.
    """
    most = [each.most for each in listed if each.most is not None]
    return Stranded(sum(each.fewest or 0 for each in listed), sum(most) if len(most) == len(listed) else None)
