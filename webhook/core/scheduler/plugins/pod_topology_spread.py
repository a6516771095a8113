"""The PodTopologySpread plugin: hard constraints filter nodes, soft constraints score them.

A node admits the incoming pod if this holds for every hard constraint, in the node's own domain:

    matching pods + (1 if the pod matches itself) - global minimum <= maxSkew

Matching pods are in the pod's namespace, are not terminating, and run on nodes with the keys of all hard constraints
and within the constraint's node policies. The domains of those nodes are eligible, even without a matching pod.

`spread_constraints` parses the constraints and counts the pods by node.

Source: kube-scheduler podtopologyspread common.go, filtering.go, scoring.go.
"""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.types import HONOR
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts
from webhook.core.scheduler.plugins.spread_constraints import Constraint, CountedConstraints
from webhook.core.scheduler.plugins.status import (
    OK,
    PASSES,
    PluginResult,
    Status,
    StatusOfNodes,
    unresolvable,
    unschedulable,
)

POD_TOPOLOGY_SPREAD = "PodTopologySpread"
MISSING_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
TOO_SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")

# Upstream's minimum without any domain (MaxInt32). It matters only for minDomains below 1.
_NO_DOMAIN = 2**31 - 1


class DomainCounts(Struct, frozen=True):
    """The matching pods of a hard constraint by domain.

    Attributes:
        column: The node labels of the topology key.
        match_num: Matching pods by domain (its number in ``column``), without domains of 0 pods.
        counting: The nodes that the constraint counts. Their domains are eligible.
        global_minimum: The fewest matching pods of an eligible domain.
        self_match: 1 if the pod matches the constraint's selector, else 0.

    Source: filtering.go ``preFilterState``.
    """

    constraint: Constraint
    column: Column
    match_num: Counts
    counting: int
    global_minimum: int
    self_match: int

    @property
    def limit(self) -> int:
        """The most matching pods of a domain that admits the pod: maxSkew + global minimum - self match.

        Source: filtering.go ``Filter``.
        """
        return self.constraint.max_skew + self.global_minimum - self.self_match

    @property
    def too_few(self) -> bool:
        """Whether the minimum is 0 because there are fewer eligible domains than minDomains."""
        return self.column.domain_count(self.counting) < self.constraint.min_domains

    @property
    def counts(self) -> Mapping[str, int]:
        """The matching pods of every eligible domain, by the topology key's value."""
        values = self.column.values
        return {values[number]: self.match_num.get(number, 0) for number in self.column.domains(self.counting)}


class EligibleNodes(Struct, frozen=True):
    """The nodes allowed by the pod's affinity (``usable``), and the nodes with tolerated taints (``tolerated``).

    Source: common.go ``matchNodeInclusionPolicies``.
    """

    nodes: NodeView
    usable: int
    tolerated: int

    def counted(self, constraint: Constraint, with_keys: int) -> int:
        """Select nodes included by the constraint's node policies. Source: common.go ``matchNodeInclusionPolicies``."""
        if constraint.node_affinity_policy == HONOR:
            with_keys &= self.usable
        if constraint.node_taints_policy == HONOR:
            with_keys &= self.tolerated
        return with_keys


def count_domains(
    counted: CountedConstraints, labels: Mapping[str, str], eligible: EligibleNodes
) -> tuple[DomainCounts, ...]:
    """Count the matching pods of each constraint by domain, and find the global minimum.

    Source: filtering.go ``calPreFilterState``; scoring.go ``PreScore`` (``requireAllTopologies``).
    """
    nodes = eligible.nodes
    with_keys = nodes.live
    if counted.require_all:
        for constraint in counted.constraints:
            # A node counts only with the keys of all constraints.
            with_keys &= nodes.column(constraint.topology_key).present
    domains = []
    for constraint, counts in zip(counted.constraints, counted.counts, strict=True):
        column = nodes.column(constraint.topology_key)
        counting = eligible.counted(constraint, with_keys & column.present)
        match_num = _by_domain(column, counts, counting)
        minimum = _global_minimum(match_num, column.domain_count(counting), constraint.min_domains)
        # A constraint can count only other pods. Then this pod adds nothing to its domain.
        self_match = int(constraint.selector.matches(labels))
        domains.append(DomainCounts(constraint, column, match_num, counting, minimum, self_match))
    return tuple(domains)


def _by_domain(column: Column, counts: Counts, counting: int) -> Counts:
    """Return the number of matching pods in each domain, by domain number.

    Source: filtering.go ``calPreFilterState``.

    Args:
        column: The domain number of each node slot, for one topologyKey.
        counts: The number of matching pods on each node, by node slot.
        counting: The nodes to count, as a bit set. Pods on other nodes are skipped.
    """
    domain_of = column.domain_of
    # Usually every node with the key counts, and the counts need no filter.
    if counting != column.present:
        members = node_sets.flags(counting, len(domain_of))
        counts = {slot: number for slot, number in counts.items() if members[slot]}
    # Each node is its own domain, so there is nothing to add up.
    if column.one_each:
        return {domain_of[slot]: number for slot, number in counts.items() if domain_of[slot] >= 0}
    match_num: dict[int, int] = {}
    for slot, number in counts.items():
        domain = domain_of[slot]
        match_num[domain] = match_num.get(domain, 0) + number
    # -1 has the pods on deleted nodes and on nodes without the key.
    match_num.pop(-1, None)
    return match_num


def _global_minimum(match_num: Counts, domains: int, min_domains: int) -> int:
    """Return the fewest pods of an eligible domain. 0 with fewer than minDomains domains.

    Source: filtering.go ``minMatchNum``.
    """
    # ``match_num`` leaves out domains without pods. If it is shorter than the number of domains, one has 0.
    if domains < min_domains or len(match_num) < domains:
        return 0
    return min(match_num.values(), default=_NO_DOMAIN)


def run_filter(
    counted: CountedConstraints, labels: Mapping[str, str], eligible: EligibleNodes
) -> tuple[PluginResult, tuple[DomainCounts, ...]]:
    """Run PodTopologySpread. Return also its counts. Source: filtering.go ``PreFilter``, ``Filter``."""
    if counted.error:
        return PluginResult(Status.of_error(f"get constraints from pod: {counted.error}")), ()
    if not counted.constraints:
        return PASSES, ()
    domains = count_domains(counted, labels, eligible)

    def reject(nodes: int) -> list[StatusOfNodes]:
        missing = skewed = 0
        # Upstream returns at the first failing constraint, so it gives the node's reason.
        for counts in domains:
            without_key = nodes & ~counts.column.present
            missing |= without_key
            too_many = nodes & ~without_key & above_limit(counts)
            skewed |= too_many
            nodes &= ~(without_key | too_many)
        return [(MISSING_LABEL, missing), (TOO_SKEWED, skewed)]

    return PluginResult(OK, reject), domains


def above_limit(domains: DomainCounts) -> int:
    """Return the nodes (a bit set of slots) in domains with more matching pods than the limit.

    Source: filtering.go ``Filter``.
    """
    limit = domains.limit
    if limit < 0:  # even a domain without matching pods has too many
        return domains.column.present
    crowded = [number for number, pods in domains.match_num.items() if pods > limit]
    return domains.column.nodes_of(crowded) if crowded else 0
