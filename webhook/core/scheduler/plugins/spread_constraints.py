"""Spread constraints as the scheduler parses them, and the pods that match each.

A pod without constraints gets the cluster's default constraints. The scheduler deduces their selector
(`default_selector`).

Source: kube-scheduler podtopologyspread common.go, plugin.go; plugins/helper/spread.go.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import Selector, compile_selector, selector_from_labels
from webhook.core.api.types import HONOR, IGNORE, Pod, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.default_selector import default_selector
from webhook.core.scheduler.profile import SYSTEM_CONSTRAINTS


class SpreadDefaults(Struct, frozen=True):
    """The cluster's default constraints.

    Attributes:
        system: Whether these are kube-scheduler's built-in constraints. Built-in constraints only score nodes. A node
            without a topology key gets a score only with built-in constraints.

    Source: plugin.go ``defaultConstraints``, ``systemDefaulted``.
    """

    constraints: tuple[SpreadConstraint, ...]
    system: bool = False


SYSTEM_DEFAULTS = SpreadDefaults(SYSTEM_CONSTRAINTS, system=True)


class Constraint(Struct, frozen=True):
    """A parsed and compiled constraint, with defaults filled in. Source: common.go ``topologySpreadConstraint``."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1  # absent: one domain is enough
    node_affinity_policy: str = HONOR
    node_taints_policy: str = IGNORE


class CountedConstraints(Struct, frozen=True):
    """A pod's hard or soft constraints, with the number of pods matching each.

    Attributes:
        counts: For each constraint, the number of matching pods by node slot. Slots of deleted nodes can be included.
        require_all: Whether nodes without one of the topology keys get no score.
        error: The error about an invalid selector. With an error, the pod cannot be scheduled.
    """

    constraints: tuple[Constraint, ...] = ()
    counts: tuple[Counts, ...] = ()
    require_all: bool = True
    error: str = ""

    def with_nominated(self, slot: int, pods: int) -> "CountedConstraints":
        """Add this number of nominated pods of the namespace on a node.

        Upstream counts nominated pods for a constraint with an empty selector, even in releases where it counts no
        existing pods.

        Source: filtering.go ``updateWithPod``.
        """
        counts = tuple(
            {slot: pods} if constraint.selector.empty and pods and not existing else existing
            for constraint, existing in zip(self.constraints, self.counts, strict=True)
        )
        return replace(self, counts=counts)


def count_constraints(
    pod: Pod, action: str, index: ReadOnlyIndex, defaults: SpreadDefaults, version: KubernetesVersion
) -> CountedConstraints:
    """Count the pods that match the pod's constraints. Without own constraints, use the cluster's defaults.

    ``action`` is the whenUnsatisfiable of the constraints to count.

    Source: plugin.go ``getConstraints``; common.go ``buildDefaultConstraints``.
    """
    namespace, labels = pod.meta.namespace, pod.labels
    own = pod.pod_spec.constraints
    try:
        constraints = _parsed(own or defaults.constraints, labels, action)
    except SelectorError as error:
        source = "obtaining pod's hard" if own else "setting default hard"
        return CountedConstraints(error=f"{source} topology spread constraints: {error.text(version)}")
    if constraints and not own:
        selector = default_selector(pod.meta, namespace, index)
        # Without a Service or controller the deduced selector is empty, and would count every pod.
        if selector.empty:
            return CountedConstraints()
        constraints = tuple(replace(constraint, selector=selector) for constraint in constraints)
    # Zone and host constraints usually share a selector, so it is counted once.
    counts: dict[Selector, Counts] = {}
    for constraint in constraints:
        selector = constraint.selector
        if selector not in counts:
            skipped = selector.nothing or (selector.empty and not gates.COUNTS_EMPTY_SELECTOR.holds(version))
            counts[selector] = {} if skipped else index.pods.count(namespace, selector)
    return CountedConstraints(
        constraints=constraints,
        counts=tuple(counts[constraint.selector] for constraint in constraints),
        require_all=bool(own) or not defaults.system,
    )


def _parsed(written: Sequence[SpreadConstraint], labels: Mapping[str, str], action: str) -> tuple[Constraint, ...]:
    """Parse the constraints with this whenUnsatisfiable. Source: common.go ``filterTopologySpreadConstraints``."""
    parsed = []
    for constraint in written:
        if constraint.when_unsatisfiable != action:
            continue
        parsed.append(
            Constraint(
                max_skew=constraint.max_skew or 0,
                topology_key=constraint.topology_key or "",
                selector=counting_selector(constraint, labels),
                min_domains=1 if constraint.min_domains is None else constraint.min_domains,
                node_affinity_policy=HONOR
                if constraint.node_affinity_policy is None
                else constraint.node_affinity_policy,
                node_taints_policy=IGNORE if constraint.node_taints_policy is None else constraint.node_taints_policy,
            )
        )
    return tuple(parsed)


def counting_selector(written: SpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """Return the selector merged from labelSelector, and from matchLabelKeys with the pod's labels.

    Source: common.go ``filterTopologySpreadConstraints``, ``mergeLabelSetWithSelector``.
    """
    selector = compile_selector(written.selector)
    keys = {key: labels[key] for key in written.match_label_keys or () if key in labels}
    # Keys narrow a selection, and a null selector selects nothing.
    if keys and not selector.nothing:
        selector = selector_from_labels(keys).joined(selector.requirements)
    return selector
