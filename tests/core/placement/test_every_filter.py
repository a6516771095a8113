"""Every filter is asked about whole workloads as well, so that a new one is not left out in silence."""

import inspect

import pytest

from webhook.core.placement.proofs import constraint_capacity, every_order, workload_problem
from webhook.core.scheduler.problem import FILTERS

# Where a whole workload asks for what the filter decides, and by which words of the code.
ASKED = {
    "NodeName": (workload_problem.candidate_nodes, "NODE_NAME"),
    "NodeUnschedulable": (workload_problem.candidate_nodes, "NODE_UNSCHEDULABLE"),
    "TaintToleration": (workload_problem.candidate_nodes, "cycle.eligible.tolerated"),
    "NodeAffinity": (workload_problem.candidate_nodes, "cycle.eligible.usable"),
    "NodePorts": (every_order._start_nodes, "NODE_PORTS"),
    "NodeResourcesFit": (every_order._fits, "_NodeCapacity("),
    "VolumeRestrictions": (every_order._start_nodes, "VOLUME_RESTRICTIONS"),
    "NodeVolumeLimits": (every_order._start_nodes, "NODE_VOLUME_LIMITS"),
    "VolumeBinding": (workload_problem.candidate_nodes, "VOLUME_BINDING"),
    "VolumeZone": (workload_problem.candidate_nodes, "VOLUME_ZONE"),
    "PodTopologySpread": (constraint_capacity.ConstraintCapacity, "limit"),
    "InterPodAffinity": (workload_problem.candidate_nodes, "INTER_POD_AFFINITY"),
}


def test_no_filter_is_missing():
    assert ASKED.keys() == {*FILTERS}, "ask it in webhook/core/placement, and say where in ASKED"


@pytest.mark.parametrize("plugin", ASKED)
def test_it_is_asked_there(plugin):
    where, words = ASKED[plugin]
    assert words in inspect.getsource(where)
