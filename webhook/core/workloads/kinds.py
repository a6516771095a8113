"""Kinds of workloads, told apart by group and kind, whatever the version."""

from collections.abc import Mapping

GroupKind = tuple[str, str]
REPLICA_SET: GroupKind = ("apps", "ReplicaSet")
DAEMON_SET: GroupKind = ("apps", "DaemonSet")
JOB: GroupKind = ("batch", "Job")
# Kinds whose selector the scheduler reads: without their owner, pods would get the wrong selector or none.
SELECTING: frozenset[GroupKind] = frozenset({REPLICA_SET, ("apps", "StatefulSet"), ("", "ReplicationController")})
# Workloads that make ReplicaSets, and the label by which each tells its ReplicaSets apart.
REVISIONED: Mapping[GroupKind, str] = {
    ("apps", "Deployment"): "pod-template-hash",
    ("argoproj.io", "Rollout"): "rollouts-pod-template-hash",
}


def group_kind(api_version: str, kind: str) -> GroupKind:
    """A kind without its version: owners are the same objects in every version."""
    return api_version.rpartition("/")[0], kind
