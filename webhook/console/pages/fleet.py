"""The page of several clusters: the totals of each, and the faulty workloads side by side."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.answers.fleet import FleetCluster, FleetWorkload, UnreadCluster, WorkloadInCluster
from webhook.core.text import one_line


class _Cell(Struct, frozen=True):
    """The faults of a workload in a cluster. ``bad`` marks a finding of severity high, ``text`` is empty if absent."""

    text: str
    bad: bool = False


class _Row(Struct, frozen=True):
    name: str
    cells: tuple[_Cell, ...]


def fleet_page(
    clusters: Sequence[FleetCluster | UnreadCluster], workloads: Sequence[FleetWorkload]
) -> dict[str, object]:
    """Return the template's values for the page of several clusters."""
    read = [cluster for cluster in clusters if isinstance(cluster, FleetCluster)]
    names = [cluster.cluster for cluster in read]
    return {
        "clusters": read,
        "faults": [f"{one_line(cluster.cluster)} {cluster.fault}" for cluster in clusters if cluster.fault],
        "rows": [_Row(one_line(workload.workload), _cells(workload.clusters, names)) for workload in workloads],
    }


def _cells(states: Sequence[WorkloadInCluster], names: Sequence[str]) -> tuple[_Cell, ...]:
    own = {state.cluster: _Cell(state.text, bad=state.findings.high > 0) for state in states}
    return tuple(own.get(name, _Cell("")) for name in names)
