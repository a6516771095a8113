"""Names with a meaning in Kubernetes: labels, taints, annotations and plugins.

Source: k8s.io/api core/v1 well_known_labels.go and well_known_taints.go, apps/v1 and batch/v1 types.go,
annotation_key_constants.go; k8s.io/kubernetes pkg/controller; the projects named below. `workloads` has the names of
single kinds of custom resources.
"""

from collections.abc import Mapping

from webhook.core.api.types import Taint

# Labels of nodes.
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
BETA_ARCH = "beta.kubernetes.io/arch"
BETA_OS = "beta.kubernetes.io/os"
_BETA_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
MASTER = "node-role.kubernetes.io/master"
# Karpenter's labels. PROVISIONER is the name before release 0.32.
NODE_POOL = "karpenter.sh/nodepool"
PROVISIONER = "karpenter.sh/provisioner-name"
CAPACITY_TYPE = "karpenter.sh/capacity-type"

SUCCESSORS = {
    BETA_ZONE: ZONE,
    BETA_REGION: REGION,
    _BETA_INSTANCE_TYPE: INSTANCE_TYPE,
    BETA_ARCH: ARCH,
    BETA_OS: OS,
}
"""Deprecated node labels, and their replacements."""

# The only node field in node affinity.
NODE_NAME_FIELD = "metadata.name"

# Taints of nodes. Source: also cloud-provider, autoscaler utils/taints, karpenter apis/v1/taints.go.
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"
_TAINT_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_TAINT_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_TAINT_SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
_TAINT_TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
_TAINT_DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
_TAINT_KARPENTER_DISRUPTED = "karpenter.sh/disrupted"
_TAINT_KARPENTER_DISRUPTION = "karpenter.sh/disruption"
_TAINT_KARPENTER_UNREGISTERED = "karpenter.sh/unregistered"

NODE_STATES: Mapping[str, str] = {
    TAINT_NOT_READY: "not ready",
    TAINT_UNREACHABLE: "unreachable",
    TAINT_UNSCHEDULABLE: "cordoned",
    TAINT_MEMORY_PRESSURE: "under memory pressure",
    TAINT_DISK_PRESSURE: "under disk pressure",
    TAINT_PID_PRESSURE: "under PID pressure",
    TAINT_NETWORK_UNAVAILABLE: "without a network",
    _TAINT_OUT_OF_SERVICE: "out of service",
    _TAINT_UNINITIALIZED: "not initialized by its cloud provider",
    _TAINT_SHUTDOWN: "shut down",
    _TAINT_TO_BE_DELETED: "being removed by the cluster autoscaler",
    _TAINT_DELETION_CANDIDATE: "about to be removed by the cluster autoscaler",
    _TAINT_KARPENTER_DISRUPTED: "being removed by Karpenter",
    _TAINT_KARPENTER_DISRUPTION: "being removed by Karpenter",
    _TAINT_KARPENTER_UNREGISTERED: "not registered yet",
}
"""Temporary taints of nodes that start, fail, upgrade or leave, each with its state in words.

Operators wait or repair the node. Workloads should not tolerate these taints.
"""

# Effects of taints. PreferNoSchedule only scores.
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
FILTERING_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
# The taint of a cordoned node.
CORDON_TAINT = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)

# kube-apiserver sets this label on every namespace.
NAMESPACE_NAME = "kubernetes.io/metadata.name"
DEFAULT_NAMESPACE = "default"

# Labels that controllers add to pods.
POD_TEMPLATE_HASH = "pod-template-hash"
ROLLOUTS_POD_TEMPLATE_HASH = "rollouts-pod-template-hash"  # of Argo Rollouts
CONTROLLER_REVISION_HASH = "controller-revision-hash"
POD_TEMPLATE_GENERATION = "pod-template-generation"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
OLD_JOB_NAME = "job-name"
OLD_CONTROLLER_UID = "controller-uid"
JOB_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
CRONJOB_SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

JOB_LABELS = (JOB_NAME, CONTROLLER_UID, OLD_JOB_NAME, OLD_CONTROLLER_UID)
"""Labels with the Job of a pod. A Job's generated selector uses them."""

# Recommended labels of any object. Source: kubernetes.io/docs/concepts/overview/working-with-objects/common-labels.
APP_NAME = "app.kubernetes.io/name"
APP_INSTANCE = "app.kubernetes.io/instance"
APP_VERSION = "app.kubernetes.io/version"
APP_COMPONENT = "app.kubernetes.io/component"
APP_PART_OF = "app.kubernetes.io/part-of"
APP_MANAGED_BY = "app.kubernetes.io/managed-by"
APP_CREATED_BY = "app.kubernetes.io/created-by"

# Users and groups. Source: pkg/auth/nodeidentifier, apiserver authentication/user, plugin/pkg/auth/authorizer/rbac.
NODE_USER = "system:node:"
NODES_GROUP = "system:nodes"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SERVICE_ACCOUNT = "system:serviceaccount:"
KUBE_SYSTEM_ACCOUNT = "system:serviceaccount:kube-system:"
KUBE_SYSTEM_ACCOUNTS_GROUP = "system:serviceaccounts:kube-system"
CONTROLLER_ACCOUNT_SUFFIX = "-controller"

# Annotations of pods and their owners.
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
PREFER_AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
DESIRED_REPLICAS_ANNOTATIONS = ("deployment.kubernetes.io/desired-replicas", "rollout.argoproj.io/desired-replicas")
"""On a ReplicaSet, the desired replicas of its Deployment or Rollout, over all ReplicaSets."""

# Annotations of claims, volumes, storage classes and CSINodes.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  # set if present, with any value
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

# In-tree volume plugins of Kubernetes, also removed ones.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
AWS_EBS = "kubernetes.io/aws-ebs"
AZURE_DISK = "kubernetes.io/azure-disk"
AZURE_FILE = "kubernetes.io/azure-file"
CINDER = "kubernetes.io/cinder"
GCE_PD = "kubernetes.io/gce-pd"
PORTWORX = "kubernetes.io/portworx-volume"
VSPHERE = "kubernetes.io/vsphere-volume"

# kubectl's copy of the object at the last `kubectl apply`. Source: k8s.io/api core/v1 annotation_key_constants.go.
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

# evenspread's own names: a namespace label, annotations of objects, pods and reports, and the source of events.
OUR_PREFIX = "evenspread.io/"
CEILING_LABEL = "evenspread.io/ceiling"
SKIP_ANNOTATION = "evenspread.io/skip"
INJECTED_ANNOTATION = "evenspread.io/injected"
EXEMPT_ANNOTATION = "evenspread.io/exempt"
FALLBACK_ANNOTATION = "evenspread.io/fallback"
SCALE_IN_ANNOTATION = "evenspread.io/scale-in"
LEFT_OUT_ANNOTATION = "evenspread.io/results-left-out"
# On evenspread's webhook configuration: rules in JSON. The controller adds them once replicas answer.
RULES_ANNOTATION = "evenspread.io/rules"
# On a ValidatingAdmissionPolicyBinding of the chart: settings in JSON (webhook/core/admission_policies/installed.py).
POLICIES_ANNOTATION = "evenspread.io/admission-policies"
EVENT_CONTROLLER = "evenspread.io/controller"
