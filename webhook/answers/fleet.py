"""The entries of ``audit -o json`` for several clusters: one per cluster, and one per workload name."""

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, UnsetType

from webhook.answers.document import Document
from webhook.core.scan.scan_results import Count, PendingCause


class SeverityCounts(Document, frozen=True, kw_only=True):
    """The number of findings by severity, without exempted ones."""

    high: Count
    medium: Count
    low: Count


class FleetCluster(Document, frozen=True, kw_only=True):
    """A cluster of the fleet.

    Attributes:
        cluster: The kubeconfig's context, or the name of the file.
        error: Why it is incomplete. Absent if it was read completely.
        workloads: The number of checked workloads.
        would_deny: Workloads that a webhook with ceiling deny would deny.
        pending: Pending pods by cause.
        above_max_skew: Workloads with a skew above their maxSkew.
    """

    rule: Literal["fleet-cluster"]
    cluster: str
    error: str | UnsetType = UNSET
    nodes: Count
    pods: Count
    workloads: Count
    findings: SeverityCounts
    would_deny: Count
    pending: Mapping[PendingCause, Count]
    above_max_skew: Count

    @property
    def fault(self) -> str:
        """The words after the cluster's name in a line about its error. Empty if it was read completely."""
        return f"is incomplete: {self.error}" if self.error else ""


class UnreadCluster(Document, frozen=True, kw_only=True):
    """A cluster that could not be read, and the error."""

    rule: Literal["fleet-cluster"]
    cluster: str
    error: str

    @property
    def fault(self) -> str:
        """The words after the cluster's name in a line about its error."""
        return f"was not read: {self.error}"


class WorkloadInCluster(Document, frozen=True, kw_only=True):
    """A workload in one of the clusters.

    Attributes:
        rules: The rules with a finding that is not exempted.
        pending: Pending pods by cause.
        above_max_skew: The number of its constraints with a skew above maxSkew.
    """

    cluster: str
    findings: SeverityCounts
    rules: tuple[str, ...]
    pending: Mapping[PendingCause, Count]
    above_max_skew: Count

    @property
    def text(self) -> str:
        """The state for a table: ``2/1/0, 3 Pending`` for 2 findings of severity high, 1 medium and 0 low."""
        parts = [f"{self.findings.high:,}/{self.findings.medium:,}/{self.findings.low:,}"]
        if pending := sum(self.pending.values()):
            parts.append(f"{pending:,} Pending")
        if self.above_max_skew:
            parts.append("above maxSkew")
        return ", ".join(parts)


class FleetWorkload(Document, frozen=True, kw_only=True):
    """The workload of a kind, namespace and name, in each cluster that has it.

    A workload without a fault in any cluster has no entry.

    Attributes:
        workload: Kind, namespace and name, as in ``Deployment shop/web``.
        differs: Whether the workload has findings of different rules in two clusters.
        clusters: An entry for each cluster with the workload.
    """

    rule: Literal["fleet-workload"]
    workload: str
    differs: bool
    clusters: tuple[WorkloadInCluster, ...]
