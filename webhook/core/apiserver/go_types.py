"""The Go types behind the kinds with a pod template: what the JSON decoder of Kubernetes knows of them.

Made by `python conformance/write_types.py` of `oracle types`; not edited by hand. Read by
`webhook.core.apiserver.go_json`.

Shape: ``name = underlying`` for a named scalar, map or list; ``name { field:type ... }`` for a struct. A field of
an embedded struct is written ``Embedded/field``, because an error names it so. ``TABLE`` is of 1.37.
"""

NEWEST = 37

TABLE = """
types.UID = string
v1.AWSElasticBlockStoreVolumeSource { volumeID:string fsType:string partition:int32 readOnly:bool }
v1.Affinity { nodeAffinity:*v1.NodeAffinity podAffinity:*v1.PodAffinity podAntiAffinity:*v1.PodAntiAffinity }
v1.AppArmorProfile { type:v1.AppArmorProfileType localhostProfile:*string }
v1.AppArmorProfileType = string
v1.AzureDataDiskCachingMode = string
v1.AzureDataDiskKind = string
v1.AzureDiskVolumeSource { diskName:string diskURI:string cachingMode:*v1.AzureDataDiskCachingMode fsType:*string
 readOnly:*bool kind:*v1.AzureDataDiskKind }
v1.AzureFileVolumeSource { secretName:string shareName:string readOnly:bool }
v1.CSIVolumeSource { driver:string readOnly:*bool fsType:*string volumeAttributes:map[string]string
 nodePublishSecretRef:*v1.LocalObjectReference }
v1.Capabilities { add:[]v1.Capability drop:[]v1.Capability }
v1.Capability = string
v1.CephFSVolumeSource { monitors:[]string path:string user:string secretFile:string secretRef:*v1.LocalObjectReference
 readOnly:bool }
v1.CinderVolumeSource { volumeID:string fsType:string readOnly:bool secretRef:*v1.LocalObjectReference }
v1.ClaimResourceStatus = string
v1.ClusterTrustBundleProjection { name:*string signerName:*string labelSelector:*v1.LabelSelector optional:*bool
 path:string user:*int64 }
v1.CompletionMode = string
v1.ConcurrencyPolicy = string
v1.ConditionStatus = string
v1.ConfigMapEnvSource { LocalObjectReference/name:string optional:*bool }
v1.ConfigMapKeySelector { LocalObjectReference/name:string key:string optional:*bool }
v1.ConfigMapProjection { LocalObjectReference/name:string items:[]v1.KeyToPath optional:*bool }
v1.ConfigMapVolumeSource { LocalObjectReference/name:string items:[]v1.KeyToPath defaultMode:*int32 optional:*bool
 defaultUser:*int64 }
v1.Container { name:string image:string command:[]string args:[]string workingDir:string ports:[]v1.ContainerPort
 envFrom:[]v1.EnvFromSource env:[]v1.EnvVar resources:v1.ResourceRequirements resizePolicy:[]v1.ContainerResizePolicy
 restartPolicy:*v1.ContainerRestartPolicy restartPolicyRules:[]v1.ContainerRestartRule volumeMounts:[]v1.VolumeMount
 volumeDevices:[]v1.VolumeDevice livenessProbe:*v1.Probe readinessProbe:*v1.Probe startupProbe:*v1.Probe
 lifecycle:*v1.Lifecycle terminationMessagePath:string terminationMessagePolicy:v1.TerminationMessagePolicy
 imagePullPolicy:v1.PullPolicy securityContext:*v1.SecurityContext stdin:bool stdinOnce:bool tty:bool }
v1.ContainerExtendedResourceRequest { containerName:string resourceName:string requestName:string }
v1.ContainerPort { name:string hostPort:int32 containerPort:int32 protocol:v1.Protocol hostIP:string }
v1.ContainerResizePolicy { resourceName:v1.ResourceName restartPolicy:v1.ResourceResizeRestartPolicy }
v1.ContainerRestartPolicy = string
v1.ContainerRestartRule { action:v1.ContainerRestartRuleAction exitCodes:*v1.ContainerRestartRuleOnExitCodes }
v1.ContainerRestartRuleAction = string
v1.ContainerRestartRuleOnExitCodes { operator:v1.ContainerRestartRuleOnExitCodesOperator values:[]int32 }
v1.ContainerRestartRuleOnExitCodesOperator = string
v1.ContainerState { waiting:*v1.ContainerStateWaiting running:*v1.ContainerStateRunning
 terminated:*v1.ContainerStateTerminated }
v1.ContainerStateRunning { startedAt:v1.Time }
v1.ContainerStateTerminated { exitCode:int32 signal:int32 reason:string message:string startedAt:v1.Time
 finishedAt:v1.Time containerID:string }
v1.ContainerStateWaiting { reason:string message:string }
v1.ContainerStatus { name:string state:v1.ContainerState lastState:v1.ContainerState ready:bool restartCount:int32
 image:string imageID:string containerID:string started:*bool allocatedResources:v1.ResourceList
 resources:*v1.ResourceRequirements volumeMounts:[]v1.VolumeMountStatus user:*v1.ContainerUser
 allocatedResourcesStatus:[]v1.ResourceStatus stopSignal:*v1.Signal }
v1.ContainerUser { linux:*v1.LinuxContainerUser }
v1.CronJob { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.CronJobSpec
 status:v1.CronJobStatus }
v1.CronJobSpec { schedule:string timeZone:*string startingDeadlineSeconds:*int64 concurrencyPolicy:v1.ConcurrencyPolicy
 suspend:*bool jobTemplate:v1.JobTemplateSpec successfulJobsHistoryLimit:*int32 failedJobsHistoryLimit:*int32 }
v1.CronJobStatus { active:[]v1.ObjectReference lastScheduleTime:*v1.Time lastSuccessfulTime:*v1.Time }
v1.DNSPolicy = string
v1.DaemonSet { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.DaemonSetSpec
 status:v1.DaemonSetStatus }
v1.DaemonSetCondition { type:v1.DaemonSetConditionType status:v1.ConditionStatus lastTransitionTime:v1.Time
 reason:string message:string }
v1.DaemonSetConditionType = string
v1.DaemonSetSpec { selector:*v1.LabelSelector template:v1.PodTemplateSpec updateStrategy:v1.DaemonSetUpdateStrategy
 minReadySeconds:int32 revisionHistoryLimit:*int32 }
v1.DaemonSetStatus { currentNumberScheduled:int32 numberMisscheduled:int32 desiredNumberScheduled:int32
 numberReady:int32 observedGeneration:int64 updatedNumberScheduled:int32 numberAvailable:int32 numberUnavailable:int32
 collisionCount:*int32 conditions:[]v1.DaemonSetCondition }
v1.DaemonSetUpdateStrategy { type:v1.DaemonSetUpdateStrategyType rollingUpdate:*v1.RollingUpdateDaemonSet }
v1.DaemonSetUpdateStrategyType = string
v1.Deployment { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.DeploymentSpec
 status:v1.DeploymentStatus }
v1.DeploymentCondition { type:v1.DeploymentConditionType status:v1.ConditionStatus lastUpdateTime:v1.Time
 lastTransitionTime:v1.Time reason:string message:string }
v1.DeploymentConditionType = string
v1.DeploymentSpec { replicas:*int32 selector:*v1.LabelSelector template:v1.PodTemplateSpec
 strategy:v1.DeploymentStrategy minReadySeconds:int32 revisionHistoryLimit:*int32 paused:bool
 progressDeadlineSeconds:*int32 }
v1.DeploymentStatus { observedGeneration:int64 replicas:int32 updatedReplicas:int32 readyReplicas:int32
 availableReplicas:int32 unavailableReplicas:int32 terminatingReplicas:*int32 conditions:[]v1.DeploymentCondition
 collisionCount:*int32 }
v1.DeploymentStrategy { type:v1.DeploymentStrategyType rollingUpdate:*v1.RollingUpdateDeployment }
v1.DeploymentStrategyType = string
v1.DownwardAPIProjection { items:[]v1.DownwardAPIVolumeFile }
v1.DownwardAPIVolumeFile { path:string fieldRef:*v1.ObjectFieldSelector resourceFieldRef:*v1.ResourceFieldSelector
 mode:*int32 user:*int64 }
v1.DownwardAPIVolumeSource { items:[]v1.DownwardAPIVolumeFile defaultMode:*int32 defaultUser:*int64 }
v1.EmptyDirVolumeSource { medium:v1.StorageMedium sizeLimit:*resource.Quantity mode:*int32 }
v1.EnvFromSource { prefix:string configMapRef:*v1.ConfigMapEnvSource secretRef:*v1.SecretEnvSource }
v1.EnvVar { name:string value:string valueFrom:*v1.EnvVarSource }
v1.EnvVarSource { fieldRef:*v1.ObjectFieldSelector resourceFieldRef:*v1.ResourceFieldSelector
 configMapKeyRef:*v1.ConfigMapKeySelector secretKeyRef:*v1.SecretKeySelector fileKeyRef:*v1.FileKeySelector }
v1.EphemeralContainer { EphemeralContainerCommon/name:string EphemeralContainerCommon/image:string
 EphemeralContainerCommon/command:[]string EphemeralContainerCommon/args:[]string
 EphemeralContainerCommon/workingDir:string EphemeralContainerCommon/ports:[]v1.ContainerPort
 EphemeralContainerCommon/envFrom:[]v1.EnvFromSource EphemeralContainerCommon/env:[]v1.EnvVar
 EphemeralContainerCommon/resources:v1.ResourceRequirements
 EphemeralContainerCommon/resizePolicy:[]v1.ContainerResizePolicy
 EphemeralContainerCommon/restartPolicy:*v1.ContainerRestartPolicy
 EphemeralContainerCommon/restartPolicyRules:[]v1.ContainerRestartRule
 EphemeralContainerCommon/volumeMounts:[]v1.VolumeMount EphemeralContainerCommon/volumeDevices:[]v1.VolumeDevice
 EphemeralContainerCommon/livenessProbe:*v1.Probe EphemeralContainerCommon/readinessProbe:*v1.Probe
 EphemeralContainerCommon/startupProbe:*v1.Probe EphemeralContainerCommon/lifecycle:*v1.Lifecycle
 EphemeralContainerCommon/terminationMessagePath:string
 EphemeralContainerCommon/terminationMessagePolicy:v1.TerminationMessagePolicy
 EphemeralContainerCommon/imagePullPolicy:v1.PullPolicy EphemeralContainerCommon/securityContext:*v1.SecurityContext
 EphemeralContainerCommon/stdin:bool EphemeralContainerCommon/stdinOnce:bool EphemeralContainerCommon/tty:bool
 targetContainerName:string }
v1.EphemeralVolumeSource { volumeClaimTemplate:*v1.PersistentVolumeClaimTemplate }
v1.EvictionResponder { name:string priority:*int32 }
v1.ExecAction { command:[]string }
v1.FCVolumeSource { targetWWNs:[]string lun:*int32 fsType:string readOnly:bool wwids:[]string }
v1.FileKeySelector { volumeName:string path:string key:string optional:*bool }
v1.FlexVolumeSource { driver:string fsType:string secretRef:*v1.LocalObjectReference readOnly:bool
 options:map[string]string }
v1.FlockerVolumeSource { datasetName:string datasetUUID:string }
v1.GCEPersistentDiskVolumeSource { pdName:string fsType:string partition:int32 readOnly:bool }
v1.GRPCAction { port:int32 service:*string mode:*v1.GRPCProbeMode }
v1.GRPCProbeMode = string
v1.GitRepoVolumeSource { repository:string revision:string directory:string }
v1.GlusterfsVolumeSource { endpoints:string path:string readOnly:bool }
v1.HTTPGetAction { path:string port:intstr.IntOrString host:string scheme:v1.URIScheme httpHeaders:[]v1.HTTPHeader
 protocol:*v1.HTTPProtocol }
v1.HTTPHeader { name:string value:string }
v1.HTTPProtocol = string
v1.HostAlias { ip:string hostnames:[]string }
v1.HostIP { ip:string }
v1.HostPathType = string
v1.HostPathVolumeSource { path:string type:*v1.HostPathType }
v1.ISCSIVolumeSource { targetPortal:string iqn:string lun:int32 iscsiInterface:string fsType:string readOnly:bool
 portals:[]string chapAuthDiscovery:bool chapAuthSession:bool secretRef:*v1.LocalObjectReference initiatorName:*string }
v1.ImageVolumeSource { reference:string pullPolicy:v1.PullPolicy }
v1.ImageVolumeStatus { imageRef:string }
v1.Job { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.JobSpec status:v1.JobStatus }
v1.JobCondition { type:v1.JobConditionType status:v1.ConditionStatus lastProbeTime:v1.Time lastTransitionTime:v1.Time
 reason:string message:string }
v1.JobConditionType = string
v1.JobSchedulingConfiguration { schedulingPolicy:*v1alpha3.WorkloadPodGroupSchedulingPolicy
 schedulingConstraints:*v1alpha3.WorkloadPodGroupSchedulingConstraints
 disruptionMode:*v1alpha3.WorkloadPodGroupDisruptionMode resourceClaims:[]v1alpha3.WorkloadPodGroupResourceClaim }
v1.JobSpec { parallelism:*int32 completions:*int32 activeDeadlineSeconds:*int64 podFailurePolicy:*v1.PodFailurePolicy
 successPolicy:*v1.SuccessPolicy backoffLimit:*int32 backoffLimitPerIndex:*int32 maxFailedIndexes:*int32
 selector:*v1.LabelSelector manualSelector:*bool template:v1.PodTemplateSpec ttlSecondsAfterFinished:*int32
 completionMode:*v1.CompletionMode suspend:*bool podReplacementPolicy:*v1.PodReplacementPolicy managedBy:*string
 scheduling:*v1.JobSchedulingConfiguration }
v1.JobStatus { conditions:[]v1.JobCondition startTime:*v1.Time completionTime:*v1.Time active:int32 succeeded:int32
 failed:int32 terminating:*int32 completedIndexes:string failedIndexes:*string
 uncountedTerminatedPods:*v1.UncountedTerminatedPods ready:*int32 }
v1.JobTemplateSpec { metadata:v1.ObjectMeta spec:v1.JobSpec }
v1.KeyToPath { key:string path:string mode:*int32 user:*int64 }
v1.LabelSelector { matchLabels:map[string]string matchExpressions:[]v1.LabelSelectorRequirement }
v1.LabelSelectorOperator = string
v1.LabelSelectorRequirement { key:string operator:v1.LabelSelectorOperator values:[]string }
v1.Lifecycle { postStart:*v1.LifecycleHandler preStop:*v1.LifecycleHandler stopSignal:*v1.Signal }
v1.LifecycleHandler { exec:*v1.ExecAction httpGet:*v1.HTTPGetAction tcpSocket:*v1.TCPSocketAction sleep:*v1.SleepAction
 }
v1.LinuxContainerUser { uid:int64 gid:int64 supplementalGroups:[]int64 }
v1.LocalObjectReference { name:string }
v1.ManagedFieldsEntry { manager:string operation:v1.ManagedFieldsOperationType apiVersion:string time:*v1.Time
 fieldsType:string fieldsV1:*v1.FieldsV1 subresource:string }
v1.ManagedFieldsOperationType = string
v1.ModifyVolumeStatus { targetVolumeAttributesClassName:string status:v1.PersistentVolumeClaimModifyVolumeStatus }
v1.MountPropagationMode = string
v1.NFSVolumeSource { server:string path:string readOnly:bool }
v1.NodeAffinity { requiredDuringSchedulingIgnoredDuringExecution:*v1.NodeSelector
 preferredDuringSchedulingIgnoredDuringExecution:[]v1.PreferredSchedulingTerm }
v1.NodeAllocatableMappedResources { name:v1.ResourceName quantity:*resource.Quantity }
v1.NodeAllocatableOverheadResources { name:v1.ResourceName perPod:*resource.Quantity perContainer:*resource.Quantity }
v1.NodeAllocatableResourceClaimStatus { resourceClaimName:string containers:[]string
 mapping:[]v1.NodeAllocatableMappedResources overhead:[]v1.NodeAllocatableOverheadResources }
v1.NodeInclusionPolicy = string
v1.NodeSelector { nodeSelectorTerms:[]v1.NodeSelectorTerm }
v1.NodeSelectorOperator = string
v1.NodeSelectorRequirement { key:string operator:v1.NodeSelectorOperator values:[]string }
v1.NodeSelectorTerm { matchExpressions:[]v1.NodeSelectorRequirement matchFields:[]v1.NodeSelectorRequirement }
v1.OSName = string
v1.ObjectFieldSelector { apiVersion:string fieldPath:string }
v1.ObjectMeta { name:string generateName:string namespace:string selfLink:string uid:types.UID resourceVersion:string
 generation:int64 creationTimestamp:v1.Time deletionTimestamp:*v1.Time deletionGracePeriodSeconds:*int64
 labels:map[string]string annotations:map[string]string ownerReferences:[]v1.OwnerReference finalizers:[]string
 managedFields:[]v1.ManagedFieldsEntry }
v1.ObjectReference { kind:string namespace:string name:string uid:types.UID apiVersion:string resourceVersion:string
 fieldPath:string }
v1.OwnerReference { apiVersion:string kind:string name:string uid:types.UID controller:*bool blockOwnerDeletion:*bool }
v1.PersistentVolumeAccessMode = string
v1.PersistentVolumeClaim { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta
 spec:v1.PersistentVolumeClaimSpec status:v1.PersistentVolumeClaimStatus }
v1.PersistentVolumeClaimCondition { type:v1.PersistentVolumeClaimConditionType status:v1.ConditionStatus
 lastProbeTime:v1.Time lastTransitionTime:v1.Time reason:string message:string }
v1.PersistentVolumeClaimConditionType = string
v1.PersistentVolumeClaimModifyVolumeStatus = string
v1.PersistentVolumeClaimPhase = string
v1.PersistentVolumeClaimRetentionPolicyType = string
v1.PersistentVolumeClaimSpec { accessModes:[]v1.PersistentVolumeAccessMode selector:*v1.LabelSelector
 resources:v1.VolumeResourceRequirements volumeName:string storageClassName:*string volumeMode:*v1.PersistentVolumeMode
 dataSource:*v1.TypedLocalObjectReference dataSourceRef:*v1.TypedObjectReference volumeAttributesClassName:*string }
v1.PersistentVolumeClaimStatus { phase:v1.PersistentVolumeClaimPhase accessModes:[]v1.PersistentVolumeAccessMode
 capacity:v1.ResourceList conditions:[]v1.PersistentVolumeClaimCondition allocatedResources:v1.ResourceList
 allocatedResourceStatuses:map[v1.ResourceName]v1.ClaimResourceStatus currentVolumeAttributesClassName:*string
 modifyVolumeStatus:*v1.ModifyVolumeStatus healthStatus:*v1.VolumeHealthStatus }
v1.PersistentVolumeClaimTemplate { metadata:v1.ObjectMeta spec:v1.PersistentVolumeClaimSpec }
v1.PersistentVolumeClaimVolumeSource { claimName:string readOnly:bool }
v1.PersistentVolumeMode = string
v1.PhotonPersistentDiskVolumeSource { pdID:string fsType:string }
v1.Pod { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.PodSpec status:v1.PodStatus }
v1.PodAffinity { requiredDuringSchedulingIgnoredDuringExecution:[]v1.PodAffinityTerm
 preferredDuringSchedulingIgnoredDuringExecution:[]v1.WeightedPodAffinityTerm }
v1.PodAffinityTerm { labelSelector:*v1.LabelSelector namespaces:[]string topologyKey:string
 namespaceSelector:*v1.LabelSelector matchLabelKeys:[]string mismatchLabelKeys:[]string }
v1.PodAntiAffinity { requiredDuringSchedulingIgnoredDuringExecution:[]v1.PodAffinityTerm
 preferredDuringSchedulingIgnoredDuringExecution:[]v1.WeightedPodAffinityTerm }
v1.PodCertificateProjection { signerName:string keyType:string maxExpirationSeconds:*int32 credentialBundlePath:string
 keyPath:string certificateChainPath:string userAnnotations:map[string]string user:*int64 }
v1.PodCondition { type:v1.PodConditionType observedGeneration:int64 status:v1.ConditionStatus lastProbeTime:v1.Time
 lastTransitionTime:v1.Time reason:string message:string }
v1.PodConditionType = string
v1.PodDNSConfig { nameservers:[]string searches:[]string options:[]v1.PodDNSConfigOption }
v1.PodDNSConfigOption { name:string value:*string }
v1.PodExtendedResourceClaimStatus { requestMappings:[]v1.ContainerExtendedResourceRequest resourceClaimName:string }
v1.PodFSGroupChangePolicy = string
v1.PodFailurePolicy { rules:[]v1.PodFailurePolicyRule }
v1.PodFailurePolicyAction = string
v1.PodFailurePolicyOnExitCodesOperator = string
v1.PodFailurePolicyOnExitCodesRequirement { containerName:*string operator:v1.PodFailurePolicyOnExitCodesOperator
 values:[]int32 }
v1.PodFailurePolicyOnPodConditionsPattern { type:v1.PodConditionType status:v1.ConditionStatus }
v1.PodFailurePolicyRule { action:v1.PodFailurePolicyAction onExitCodes:*v1.PodFailurePolicyOnExitCodesRequirement
 onPodConditions:[]v1.PodFailurePolicyOnPodConditionsPattern }
v1.PodIP { ip:string }
v1.PodManagementPolicyType = string
v1.PodOS { name:v1.OSName }
v1.PodPhase = string
v1.PodQOSClass = string
v1.PodReadinessGate { conditionType:v1.PodConditionType }
v1.PodReplacementPolicy = string
v1.PodResizeStatus = string
v1.PodResourceClaim { name:string resourceClaimName:*string resourceClaimTemplateName:*string }
v1.PodResourceClaimStatus { name:string resourceClaimName:*string }
v1.PodSELinuxChangePolicy = string
v1.PodSchedulingGate { name:string }
v1.PodSchedulingGroup { podGroupName:*string }
v1.PodSecurityContext { seLinuxOptions:*v1.SELinuxOptions windowsOptions:*v1.WindowsSecurityContextOptions
 runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool supplementalGroups:[]int64
 supplementalGroupsPolicy:*v1.SupplementalGroupsPolicy fsGroup:*int64 sysctls:[]v1.Sysctl
 fsGroupChangePolicy:*v1.PodFSGroupChangePolicy seccompProfile:*v1.SeccompProfile appArmorProfile:*v1.AppArmorProfile
 seLinuxChangePolicy:*v1.PodSELinuxChangePolicy }
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
 schedulingGroup:*v1.PodSchedulingGroup evictionResponders:[]v1.EvictionResponder }
v1.PodStatus { observedGeneration:int64 phase:v1.PodPhase conditions:[]v1.PodCondition message:string reason:string
 nominatedNodeName:string hostIP:string hostIPs:[]v1.HostIP podIP:string podIPs:[]v1.PodIP startTime:*v1.Time
 initContainerStatuses:[]v1.ContainerStatus containerStatuses:[]v1.ContainerStatus qosClass:v1.PodQOSClass
 ephemeralContainerStatuses:[]v1.ContainerStatus resize:v1.PodResizeStatus
 resourceClaimStatuses:[]v1.PodResourceClaimStatus extendedResourceClaimStatus:*v1.PodExtendedResourceClaimStatus
 allocatedResources:v1.ResourceList resources:*v1.ResourceRequirements
 nodeAllocatableResourceClaimStatuses:[]v1.NodeAllocatableResourceClaimStatus volumeHealth:[]v1.PodVolumeHealth }
v1.PodTemplate { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta template:v1.PodTemplateSpec }
v1.PodTemplateSpec { metadata:v1.ObjectMeta spec:v1.PodSpec }
v1.PodTopologySpreadArgs { TypeMeta/kind:string TypeMeta/apiVersion:string
 defaultConstraints:[]v1.TopologySpreadConstraint defaultingType:v1.PodTopologySpreadConstraintsDefaulting }
v1.PodTopologySpreadConstraintsDefaulting = string
v1.PodVolumeHealth { name:string healthConditions:[]v1.VolumeHealthCondition lastTransitionTime:v1.Time }
v1.PortworxVolumeSource { volumeID:string fsType:string readOnly:bool }
v1.PreemptionPolicy = string
v1.PreferredSchedulingTerm { weight:int32 preference:v1.NodeSelectorTerm }
v1.Probe { ProbeHandler/exec:*v1.ExecAction ProbeHandler/httpGet:*v1.HTTPGetAction
 ProbeHandler/tcpSocket:*v1.TCPSocketAction ProbeHandler/grpc:*v1.GRPCAction initialDelaySeconds:int32
 timeoutSeconds:int32 periodSeconds:int32 successThreshold:int32 failureThreshold:int32
 terminationGracePeriodSeconds:*int64 }
v1.ProcMountType = string
v1.ProjectedVolumeSource { sources:[]v1.VolumeProjection defaultMode:*int32 defaultUser:*int64 }
v1.Protocol = string
v1.PullPolicy = string
v1.QuobyteVolumeSource { registry:string volume:string readOnly:bool user:string group:string tenant:string }
v1.RBDVolumeSource { monitors:[]string image:string fsType:string pool:string user:string keyring:string
 secretRef:*v1.LocalObjectReference readOnly:bool }
v1.RecursiveReadOnlyMode = string
v1.ReplicaSet { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.ReplicaSetSpec
 status:v1.ReplicaSetStatus }
v1.ReplicaSetCondition { type:v1.ReplicaSetConditionType status:v1.ConditionStatus lastTransitionTime:v1.Time
 reason:string message:string }
v1.ReplicaSetConditionType = string
v1.ReplicaSetSpec { replicas:*int32 minReadySeconds:int32 selector:*v1.LabelSelector template:v1.PodTemplateSpec }
v1.ReplicaSetStatus { replicas:int32 fullyLabeledReplicas:int32 readyReplicas:int32 availableReplicas:int32
 terminatingReplicas:*int32 observedGeneration:int64 conditions:[]v1.ReplicaSetCondition }
v1.ReplicationController { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta
 spec:v1.ReplicationControllerSpec status:v1.ReplicationControllerStatus }
v1.ReplicationControllerCondition { type:v1.ReplicationControllerConditionType status:v1.ConditionStatus
 lastTransitionTime:v1.Time reason:string message:string }
v1.ReplicationControllerConditionType = string
v1.ReplicationControllerSpec { replicas:*int32 minReadySeconds:int32 selector:map[string]string
 template:*v1.PodTemplateSpec }
v1.ReplicationControllerStatus { replicas:int32 fullyLabeledReplicas:int32 readyReplicas:int32 availableReplicas:int32
 observedGeneration:int64 conditions:[]v1.ReplicationControllerCondition }
v1.ResourceClaim { name:string request:string }
v1.ResourceFieldSelector { containerName:string resource:string divisor:resource.Quantity }
v1.ResourceHealth { resourceID:v1.ResourceID health:v1.ResourceHealthStatus message:*string }
v1.ResourceHealthStatus = string
v1.ResourceID = string
v1.ResourceList = map[v1.ResourceName]resource.Quantity
v1.ResourceName = string
v1.ResourceRequirements { limits:v1.ResourceList requests:v1.ResourceList claims:[]v1.ResourceClaim }
v1.ResourceResizeRestartPolicy = string
v1.ResourceStatus { name:v1.ResourceName resources:[]v1.ResourceHealth }
v1.RestartPolicy = string
v1.RollingUpdateDaemonSet { maxUnavailable:*intstr.IntOrString maxSurge:*intstr.IntOrString }
v1.RollingUpdateDeployment { maxUnavailable:*intstr.IntOrString maxSurge:*intstr.IntOrString }
v1.RollingUpdateStatefulSetStrategy { partition:*int32 maxUnavailable:*intstr.IntOrString }
v1.SELinuxOptions { user:string role:string type:string level:string }
v1.ScaleIOVolumeSource { gateway:string system:string secretRef:*v1.LocalObjectReference sslEnabled:bool
 protectionDomain:string storagePool:string storageMode:string volumeName:string fsType:string readOnly:bool }
v1.SeccompProfile { type:v1.SeccompProfileType localhostProfile:*string }
v1.SeccompProfileType = string
v1.SecretEnvSource { LocalObjectReference/name:string optional:*bool }
v1.SecretKeySelector { LocalObjectReference/name:string key:string optional:*bool }
v1.SecretProjection { LocalObjectReference/name:string items:[]v1.KeyToPath optional:*bool }
v1.SecretVolumeSource { secretName:string items:[]v1.KeyToPath defaultMode:*int32 optional:*bool defaultUser:*int64 }
v1.SecurityContext { capabilities:*v1.Capabilities privileged:*bool seLinuxOptions:*v1.SELinuxOptions
 windowsOptions:*v1.WindowsSecurityContextOptions runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool
 readOnlyRootFilesystem:*bool allowPrivilegeEscalation:*bool procMount:*v1.ProcMountType
 seccompProfile:*v1.SeccompProfile appArmorProfile:*v1.AppArmorProfile }
v1.ServiceAccountTokenProjection { audience:string expirationSeconds:*int64 path:string user:*int64 }
v1.Signal = string
v1.SleepAction { seconds:int64 }
v1.StatefulSet { TypeMeta/kind:string TypeMeta/apiVersion:string metadata:v1.ObjectMeta spec:v1.StatefulSetSpec
 status:v1.StatefulSetStatus }
v1.StatefulSetCondition { type:v1.StatefulSetConditionType status:v1.ConditionStatus lastTransitionTime:v1.Time
 reason:string message:string }
v1.StatefulSetConditionType = string
v1.StatefulSetOrdinals { start:int32 }
v1.StatefulSetPersistentVolumeClaimRetentionPolicy { whenDeleted:v1.PersistentVolumeClaimRetentionPolicyType
 whenScaled:v1.PersistentVolumeClaimRetentionPolicyType }
v1.StatefulSetSpec { replicas:*int32 selector:*v1.LabelSelector template:v1.PodTemplateSpec
 volumeClaimTemplates:[]v1.PersistentVolumeClaim serviceName:string podManagementPolicy:v1.PodManagementPolicyType
 updateStrategy:v1.StatefulSetUpdateStrategy revisionHistoryLimit:*int32 minReadySeconds:int32
 persistentVolumeClaimRetentionPolicy:*v1.StatefulSetPersistentVolumeClaimRetentionPolicy
 ordinals:*v1.StatefulSetOrdinals }
v1.StatefulSetStatus { observedGeneration:int64 replicas:int32 readyReplicas:int32 currentReplicas:int32
 updatedReplicas:int32 currentRevision:string updateRevision:string collisionCount:*int32
 conditions:[]v1.StatefulSetCondition availableReplicas:int32 }
v1.StatefulSetUpdateStrategy { type:v1.StatefulSetUpdateStrategyType rollingUpdate:*v1.RollingUpdateStatefulSetStrategy
 }
v1.StatefulSetUpdateStrategyType = string
v1.StorageMedium = string
v1.StorageOSVolumeSource { volumeName:string volumeNamespace:string fsType:string readOnly:bool
 secretRef:*v1.LocalObjectReference }
v1.SuccessPolicy { rules:[]v1.SuccessPolicyRule }
v1.SuccessPolicyRule { succeededIndexes:*string succeededCount:*int32 }
v1.SupplementalGroupsPolicy = string
v1.Sysctl { name:string value:string }
v1.TCPSocketAction { port:intstr.IntOrString host:string }
v1.TaintEffect = string
v1.TerminationMessagePolicy = string
v1.Toleration { key:string operator:v1.TolerationOperator value:string effect:v1.TaintEffect tolerationSeconds:*int64 }
v1.TolerationOperator = string
v1.TopologySpreadConstraint { maxSkew:int32 topologyKey:string whenUnsatisfiable:v1.UnsatisfiableConstraintAction
 labelSelector:*v1.LabelSelector minDomains:*int32 nodeAffinityPolicy:*v1.NodeInclusionPolicy
 nodeTaintsPolicy:*v1.NodeInclusionPolicy matchLabelKeys:[]string }
v1.TypedLocalObjectReference { apiGroup:*string kind:string name:string }
v1.TypedObjectReference { apiGroup:*string kind:string name:string namespace:*string }
v1.URIScheme = string
v1.UncountedTerminatedPods { succeeded:[]types.UID failed:[]types.UID }
v1.UnsatisfiableConstraintAction = string
v1.Volume { name:string VolumeSource/hostPath:*v1.HostPathVolumeSource VolumeSource/emptyDir:*v1.EmptyDirVolumeSource
 VolumeSource/gcePersistentDisk:*v1.GCEPersistentDiskVolumeSource
 VolumeSource/awsElasticBlockStore:*v1.AWSElasticBlockStoreVolumeSource VolumeSource/gitRepo:*v1.GitRepoVolumeSource
 VolumeSource/secret:*v1.SecretVolumeSource VolumeSource/nfs:*v1.NFSVolumeSource
 VolumeSource/iscsi:*v1.ISCSIVolumeSource VolumeSource/glusterfs:*v1.GlusterfsVolumeSource
 VolumeSource/persistentVolumeClaim:*v1.PersistentVolumeClaimVolumeSource VolumeSource/rbd:*v1.RBDVolumeSource
 VolumeSource/flexVolume:*v1.FlexVolumeSource VolumeSource/cinder:*v1.CinderVolumeSource
 VolumeSource/cephfs:*v1.CephFSVolumeSource VolumeSource/flocker:*v1.FlockerVolumeSource
 VolumeSource/downwardAPI:*v1.DownwardAPIVolumeSource VolumeSource/fc:*v1.FCVolumeSource
 VolumeSource/azureFile:*v1.AzureFileVolumeSource VolumeSource/configMap:*v1.ConfigMapVolumeSource
 VolumeSource/vsphereVolume:*v1.VsphereVirtualDiskVolumeSource VolumeSource/quobyte:*v1.QuobyteVolumeSource
 VolumeSource/azureDisk:*v1.AzureDiskVolumeSource VolumeSource/photonPersistentDisk:*v1.PhotonPersistentDiskVolumeSource
 VolumeSource/projected:*v1.ProjectedVolumeSource VolumeSource/portworxVolume:*v1.PortworxVolumeSource
 VolumeSource/scaleIO:*v1.ScaleIOVolumeSource VolumeSource/storageos:*v1.StorageOSVolumeSource
 VolumeSource/csi:*v1.CSIVolumeSource VolumeSource/ephemeral:*v1.EphemeralVolumeSource
 VolumeSource/image:*v1.ImageVolumeSource }
v1.VolumeDevice { name:string devicePath:string }
v1.VolumeHealthCondition { status:v1.VolumeHealthStatusType reason:string message:string }
v1.VolumeHealthStatus { healthConditions:[]v1.VolumeHealthCondition lastTransitionTime:v1.Time }
v1.VolumeHealthStatusType = string
v1.VolumeMount { name:string readOnly:bool recursiveReadOnly:*v1.RecursiveReadOnlyMode mountPath:string subPath:string
 mountPropagation:*v1.MountPropagationMode subPathExpr:string bindMountOptions:[]string }
v1.VolumeMountStatus { name:string mountPath:string readOnly:bool recursiveReadOnly:*v1.RecursiveReadOnlyMode
 volumeStatus:*v1.VolumeStatus }
v1.VolumeProjection { secret:*v1.SecretProjection downwardAPI:*v1.DownwardAPIProjection
 configMap:*v1.ConfigMapProjection serviceAccountToken:*v1.ServiceAccountTokenProjection
 clusterTrustBundle:*v1.ClusterTrustBundleProjection podCertificate:*v1.PodCertificateProjection }
v1.VolumeResourceRequirements { limits:v1.ResourceList requests:v1.ResourceList }
v1.VolumeStatus { image:*v1.ImageVolumeStatus }
v1.VsphereVirtualDiskVolumeSource { volumePath:string fsType:string storagePolicyName:string storagePolicyID:string }
v1.WeightedPodAffinityTerm { weight:int32 podAffinityTerm:v1.PodAffinityTerm }
v1.WindowsSecurityContextOptions { gmsaCredentialSpecName:*string gmsaCredentialSpec:*string runAsUserName:*string
 hostProcess:*bool }
v1alpha3.TopologyConstraint { key:string }
v1alpha3.WorkloadPodGroupAllDisruptionMode {  }
v1alpha3.WorkloadPodGroupBasicSchedulingPolicy {  }
v1alpha3.WorkloadPodGroupDisruptionMode { single:*v1alpha3.WorkloadPodGroupSingleDisruptionMode
 all:*v1alpha3.WorkloadPodGroupAllDisruptionMode }
v1alpha3.WorkloadPodGroupGangSchedulingPolicy { minCount:*int32 }
v1alpha3.WorkloadPodGroupResourceClaim { name:string resourceClaimName:*string resourceClaimTemplateName:*string }
v1alpha3.WorkloadPodGroupSchedulingConstraints { topology:[]v1alpha3.TopologyConstraint }
v1alpha3.WorkloadPodGroupSchedulingPolicy { basic:*v1alpha3.WorkloadPodGroupBasicSchedulingPolicy
 gang:*v1alpha3.WorkloadPodGroupGangSchedulingPolicy }
v1alpha3.WorkloadPodGroupSingleDisruptionMode {  }
"""
