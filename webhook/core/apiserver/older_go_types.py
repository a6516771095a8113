"""What is otherwise in older releases in the table of `webhook.core.apiserver.go_types`.

Made by `python conformance/write_types.py` of `oracle types`; not edited by hand.

Shape: by minor release, the lines that differ from those of the next one.
"""

from collections.abc import Mapping

OLDER: Mapping[int, str] = {
    36: """
v1.ClusterTrustBundleProjection { name:*string signerName:*string labelSelector:*v1.LabelSelector optional:*bool
 path:string }
v1.ConfigMapVolumeSource { LocalObjectReference/name:string items:[]v1.KeyToPath defaultMode:*int32 optional:*bool }
v1.DownwardAPIVolumeFile { path:string fieldRef:*v1.ObjectFieldSelector resourceFieldRef:*v1.ResourceFieldSelector
 mode:*int32 }
v1.DownwardAPIVolumeSource { items:[]v1.DownwardAPIVolumeFile defaultMode:*int32 }
v1.EmptyDirVolumeSource { medium:v1.StorageMedium sizeLimit:*resource.Quantity }
v1.GRPCAction { port:int32 service:*string }
v1.HTTPGetAction { path:string port:intstr.IntOrString host:string scheme:v1.URIScheme httpHeaders:[]v1.HTTPHeader }
v1.JobSpec { parallelism:*int32 completions:*int32 activeDeadlineSeconds:*int64 podFailurePolicy:*v1.PodFailurePolicy
 successPolicy:*v1.SuccessPolicy backoffLimit:*int32 backoffLimitPerIndex:*int32 maxFailedIndexes:*int32
 selector:*v1.LabelSelector manualSelector:*bool template:v1.PodTemplateSpec ttlSecondsAfterFinished:*int32
 completionMode:*v1.CompletionMode suspend:*bool podReplacementPolicy:*v1.PodReplacementPolicy managedBy:*string }
v1.KeyToPath { key:string path:string mode:*int32 }
v1.NodeAllocatableResourceClaimStatus { resourceClaimName:string containers:[]string
 resources:map[v1.ResourceName]resource.Quantity }
v1.PersistentVolumeClaimStatus { phase:v1.PersistentVolumeClaimPhase accessModes:[]v1.PersistentVolumeAccessMode
 capacity:v1.ResourceList conditions:[]v1.PersistentVolumeClaimCondition allocatedResources:v1.ResourceList
 allocatedResourceStatuses:map[v1.ResourceName]v1.ClaimResourceStatus currentVolumeAttributesClassName:*string
 modifyVolumeStatus:*v1.ModifyVolumeStatus }
v1.PodCertificateProjection { signerName:string keyType:string maxExpirationSeconds:*int32 credentialBundlePath:string
 keyPath:string certificateChainPath:string userAnnotations:map[string]string }
v1.PodSpec { volumes:[]v1.Volume initContainers:[]v1.Container containers:[]v1.Container
 ephemeralContainers:[]v1.EphemeralContainer restartPolicy:v1.RestartPolicy terminationGracePeriodSeconds:*int64
 activeDeadlineSeconds:*int64 dnsPolicy:v1.DNSPolicy nodeSelector:map[string]string serviceAccountName:string
 serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool
 shareProcessNamespace:*bool securityContext:*v1.PodSecurityContext imagePullSecrets:[]v1.LocalObjectReference
 hostname:string subdomain:string affinity:*v1.Affinity schedulerName:string tolerations:[]v1.Toleration
 hostAliases:[]v1.HostAlias priorityClassName:string priority:*int32 dnsConfig:*v1.PodDNSConfig
 readinessGates:[]v1.PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool
 preemptionPolicy:*v1.PreemptionPolicy overhead:v1.ResourceList topologySpreadConstraints:[]v1.TopologySpreadConstraint
 setHostnameAsFQDN:*bool os:*v1.PodOS hostUsers:*bool schedulingGates:[]v1.PodSchedulingGate
 resourceClaims:[]v1.PodResourceClaim resources:*v1.ResourceRequirements hostnameOverride:*string
 schedulingGroup:*v1.PodSchedulingGroup }
v1.PodStatus { observedGeneration:int64 phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string
 nominatedNodeName:string hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus extendedResourceClaimStatus:*v1.PodExtendedResourceClaimStatus
 allocatedResources:v1.ResourceList resources:*v1.ResourceRequirements
 nodeAllocatableResourceClaimStatuses:[]v1.NodeAllocatableResourceClaimStatus }
v1.ProjectedVolumeSource { sources:[]v1.VolumeProjection defaultMode:*int32 }
v1.SecretVolumeSource { secretName:string items:[]v1.KeyToPath defaultMode:*int32 optional:*bool }
v1.ServiceAccountTokenProjection { audience:string expirationSeconds:*int64 path:string }
v1.VolumeMount { name:string readOnly:bool recursiveReadOnly:*v1.RecursiveReadOnlyMode mountPath:string subPath:string
 mountPropagation:*v1.MountPropagationMode subPathExpr:string }
""",
    35: """
v1.PodSpec { volumes:[]v1.Volume initContainers:[]v1.Container containers:[]v1.Container
 ephemeralContainers:[]v1.EphemeralContainer restartPolicy:v1.RestartPolicy terminationGracePeriodSeconds:*int64
 activeDeadlineSeconds:*int64 dnsPolicy:v1.DNSPolicy nodeSelector:map[string]string serviceAccountName:string
 serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool
 shareProcessNamespace:*bool securityContext:*v1.PodSecurityContext imagePullSecrets:[]v1.LocalObjectReference
 hostname:string subdomain:string affinity:*v1.Affinity schedulerName:string tolerations:[]v1.Toleration
 hostAliases:[]v1.HostAlias priorityClassName:string priority:*int32 dnsConfig:*v1.PodDNSConfig
 readinessGates:[]v1.PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool
 preemptionPolicy:*v1.PreemptionPolicy overhead:v1.ResourceList topologySpreadConstraints:[]v1.TopologySpreadConstraint
 setHostnameAsFQDN:*bool os:*v1.PodOS hostUsers:*bool schedulingGates:[]v1.PodSchedulingGate
 resourceClaims:[]v1.PodResourceClaim resources:*v1.ResourceRequirements hostnameOverride:*string
 workloadRef:*v1.WorkloadReference }
v1.PodStatus { observedGeneration:int64 phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string
 nominatedNodeName:string hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus extendedResourceClaimStatus:*v1.PodExtendedResourceClaimStatus
 allocatedResources:v1.ResourceList resources:*v1.ResourceRequirements }
v1.ResourceHealth { resourceID:v1.ResourceID health:v1.ResourceHealthStatus }
v1.VolumeMountStatus { name:string mountPath:string readOnly:bool recursiveReadOnly:*v1.RecursiveReadOnlyMode }
v1.WorkloadReference { name:string podGroup:string podGroupReplicaKey:string }
""",
    34: """
v1.PodCertificateProjection { signerName:string keyType:string maxExpirationSeconds:*int32 credentialBundlePath:string
 keyPath:string certificateChainPath:string }
v1.PodSpec { volumes:[]v1.Volume initContainers:[]v1.Container containers:[]v1.Container
 ephemeralContainers:[]v1.EphemeralContainer restartPolicy:v1.RestartPolicy terminationGracePeriodSeconds:*int64
 activeDeadlineSeconds:*int64 dnsPolicy:v1.DNSPolicy nodeSelector:map[string]string serviceAccountName:string
 serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool
 shareProcessNamespace:*bool securityContext:*v1.PodSecurityContext imagePullSecrets:[]v1.LocalObjectReference
 hostname:string subdomain:string affinity:*v1.Affinity schedulerName:string tolerations:[]v1.Toleration
 hostAliases:[]v1.HostAlias priorityClassName:string priority:*int32 dnsConfig:*v1.PodDNSConfig
 readinessGates:[]v1.PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool
 preemptionPolicy:*v1.PreemptionPolicy overhead:v1.ResourceList topologySpreadConstraints:[]v1.TopologySpreadConstraint
 setHostnameAsFQDN:*bool os:*v1.PodOS hostUsers:*bool schedulingGates:[]v1.PodSchedulingGate
 resourceClaims:[]v1.PodResourceClaim resources:*v1.ResourceRequirements hostnameOverride:*string }
v1.PodStatus { observedGeneration:int64 phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string
 nominatedNodeName:string hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus extendedResourceClaimStatus:*v1.PodExtendedResourceClaimStatus }
""",
    33: """
v1.Container { name:string image:string command:[]string args:[]string workingDir:string ports:[]v1.ContainerPort
 envFrom:[]v1.EnvFromSource env:[]v1.EnvVar resources:v1.ResourceRequirements resizePolicy:[]v1.ContainerResizePolicy
 restartPolicy:*v1.ContainerRestartPolicy volumeMounts:[]v1.VolumeMount volumeDevices:[]v1.VolumeDevice
 livenessProbe:*v1.Probe readinessProbe:*v1.Probe startupProbe:*v1.Probe lifecycle:*v1.Lifecycle
 terminationMessagePath:string terminationMessagePolicy:v1.TerminationMessagePolicy imagePullPolicy:v1.PullPolicy
 securityContext:*v1.SecurityContext stdin:bool stdinOnce:bool tty:bool }
v1.EnvVarSource { fieldRef:*v1.ObjectFieldSelector resourceFieldRef:*v1.ResourceFieldSelector
 configMapKeyRef:*v1.ConfigMapKeySelector secretKeyRef:*v1.SecretKeySelector }
v1.EphemeralContainer { EphemeralContainerCommon/name:string EphemeralContainerCommon/image:string
 EphemeralContainerCommon/command:[]string EphemeralContainerCommon/args:[]string
 EphemeralContainerCommon/workingDir:string EphemeralContainerCommon/ports:[]v1.ContainerPort
 EphemeralContainerCommon/envFrom:[]v1.EnvFromSource EphemeralContainerCommon/env:[]v1.EnvVar
 EphemeralContainerCommon/resources:v1.ResourceRequirements
 EphemeralContainerCommon/resizePolicy:[]v1.ContainerResizePolicy
 EphemeralContainerCommon/restartPolicy:*v1.ContainerRestartPolicy
 EphemeralContainerCommon/volumeMounts:[]v1.VolumeMount EphemeralContainerCommon/volumeDevices:[]v1.VolumeDevice
 EphemeralContainerCommon/livenessProbe:*v1.Probe EphemeralContainerCommon/readinessProbe:*v1.Probe
 EphemeralContainerCommon/startupProbe:*v1.Probe EphemeralContainerCommon/lifecycle:*v1.Lifecycle
 EphemeralContainerCommon/terminationMessagePath:string
 EphemeralContainerCommon/terminationMessagePolicy:v1.TerminationMessagePolicy
 EphemeralContainerCommon/imagePullPolicy:v1.PullPolicy EphemeralContainerCommon/securityContext:*v1.SecurityContext
 EphemeralContainerCommon/stdin:bool EphemeralContainerCommon/stdinOnce:bool EphemeralContainerCommon/tty:bool
 targetContainerName:string }
v1.PodSpec { volumes:[]v1.Volume initContainers:[]v1.Container containers:[]v1.Container
 ephemeralContainers:[]v1.EphemeralContainer restartPolicy:v1.RestartPolicy terminationGracePeriodSeconds:*int64
 activeDeadlineSeconds:*int64 dnsPolicy:v1.DNSPolicy nodeSelector:map[string]string serviceAccountName:string
 serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool
 shareProcessNamespace:*bool securityContext:*v1.PodSecurityContext imagePullSecrets:[]v1.LocalObjectReference
 hostname:string subdomain:string affinity:*v1.Affinity schedulerName:string tolerations:[]v1.Toleration
 hostAliases:[]v1.HostAlias priorityClassName:string priority:*int32 dnsConfig:*v1.PodDNSConfig
 readinessGates:[]v1.PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool
 preemptionPolicy:*v1.PreemptionPolicy overhead:v1.ResourceList topologySpreadConstraints:[]v1.TopologySpreadConstraint
 setHostnameAsFQDN:*bool os:*v1.PodOS hostUsers:*bool schedulingGates:[]v1.PodSchedulingGate
 resourceClaims:[]v1.PodResourceClaim resources:*v1.ResourceRequirements }
v1.PodStatus { observedGeneration:int64 phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string
 nominatedNodeName:string hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus }
v1.VolumeProjection { secret:*v1.SecretProjection downwardAPI:*v1.DownwardAPIProjection
 configMap:*v1.ConfigMapProjection serviceAccountToken:*v1.ServiceAccountTokenProjection
 clusterTrustBundle:*v1.ClusterTrustBundleProjection }
""",
    32: """
v1.ContainerStatus { name:string state:v1.ContainerState lastState:v1.ContainerState ready:bool restartCount:int32
 image:string imageID:string containerID:string started:*bool allocatedResources:v1.ResourceList
 resources:*v1.ResourceRequirements volumeMounts:[]v1.VolumeMountStatus user:*v1.ContainerUser
 allocatedResourcesStatus:[]v1.ResourceStatus }
v1.DeploymentStatus { observedGeneration:int64 replicas:int32 updatedReplicas:int32 readyReplicas:int32
 availableReplicas:int32 unavailableReplicas:int32 conditions:[]v1.DeploymentCondition collisionCount:*int32 }
v1.Lifecycle { postStart:*v1.LifecycleHandler preStop:*v1.LifecycleHandler }
v1.PodCondition { type:v1.PodConditionType status:v1.ConditionStatus lastProbeTime:v1.Time lastTransitionTime:v1.Time
 reason:string message:string }
v1.PodStatus { phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string nominatedNodeName:string
 hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus }
v1.ReplicaSetStatus { replicas:int32 fullyLabeledReplicas:int32 readyReplicas:int32 availableReplicas:int32
 observedGeneration:int64 conditions:[]v1.ReplicaSetCondition }
""",
    31: """
v1.PodSecurityContext { seLinuxOptions:*v1.SELinuxOptions windowsOptions:*v1.WindowsSecurityContextOptions
 runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool supplementalGroups:[]int64
 supplementalGroupsPolicy:*v1.SupplementalGroupsPolicy fsGroup:*int64 sysctls:[]v1.Sysctl
 fsGroupChangePolicy:*v1.PodFSGroupChangePolicy seccompProfile:*v1.SeccompProfile appArmorProfile:*v1.AppArmorProfile }
v1.PodSpec { volumes:[]v1.Volume initContainers:[]v1.Container containers:[]v1.Container
 ephemeralContainers:[]v1.EphemeralContainer restartPolicy:v1.RestartPolicy terminationGracePeriodSeconds:*int64
 activeDeadlineSeconds:*int64 dnsPolicy:v1.DNSPolicy nodeSelector:map[string]string serviceAccountName:string
 serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool
 shareProcessNamespace:*bool securityContext:*v1.PodSecurityContext imagePullSecrets:[]v1.LocalObjectReference
 hostname:string subdomain:string affinity:*v1.Affinity schedulerName:string tolerations:[]v1.Toleration
 hostAliases:[]v1.HostAlias priorityClassName:string priority:*int32 dnsConfig:*v1.PodDNSConfig
 readinessGates:[]v1.PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool
 preemptionPolicy:*v1.PreemptionPolicy overhead:v1.ResourceList topologySpreadConstraints:[]v1.TopologySpreadConstraint
 setHostnameAsFQDN:*bool os:*v1.PodOS hostUsers:*bool schedulingGates:[]v1.PodSchedulingGate
 resourceClaims:[]v1.PodResourceClaim }
""",
}
