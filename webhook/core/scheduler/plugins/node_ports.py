"""The NodePorts plugin: rejects nodes with a conflicting host port.

Source: kube-scheduler framework/plugins/nodeports/node_ports.go.
"""

from collections.abc import Mapping, Sequence

from webhook.core.api.types import ANY_ADDRESS
from webhook.core.budget import check_time
from webhook.core.index.pod_extras import HostPort
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, unschedulable

NODE_PORTS = "NodePorts"
_PORTS_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


def run_node_ports(wanted: Sequence[HostPort], taken: Mapping[int, Sequence[HostPort]]) -> PluginResult:
    """Run NodePorts. ``taken`` has the host ports in use by slot. Source: node_ports.go ``fitsPorts``."""
    if not wanted:
        return PASSES
    conflicting = 0
    # Most nodes have no host port in use, and ``taken`` leaves them out.
    for slot, ports in taken.items():
        check_time()
        if any(ports_conflict(one, other) for one in wanted for other in ports):
            conflicting |= 1 << slot
    return PluginResult(OK, lambda candidates: [(_PORTS_TAKEN, candidates & conflicting)])


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether a node cannot give both host ports. Source: kube-scheduler framework/types.go ``CheckConflict``."""
    # 0.0.0.0 is every address of the node, and conflicts with each of them.
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
