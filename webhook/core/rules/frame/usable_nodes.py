"""The usable nodes for the pods of a template, and the nodes counted by its constraints."""

from collections.abc import Iterator

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.types import HONOR, IGNORE
from webhook.core.api.well_known import HOSTNAME
from webhook.core.cached_property import cached_property
from webhook.core.policy.capacity import domain_count
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.scheduler.plugins.node_selection import settled_nodes, tolerated_nodes, usable_nodes
from webhook.core.workloads.workload import Template

# No cluster has as many domains: a minDomains of this or more is there on purpose, to make maxSkew a cap.
CAPPING_MIN_DOMAINS = 100_000


class UsableNodes:
    """Sets of nodes for the pods of a template, such as the usable nodes.

    Each set is a bit set of node slots. ``spec`` is the pod spec with the additions of the RuntimeClass.
    """

    def __init__(self, subject: Subject, template: Template) -> None:
        index = subject.context.cluster
        self.template = template
        self.policy = subject.policy
        self.view = index.nodes.view()
        self.spec = subject.admitted(template, index).pod_spec

    @cached_property
    def usable(self) -> int:
        """The nodes allowed by node selector and node affinity."""
        spec = self.spec
        if not spec.node_selector and spec.affinity is None:
            return self.view.live
        return usable_nodes(self.view, compile_required_nodes(spec.node_selector, spec.affinity))

    @cached_property
    def tolerated(self) -> int:
        """The nodes with tolerated taints."""
        return tolerated_nodes(self.view, self.spec.tolerations)

    @cached_property
    def tolerated_later(self) -> int:
        """The nodes without untolerated lasting taints. Taints of starting or leaving nodes do not last."""
        return self.tolerated | (self.view.live & ~settled_nodes(self.view))

    @cached_property
    def open(self) -> int:
        """The usable nodes without untolerated taints, as a bit set of slots.

        Includes full nodes. Excludes cordoned nodes, and nodes with the taint of a starting or leaving node.
        """
        return self.usable & self.tolerated & settled_nodes(self.view)

    @cached_property
    def with_hard_keys(self) -> int:
        """The nodes with the topology keys of all hard constraints. The scheduler counts pods only on these nodes."""
        nodes = self.view.live
        for constraint in self.template.pod.pod_spec.constraints:
            if constraint.hard:
                nodes &= self.view.column(constraint.topology_key or "").present
        return nodes

    def counting(self, placed: Placed) -> int:
        """The nodes whose pods the scheduler counts for the constraint, as a bit set."""
        constraint, nodes = placed.constraint, self.view.live
        for each in self.template.pod.pod_spec.constraints:
            # The scheduler filters by hard and scores by soft constraints. Neither reads the keys of the other.
            if each.hard is constraint.hard:
                nodes &= self.view.column(each.topology_key or "").present
        if constraint.topology_key == HOSTNAME and not constraint.hard:
            return nodes  # scoring reads each host's own count
        if constraint.node_affinity_policy != IGNORE:
            nodes &= self.usable
        return nodes & self.tolerated if constraint.node_taints_policy == HONOR else nodes

    def domains(self, placed: Placed) -> int:
        """The number of eligible domains, including configured domains and the domains of starting or leaving nodes."""
        constraint, view = placed.constraint, self.view
        nodes = self.with_hard_keys
        if constraint.node_affinity_policy != IGNORE:
            nodes &= self.usable
        if constraint.node_taints_policy == HONOR:
            nodes &= self.tolerated_later  # a restart of a node is no loss of its domain
        return domain_count(self.policy, view, constraint.topology_key or "", nodes)


def usable_nodes_of(subject: Subject) -> Iterator[tuple[Placed, UsableNodes]]:
    """Yield each constraint with the node sets for its template's pods."""
    nodes: UsableNodes | None = None
    for placed in subject.placed:
        if nodes is None or nodes.template is not placed.template:
            nodes = UsableNodes(subject, placed.template)
        yield placed, nodes
