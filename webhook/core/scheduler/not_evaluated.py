"""The parts of kube-scheduler and kube-apiserver that a verdict leaves out.

Source: pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from collections.abc import Mapping

from webhook.core.api.pod_requests import incoming_request
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import LIMIT_RANGE, PRIORITY_CLASS, RUNTIME_CLASS
from webhook.core.scheduler.ephemeral_claims import UNKNOWN_VOLUME
from webhook.core.scheduler.plugins.volumes import DRIVER_RESOURCES
from webhook.core.scheduler.problem import Problem

# Default filters that are not evaluated: plugin -> its input. Source: pkg/scheduler/apis/config/v1/default_plugins.go.
OTHER_FILTERS: Mapping[str, str] = {
    "DynamicResources": "resource claims, and device classes that provide extended resources",
    "NodeDeclaredFeatures": "node features needed by the pod",
}
# Facts of kube-scheduler unknown at admission or missing from the index: key -> the part not evaluated.
NOT_EVALUATED: Mapping[str, str] = {
    "SchedulerConfiguration": "disabled plugins, added node affinity, ignored resources, extenders",
    "SchedulingGates": "kube-scheduler skips a pod with scheduling gates",
    "PodGroup": "kube-scheduler places all pods of a PodGroup or none, in a fixed order, within the group's topology",
    **OTHER_FILTERS,
    "CSIStorageCapacity": "free capacity of storage drivers",
    "VolumeAttachment": "volumes attached to a node without a pod",
    "CSIDriver": "storage drivers that must be installed on the node",
    "EphemeralVolumes": "volumes created before the scheduler chooses a node",
    "SchedulerExtenders": "extenders and third-party plugins",
}
# The same for kube-apiserver's additions to a new pod. Most clusters' views include the first three.
NOT_ADMITTED: Mapping[str, str] = {
    LIMIT_RANGE: "the namespace's default requests and limits for a new pod",
    PRIORITY_CLASS: "priority and preemption of a new pod",
    RUNTIME_CLASS: "overhead, nodes and tolerations from the runtime class of a new pod",
    "AdmissionPlugins": "quota, other webhooks and policies for a new pod",
}


def not_evaluated(problem: Problem) -> tuple[str, ...]:
    """List the keys of ``NOT_EVALUATED`` that could change the verdict on this pod."""
    pod, profile, storage = problem.pod, problem.profile, problem.storage
    spec = pod.pod_spec
    extended = any("/" in name for name, _ in incoming_request(pod, RECORDED).amounts)
    concerns = {
        "SchedulerConfiguration": profile is None,
        "SchedulingGates": bool(spec.scheduling_gates),
        "PodGroup": spec.scheduling_group is not None,
        "DynamicResources": bool(spec.resource_claims) or extended,
        "NodeDeclaredFeatures": bool(spec.host_network) and spec.host_users is False,
        **{kind: kind in storage.unknown for kind in DRIVER_RESOURCES},
        "EphemeralVolumes": UNKNOWN_VOLUME.meta.name in storage.volumes,
        "SchedulerExtenders": profile is not None,
    }
    return tuple(name for name, concerned in concerns.items() if concerned)
