{{- define "giga.fullname" -}}
{{- if contains "gigafactory" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-gigafactory" (.Release.Name | trunc 28 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "giga.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: gigafactory
{{- end }}

{{/* What selects pods: never anything that changes with a version. */}}
{{- define "giga.selects" -}}
app.kubernetes.io/name: gigafactory
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "giga.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "giga.url" -}}
{{ if .Values.tls.secret }}https{{ else }}http{{ end }}://{{ include "giga.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end }}

{{- define "giga.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What no schema can say. */}}
{{- define "giga.check" -}}
{{- $c := .Values.coordinator }}
{{- if not $c.store.secret }}{{ fail "coordinator.store.secret names the Secret with the URL of PostgreSQL: set it" }}{{ end }}
{{- if and (gt (int $c.replicas) 1) (not $c.artifacts) }}{{ fail "several coordinators share one place for logs and artifacts: set coordinator.artifacts to a bucket, or coordinator.replicas to 1" }}{{ end }}
{{- if and (not .Values.tls.secret) (not .Values.tls.allowPlainHttp) }}{{ fail "tokens would cross the cluster's network in the clear: set tls.secret, or tls.allowPlainHttp=true where a mesh encrypts it" }}{{ end }}
{{- if and $c.natsKey.secret (not $c.broker.secret) }}{{ fail "coordinator.natsKey is for a NATS in coordinator.broker: set coordinator.broker.secret" }}{{ end }}
{{- if and $c.oidc.issuer (not $c.oidc.clientId) }}{{ fail "coordinator.oidc.issuer needs coordinator.oidc.clientId" }}{{ end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) }}{{ fail "metrics.serviceMonitor.enabled needs metrics.enabled=true" }}{{ end }}
{{- range $name, $pool := .Values.pools }}
{{- if hasKey $.Values.factories $name }}{{ fail (printf "%s is a pool and a factory: give one of them another name" $name) }}{{ end }}
{{- if and (not $.Values.tls.ca.secret) $.Values.tls.secret }}{{ fail "KEDA trusts the coordinators by tls.ca.secret: set it (a Secret with the CA's certificate)" }}{{ end }}
{{- end }}
{{- end }}
