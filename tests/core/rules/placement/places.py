"""Workloads and clusters for the tests of rules about places."""

from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint

TAINTED, CEILING = "tainted-nodes-counted", "zone-host-ceiling"
ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
HONOR = " nodeTaintsPolicy:Honor"


def path(rest):
    return f"spec.template.spec.topologySpreadConstraints{rest}"


NOON = "2026-11-21T12:00:00Z"


def with_node(index, name, *, cordoned=False, **taints):
    """The cluster with that node cordoned, or tainted: a key, and since when."""
    found = [Taint(key=key, effect="NoSchedule", time_added=since) for key, since in taints.items()]
    spec = NodeSpec(taints=tuple(found), unschedulable=cordoned or None)
    index.apply("MODIFIED", replace(index.nodes.get(name), spec=spec))
    return index
