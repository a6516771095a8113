{{/* The release's name, or the release's and the chart's; short enough for every suffix. */}}
{{- define "evenspread.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* What the objects of the webhook role are called. */}}
{{- define "evenspread.webhook" -}}
{{ include "evenspread.fullname" . }}-webhook
{{- end }}

{{- define "evenspread.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "evenspread.webhook" .) .Values.serviceAccount.name }}
{{- else -}}
{{- if not .Values.serviceAccount.name }}
{{- fail "\n\nserviceAccount.create is false: name an account of yours. The namespace's `default` is everybody's.\n" }}
{{- end -}}
{{ .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* These never change: a Deployment's selector cannot. */}}
{{- define "evenspread.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: webhook
{{- end }}

{{- define "evenspread.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "evenspread.selectorLabels" . }}
{{- end }}

{{/* What the objects of the controller role are called. */}}
{{- define "evenspread.controller" -}}
{{ include "evenspread.fullname" . }}-controller
{{- end }}

{{/* Not empty where the webhook is never called without a controller: nobody else makes the CA, or adds rules that may refuse. */}}
{{- define "evenspread.needsController" -}}
{{- $closed := and .Values.webhook.enabled (eq .Values.webhook.failurePolicy "Fail") -}}
{{- if or $closed (eq .Values.certificates.mode "self") }}yes{{ end -}}
{{- end }}

{{/* Not empty where the controller writes admission policies. Without webhook configuration, they have no selectors. */}}
{{- define "evenspread.hasPolicies" -}}
{{- if and .Values.webhook.enabled (ne (default "webhook" (default dict .Values.admission).static) "webhook") }}yes{{ end -}}
{{- end }}

{{/* Not empty where there is a controller: it completes the webhook configurations, and scans the cluster. */}}
{{- define "evenspread.hasController" -}}
{{- if or .Values.controller.scan.enabled (include "evenspread.hasPolicies" .) }}yes{{ else }}{{ include "evenspread.needsController" . }}{{ end -}}
{{- end }}

{{/* Not empty where there is a MutatingWebhookConfiguration. */}}
{{- define "evenspread.mutates" -}}
{{- $injects := eq (toString (default dict .Values.config.defaults).mode) "inject" -}}
{{- if and .Values.webhook.enabled (or $injects .Values.crds.install) }}yes{{ end -}}
{{- end }}

{{- define "evenspread.controllerAccount" -}}
{{- $given := .Values.controller.serviceAccountName -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "evenspread.controller" .) $given }}
{{- else -}}
{{ default (include "evenspread.serviceAccount" .) $given }}
{{- end -}}
{{- end }}

{{- define "evenspread.controllerSelectorLabels" -}}
{{ include "evenspread.selectorLabels" . | replace "component: webhook" "component: controller" }}
{{- end }}

{{- define "evenspread.controllerLabels" -}}
{{ include "evenspread.labels" . | replace "component: webhook" "component: controller" }}
{{- end }}

{{/* What both roles' pods have alike. */}}
{{- define "evenspread.podSettings" -}}
enableServiceLinks: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "evenspread.leastReplicas" -}}
{{ ternary .Values.autoscaling.minReplicas .Values.replicas .Values.autoscaling.enabled }}
{{- end }}

{{/* Of a duration as Go writes it, in hours, minutes and seconds. */}}
{{- define "evenspread.seconds" -}}
{{- $hours := regexFind "[0-9]+h" . | trimSuffix "h" | int -}}
{{- $minutes := regexFind "[0-9]+m" . | trimSuffix "m" | int -}}
{{- $seconds := regexFind "[0-9]+s" . | trimSuffix "s" | int -}}
{{ add (mul $hours 3600) (mul $minutes 60) $seconds }}
{{- end }}

{{- define "evenspread.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end }}

{{/* Where the CA is, and but for mode self the certificate. */}}
{{- define "evenspread.secret" -}}
{{- if eq .Values.certificates.mode "self" -}}
{{ include "evenspread.fullname" . }}-ca
{{- else if eq .Values.certificates.mode "existingSecret" -}}
{{ default (printf "%s-tls" (include "evenspread.webhook" .)) .Values.certificates.existingSecret }}
{{- else -}}
{{ include "evenspread.webhook" . }}-tls
{{- end -}}
{{- end }}

{{/*
The CA in base64, given or of the Secret. A release that nobody could trust is refused here: the API server takes anything
for a CA, and would go on without us in silence.
*/}}
{{- define "evenspread.caBundle" -}}
{{- $ca := .Values.certificates.caBundle -}}
{{- if not $ca -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (include "evenspread.secret" .) -}}
{{- $data := default dict $secret.data -}}
{{- range $key := list "tls.crt" "tls.key" "ca.crt" }}
{{- if not (get $data $key) }}
{{- include "evenspread.noCertificate" (merge (dict "key" $key "found" (not (empty $secret))) $) | fail }}
{{- end }}
{{- end -}}
{{- $ca = get $data "ca.crt" | b64dec -}}
{{- end -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $ca) }}
{{- fail "\n\nThe CA (certificates.caBundle, or ca.crt of the Secret) is no certificate in PEM.\n" }}
{{- end -}}
{{- if contains "PRIVATE KEY-----" $ca }}
{{- fail "\n\nThe CA (certificates.caBundle, or ca.crt of the Secret) holds a private key; give its certificate alone.\n" }}
{{- end -}}
{{ b64enc $ca }}
{{- end }}

{{/* The CA of the only callers that are answered. What it signs is a key to every answer, so its own key has no place here. */}}
{{- define "evenspread.clientCA" -}}
{{- $ca := .Values.certificates.clientCA -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $ca) }}
{{- fail "\n\nThe CA of callers (certificates.clientCA) is no certificate in PEM.\n" }}
{{- end -}}
{{- if contains "PRIVATE KEY-----" $ca }}
{{- fail "\n\nThe CA of callers (certificates.clientCA) holds a private key; give its certificate alone.\n" }}
{{- end -}}
{{- if .Values.tests.enabled }}
{{- fail "\n\ncertificates.clientCA: the pod of `helm test` has no certificate of its own; set tests.enabled to false.\n" }}
{{- end -}}
{{ $ca }}
{{- end }}

{{- define "evenspread.noCertificate" }}

evenspread needs a certificate that the API server trusts.
In namespace {{ .Release.Namespace }}
{{- if .found }} the Secret {{ include "evenspread.secret" . }} has no {{ .key }}.
{{- else }} Helm sees no Secret {{ include "evenspread.secret" . }}.
{{- end }} Choose one:

  - the release makes it:    --set certificates.mode=self
  - cert-manager makes it:   --set certificates.mode=certManager
  - you make the Secret, with tls.crt, tls.key and ca.crt, for the name
    {{ include "evenspread.webhook" . }}.{{ .Release.Namespace }}.svc (the chart's README has the commands)
  - you made it, but Helm cannot see the cluster (helm template, Argo CD):
                             --set-file certificates.caBundle=ca.crt
{{ end }}

{{/*
`config` with what each team says of its own namespaces, after what `config` says: the first entry that matches wins.
*/}}
{{- define "evenspread.teams" -}}
{{- $policy := deepCopy .Values.config -}}
{{- $owners := dict -}}
{{- range $team, $own := .Values.teams -}}
{{- range $namespace := $own.namespaces }}
{{- with get $owners $namespace }}
{{- printf "\n\nteams: %s and %s both name the namespace %s.\n" . $team $namespace | fail }}
{{- end }}
{{- $_ := set $owners $namespace $team }}
{{- end -}}
{{- if hasKey $own "ceiling" }}
{{- $entry := dict "match" (dict "names" $own.namespaces) "ceiling" $own.ceiling -}}
{{- $_ := set $policy "namespaces" (append (default list $policy.namespaces) $entry) }}
{{- end -}}
{{- range $exemption := $own.exemptions }}
{{- range $own.namespaces }}
{{- $match := merge (dict "namespace" .) (default dict $exemption.match) -}}
{{- $entry := merge (dict "match" $match) $exemption -}}
{{- $_ := set $policy "exemptions" (append (default list $policy.exemptions) $entry) }}
{{- end }}
{{- end -}}
{{- range $own.overrides }}
{{- $names := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $own.namespaces -}}
{{- $entry := merge (dict "namespaceSelector" (dict "matchExpressions" (list $names))) . -}}
{{- $defaults := default dict $policy.defaults -}}
{{- $_ := set $defaults "overrides" (append (default list $defaults.overrides) $entry) -}}
{{- $_ := set $policy "defaults" $defaults }}
{{- end -}}
{{- end -}}
{{ toJson $policy }}
{{- end }}

{{/*
The SpreadPolicy as the program reads it. YAML reads a bare `off` as false before Helm sees it, and the kill switch must
work however it is written: where a field takes `off`, false is that.
*/}}
{{- define "evenspread.policy" -}}
{{- $policy := include "evenspread.teams" . | fromJson -}}
{{- $takesOff := concat (list "ceiling" "scaleIn" "mode" "matchLabelKeys" "fallback") (keys (default dict $policy.rules)) -}}
{{- $places := list $policy (default dict $policy.rules) (default dict $policy.defaults) -}}
{{- range $entry := default list $policy.namespaces }}{{ $places = append $places $entry }}{{ end -}}
{{- range $place := $places }}
{{- range $field, $value := $place }}
{{- if and (kindIs "bool" $value) (not $value) (has $field $takesOff) }}
{{- $_ := set $place $field "off" }}
{{- end }}
{{- end }}
{{- end -}}
{{- mergeOverwrite $policy (dict "apiVersion" "config.evenspread.io/v1alpha1" "kind" "SpreadPolicy") | toYaml }}
{{- end }}

{{/* Which kinds the policy names; what is watched is decided at the start. */}}
{{- define "evenspread.kinds" -}}
{{- $kinds := pick .Values.config "workloads" -}}
{{- $_ := set $kinds "owners" (default dict .Values.config.defaults).owners -}}
{{ toJson $kinds }}
{{- end }}

{{/* Whose objects are never sent: the system's, and the webhook's own, which would wait for itself. */}}
{{- define "evenspread.namespaceSelector" -}}
{{- $system := list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace -}}
{{- $excluded := concat $system .Values.webhook.excludedNamespaces | uniq -}}
{{- with .Values.webhook.namespaceSelector.matchLabels }}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{ end -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- toYaml $excluded | nindent 6 }}
  {{- with .Values.webhook.namespaceSelector.matchExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Users whose objects need no review if they have a controller: the controller manager and those of the policy, as CEL. */}}
{{- define "evenspread.controllers" -}}
{{- $users := concat (list "system:kube-controller-manager") (default list .Values.config.controllers) -}}
{{- range $index, $user := $users }}{{ if $index }}, {{ end }}'{{ $user }}'{{ end -}}
{{- end }}

{{/* What both webhook configurations are called, who fills in their CA, and `annotations` of one of them; of `root`. */}}
{{- define "evenspread.webhookMetadata" -}}
{{- $own := .annotations -}}
{{- with .root -}}
name: {{ include "evenspread.fullname" . }}
labels:
  {{- include "evenspread.labels" . | nindent 2 }}
{{- $annotations := merge $own (deepCopy .Values.webhook.annotations) -}}
{{- if eq .Values.certificates.mode "certManager" -}}
{{- $certificate := printf "%s/%s" .Release.Namespace (include "evenspread.webhook" .) -}}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" $certificate -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The CA of mode self, for both roles' arguments. */}}
{{- define "evenspread.caArguments" -}}
- --ca-secret={{ .Release.Namespace }}/{{ include "evenspread.secret" . }}
- --ca-duration={{ .Values.certificates.self.caDuration }}
- --leaf-duration={{ .Values.certificates.self.leafDuration }}
{{- end }}

{{/* How a webhook is reached, given the root as `root` and the route as `route`. */}}
{{- define "evenspread.clientConfig" -}}
{{- with .root -}}
{{- if eq .Values.certificates.mode "existingSecret" -}}
caBundle: {{ include "evenspread.caBundle" . }}
{{ end -}}
service:
  namespace: {{ .Release.Namespace }}
  name: {{ include "evenspread.webhook" . }}
  port: 443
{{- end }}
  path: /{{ .route }}
{{- end }}
