"""Kinds of workloads, told apart by group and kind, whatever the version."""

from collections.abc import Mapping

from webhook.core.api.well_known import POD_TEMPLATE_HASH, ROLLOUTS_POD_TEMPLATE_HASH

GroupKind = tuple[str, str]
REPLICA_SET: GroupKind = ("apps", "ReplicaSet")
DAEMON_SET: GroupKind = ("apps", "DaemonSet")
JOB: GroupKind = ("batch", "Job")
# Kinds whose selector the scheduler reads: without their owner, pods would get the wrong selector or none.
SELECTING: frozenset[GroupKind] = frozenset({REPLICA_SET, ("apps", "StatefulSet"), ("", "ReplicationController")})
# Workloads that make ReplicaSets, and the label by which each tells its ReplicaSets apart.
REVISIONED: Mapping[GroupKind, str] = {
    ("apps", "Deployment"): POD_TEMPLATE_HASH,
    ("argoproj.io", "Rollout"): ROLLOUTS_POD_TEMPLATE_HASH,
}


def group_kind(api_version: str, kind: str) -> GroupKind:
    """A kind without its version: owners are the same objects in every version."""
    return api_version.rpartition("/")[0], kind
