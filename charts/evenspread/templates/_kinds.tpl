{{/* Kinds with pod templates that somebody writes, by group; tests/chart/reference.py writes them. */}}
{{- define "evenspread.reviewed" -}}
{{- $resources := dict
    "" "replicationcontrollers"
    "apps" "deployments statefulsets daemonsets replicasets"
    "batch" "jobs cronjobs"
    "argoproj.io" "rollouts"
    "apps.kruise.io" "clonesets statefulsets daemonsets"
    "leaderworkerset.x-k8s.io" "leaderworkersets"
    "jobset.x-k8s.io" "jobsets"
    "ray.io" "rayclusters rayjobs rayservices"
    "kubeflow.org" "pytorchjobs tfjobs mpijobs xgboostjobs paddlejobs mxjobs jaxjobs"
    "batch.volcano.sh" "jobs"
    "serving.knative.dev" "services"
  -}}
{{ toJson $resources }}
{{- end }}

{{/* What both roles watch: as rules of a role. */}}
{{- define "evenspread.watched" -}}
- apiGroups: [""]
  resources: [limitranges, namespaces, nodes, persistentvolumeclaims, persistentvolumes, pods, replicationcontrollers, services]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [deployments, replicasets, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch]
- apiGroups: [storage.k8s.io]
  resources: [csidrivers, csinodes, csistoragecapacities, storageclasses, volumeattachments]
  verbs: [get, list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list, watch]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [get, list, watch]
{{- if .Values.crds.install }}
- apiGroups: [evenspread.io]
  resources: [spreadgroups]
  verbs: [get, list, watch]
{{- end }}
{{- range .Values.webhook.extraResources }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources: {{ toJson .resources }}
  verbs: [get, list, watch]
{{- end }}
{{- end }}
