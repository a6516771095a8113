"""kube-scheduler's verdict: the status of each node by the first filter that rejects it.

    index, pod -> take(...) -> Problem      copies every fact of the verdict
    Problem    -> decide(...) -> Verdict    without the index

Source: kube-scheduler schedule_one.go ``findNodesThatFitPod``; framework/runtime/framework.go; framework/types.go
``FitError``.
"""

from collections.abc import Callable, Mapping, Sequence

from webhook.core.api import gates
from webhook.core.api.node_selectors import RequiredNodes, compile_required_nodes
from webhook.core.api.types import Affinity, Pod
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY, run_inter_pod_affinity
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY, run_node_affinity
from webhook.core.scheduler.plugins.node_name import NODE_NAME, run_node_name
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS, run_node_ports
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, run_node_resources_fit
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE, run_node_unschedulable
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS, run_node_volume_limits
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts, EligibleNodes
from webhook.core.scheduler.plugins.spread_scoring import scores
from webhook.core.scheduler.plugins.status import OK, Code, PluginResult, Status, StatusOfNodes, unresolvable
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION, run_taint_toleration
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING, run_volume_binding
from webhook.core.scheduler.plugins.volume_restrictions import VOLUME_RESTRICTIONS, run_volume_restrictions
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE, run_volume_zone
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.verdict import Verdict


def eligible_nodes(pod: Pod, nodes: NodeView, required: RequiredNodes) -> EligibleNodes:
    """Select nodes by affinity and tolerations. Source: podtopologyspread/common.go ``matchNodeInclusionPolicies``."""
    return EligibleNodes(nodes, usable_nodes(nodes, required), tolerated_nodes(nodes, pod.pod_spec.tolerations))


def verdict_of_plugin(result: PluginResult, nodes: NodeView) -> Verdict:
    """Build the verdict of one plugin alone."""
    if result.pre_filter.code not in (Code.SUCCESS, Code.SKIP):
        return Verdict(nodes, result.pre_filter, [(result.pre_filter, nodes.live)])
    failed = result.filter(nodes.live) if result.filter is not None else ()
    return Verdict(nodes, result.pre_filter, [(status, members) for status, members in failed if members])


class Cycle:
    """One scheduling attempt. Each plugin's result is computed at first use.

        >>> Cycle(take(index, pod)).verdict_of("PodTopologySpread").sentence
        "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."

    Source: schedule_one.go ``findNodesThatFitPod``.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._results: dict[str, PluginResult] = {}

    @cached_property
    def required(self) -> RequiredNodes:
        """The pod's node selector and affinity. Source: nodeaffinity/nodeaffinity.go ``GetRequiredNodeAffinity``."""
        spec = self.problem.pod.pod_spec
        return compile_required_nodes(spec.node_selector, spec.affinity)

    @cached_property
    def enforced(self) -> int | None:
        """The nodes that match the node affinity of the scheduler's configuration. None without such an affinity.

        Source: node_affinity.go ``addedNodeSelector``; spread constraints ignore it.
        """
        added = self.problem.profile.added_affinity if self.problem.profile is not None else None
        if added is None or added.required is None:
            return None
        return usable_nodes(self.problem.nodes, compile_required_nodes(None, Affinity(node_affinity=added)))

    @cached_property
    def eligible(self) -> EligibleNodes:
        """The nodes allowed by the pod's node affinity, and the nodes with tolerated taints."""
        return eligible_nodes(self.problem.pod, self.problem.nodes, self.required)

    @cached_property
    def spread(self) -> tuple[PluginResult, tuple[DomainCounts, ...]]:
        """The result of PodTopologySpread, with its counts for each hard constraint."""
        return pod_topology_spread.run_filter(self.problem.hard, self.problem.pod.labels, self.eligible)

    @property
    def domains(self) -> tuple[DomainCounts, ...]:
        return self.spread[1]

    def result(self, plugin: str) -> PluginResult:
        """Run the PreFilter of a plugin named in ``FILTERS``."""
        result = self._results.get(plugin)
        if result is None:
            result = self._results[plugin] = _PLUGINS[plugin](self)
        return result

    def verdict_of(self, plugin: str) -> Verdict:
        """Return the verdict of one plugin: its PreFilter, then its Filter on every node."""
        return verdict_of_plugin(self.result(plugin), self.problem.nodes)

    def verdict(self) -> Verdict:
        """Return the verdict of all filters: every PreFilter, then every Filter on the remaining nodes.

        Source: schedule_one.go ``findNodesThatFitPod``; runtime/framework.go ``RunFilterPluginsWithNominatedPods``.
        """
        nodes = self.problem.nodes
        pre_filter, allowed, restricting = self._pre_filters()
        if pre_filter.code != Code.SUCCESS:
            return Verdict(nodes, pre_filter, [(pre_filter, nodes.live)])
        candidates, failed, unreported = nodes.live, [], 0
        # Several plugins can name the only possible nodes. They share one reason for all other nodes.
        if allowed is not None:
            slots = nodes.slots
            inside = node_sets.from_slots([slots[name] for name in allowed if name in slots], nodes.size)
            plugin = restricting[0] if len(restricting) == 1 else ""
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(restricting)}]"
            failed.append((unresolvable(reason).with_plugin(plugin), candidates & ~inside))
            unreported = 0 if gates.NAMES_LEFT_OUT.holds(self.problem.version) else candidates & ~inside
            candidates &= inside
        # A plugin skipped in PreFilter has no Filter.
        plugins = [plugin for plugin in self.problem.filters if self.result(plugin).filter is not None]
        # A node with nominated pods must pass with them and without them. The first pass includes them.
        yielding = node_sets.from_slots(tuple(self.problem.nominated), nodes.size) & candidates
        for slot in node_sets.to_slots(yielding):
            first = Cycle(self.problem.nominated[slot]).filtered(1 << slot, plugins)
            failed += first
            candidates &= ~sum(members for _, members in first)
        return Verdict(nodes, OK, [*failed, *self.filtered(candidates, plugins)], unreported)

    def filtered(self, candidates: int, plugins: Sequence[str]) -> list[StatusOfNodes]:
        """Return the rejected candidates by their first status. Source: runtime/framework.go ``RunFilterPlugins``."""
        failed: list[StatusOfNodes] = []
        for plugin in plugins:
            run_filter = self.result(plugin).filter
            if run_filter is None or not candidates:
                continue
            for status, members in run_filter(candidates):
                if members:
                    failed.append((_of_plugin(status, plugin), members))
                    # The first rejecting filter settles a node's status. Later ones never see it.
                    candidates &= ~members
        return failed

    def _pre_filters(self) -> tuple[Status, frozenset[str] | None, list[str]]:
        """Run PreFilter of all plugins.

        Returns:
            The status, the names of the remaining nodes (None for all), and the plugins that restrict them.

        Source: framework.go ``RunPreFilterPlugins``.
        """
        allowed: frozenset[str] | None = None
        restricting: list[str] = []
        for plugin in self.problem.filters:
            result = self.result(plugin)
            status = result.pre_filter
            if status.code == Code.SKIP:
                continue
            if status.code == Code.ERROR:
                text = f'running PreFilter plugin "{plugin}": {status.reasons[0]}'
                return Status.of_error(text).with_plugin(plugin), None, []
            # PreFilter rejects the whole pod before any node.
            if status.rejected:
                return status.with_plugin(plugin), None, []
            if result.allowed is not None:
                restricting = sorted({*restricting, plugin})
                allowed = result.allowed if allowed is None else allowed & result.allowed
            # Two plugins can name different nodes. Then no node remains, and upstream stops.
            if allowed is not None and not allowed:
                names = f"s) [{' '.join(restricting)}] simultaneously"
                reason = (
                    f"node(s) didn't satisfy plugin({names}"
                    if len(restricting) > 1
                    else (f"node(s) didn't satisfy plugin {restricting[0]}")
                )
                return unresolvable(reason), None, []
        return OK, allowed, restricting

    def scores(self, feasible: int) -> dict[str, int] | None:
        """Return PodTopologySpread's score of each feasible node. None without a soft constraint.

        Source: podtopologyspread/scoring.go ``Score``, ``NormalizeScore``.
        """
        by_slot = scores(self.problem.soft, self.eligible, feasible)
        names = self.problem.nodes.names
        return None if by_slot is None else {names[slot]: score for slot, score in by_slot.items()}


