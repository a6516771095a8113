{{/*
What names.json (written by tests/chart/reference.py) does not know of a value: a line each. Helm's own schema would say
that a name is not allowed, but not which one was meant.

names.json nests as values do: `names` of a mapping, `any` of one whose names are yours, `each` of a list's items, `words` that a text may be.
*/}}
{{- define "evenspread.unknown" -}}
{{- $value := .value -}}{{- $known := .known -}}{{- $at := .at -}}{{- $all := .all -}}
{{- if and (kindIs "map" $value) (hasKey $known "names") -}}
{{- range $name, $inner := $value -}}
{{- $path := ternary $name (printf "%s.%s" $at $name) (empty $at) -}}
{{- if hasKey $known.names $name -}}
{{- include "evenspread.unknown" (dict "at" $path "value" $inner "known" (get $known.names $name) "all" $all) -}}
{{- else }}
{{ $path }}: unknown {{ eq $at "config.rules" | ternary "rule" "value" }}
{{- include "evenspread.meant" (dict "path" $path "word" $name "here" (keys $known.names) "known" $all) -}}
{{- end -}}
{{- end -}}
{{- else if and (kindIs "map" $value) (hasKey $known "any") -}}
{{- range $name, $inner := $value -}}
{{- $path := printf "%s.%s" $at $name -}}
{{- include "evenspread.unknown" (dict "at" $path "value" $inner "known" $known.any "all" $all) -}}
{{- end -}}
{{- else if and (kindIs "slice" $value) (hasKey $known "each") -}}
{{- range $index, $inner := $value -}}
{{- $path := printf "%s[%d]" $at $index -}}
{{- include "evenspread.unknown" (dict "at" $path "value" $inner "known" $known.each "all" $all) -}}
{{- end -}}
{{- else if and (kindIs "string" $value) (hasKey $known "words") -}}
{{- if not (has $value $known.words) }}
{{ $at }}: unknown rule {{ quote $value }}
{{- include "evenspread.meant" (dict "word" $value "here" $known.words "known" dict) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Which one of `here` was meant by `word`, or where in `known` it belongs. */}}
{{- define "evenspread.meant" -}}
{{- $places := include "evenspread.places" (dict "word" .word "known" .known "at" "") | splitList " " | compact -}}
{{- if hasKey (default dict .known.names) .word -}}
{{- $places = list .word -}}
{{- else if gt (len $places) 1 -}}
{{- $places = list -}}
{{- end -}}
{{- $near := list -}}
{{- $variants := include "evenspread.variants" .word | splitList " " -}}
{{- range $name := sortAlpha .here -}}
{{- range include "evenspread.variants" $name | splitList " " -}}
{{- if has . $variants }}{{ $near = append $near $name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $peer := get (include "evenspread.peers" . | fromYaml) (default "" .path) -}}
{{- with concat (without (list $peer) "") $near $places -}}
; did you mean {{ first . | quote }}?
{{- else -}}
; the chart's README lists them all
{{- end -}}
{{- end }}

{{/* What the charts of kyverno, gatekeeper, cert-manager and others call a value, and what it is called here. */}}
{{- define "evenspread.peers" -}}
replicaCount: replicas
image.registry: image.repository
webhook.replicas: replicas
webhook.replicaCount: replicas
admissionController: replicas
controller.replicaCount: controller.replicas
controller.enabled: controller.scan.enabled
backgroundController: controller
crds.enabled: crds.install
installCRDs: crds.install
installCrds: crds.install
crds.keepOnUninstall: crds.keep
prometheus: serviceMonitor
metrics: serviceMonitor
grafana: grafanaDashboard
failurePolicy: webhook.failurePolicy
validatingWebhookFailurePolicy: webhook.failurePolicy
validatingWebhookTimeoutSeconds: webhook.timeoutSeconds
exemptNamespaces: webhook.excludedNamespaces
excludedNamespaces: webhook.excludedNamespaces
logging: logLevel
volumes: extraVolumes
volumeMounts: extraVolumeMounts
pdb: podDisruptionBudget
hpa: autoscaling
{{- end }}

{{/* A word and what is left of it without any one letter: two words that share one are a slip of the finger apart. */}}
{{- define "evenspread.variants" -}}
{{- $word := lower . | replace "-" "" | replace "_" "" | trunc 64 -}}
{{- $word -}}
{{- range $index := until (len $word) }} {{ substr 0 $index $word }}{{ substr (int (add1 $index)) (len $word) $word }}{{ end -}}
{{- end }}

{{/* Every path of mappings at which a name is known. */}}
{{- define "evenspread.places" -}}
{{- $word := .word -}}{{- $at := .at -}}
{{- range $name, $inner := .known.names -}}
{{- if eq $name $word }} {{ $at }}{{ $name }}{{ end -}}
{{- include "evenspread.places" (dict "word" $word "known" $inner "at" (printf "%s%s." $at $name)) -}}
{{- end -}}
{{- end }}