_PLUGINS: Mapping[str, Callable[[Cycle], PluginResult]] = {
    NODE_NAME: lambda cycle: run_node_name(cycle.problem.pod, cycle.problem.nodes, cycle.problem.version),
    NODE_UNSCHEDULABLE: lambda cycle: run_node_unschedulable(cycle.problem.pod, cycle.problem.nodes),
    TAINT_TOLERATION: lambda cycle: run_taint_toleration(
        cycle.problem.pod, cycle.problem.nodes, cycle.eligible.tolerated, cycle.problem.version
    ),
    NODE_AFFINITY: lambda cycle: run_node_affinity(
        cycle.problem.pod, cycle.required, cycle.eligible.usable, cycle.enforced
    ),
    NODE_PORTS: lambda cycle: run_node_ports(cycle.problem.ports, cycle.problem.taken_ports),
    NODE_RESOURCES_FIT: lambda cycle: run_node_resources_fit(cycle.problem.resources),
    VOLUME_RESTRICTIONS: lambda cycle: run_volume_restrictions(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes, cycle.problem.version
    ),
    NODE_VOLUME_LIMITS: lambda cycle: run_node_volume_limits(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes, cycle.problem.version
    ),
    VOLUME_BINDING: lambda cycle: run_volume_binding(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes, cycle.problem.version
    ),
    VOLUME_ZONE: lambda cycle: run_volume_zone(cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes),
    pod_topology_spread.POD_TOPOLOGY_SPREAD: lambda cycle: cycle.spread[0],
    INTER_POD_AFFINITY: lambda cycle: run_inter_pod_affinity(cycle.problem.neighbours, cycle.problem.nodes),
}


def _of_plugin(status: Status, plugin: str) -> Status:
    """Add the plugin's name to a filter status. Errors get kube-scheduler's wording.

    Source: runtime/framework.go ``RunFilterPlugins``.
    """
    if status.code == Code.ERROR:
        return Status.of_error(f'running "{plugin}" filter plugin: {status.reasons[0]}').with_plugin(plugin)
    return status.with_plugin(plugin)


def decide(problem: Problem) -> Verdict:
    """Run all default filters on a problem.

        >>> decide(take(index, pod)).sentence
        '0/3 nodes are available: 3 Insufficient cpu.'

    Source: schedule_one.go ``findNodesThatFitPod``.
    """
    return Cycle(problem).verdict()
