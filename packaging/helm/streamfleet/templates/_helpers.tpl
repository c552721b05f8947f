{{- define "streamfleet.name" -}}
{{- if contains "streamfleet" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-streamfleet" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "streamfleet.selector" -}}
app.kubernetes.io/name: streamfleet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streamfleet.labels" -}}
{{ include "streamfleet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "streamfleet.account" -}}
{{- if and .Values.inCluster.enabled (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount: `inCluster.enabled` needs `create: true` or a `name`; else every pod of the namespace had its rights" }}
{{- end }}
{{- .Values.serviceAccount.name | default (ternary (include "streamfleet.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* The peers that may reach the port. What the release publishes, and what it has scraped, is reached without more. */}}
{{- define "streamfleet.reached" -}}
{{- with .Values.networkPolicy.from }}{{ toYaml . }}{{ else -}}
- podSelector: {}
{{- if or .Values.ingress.enabled .Values.httpRoute.enabled }}
- namespaceSelector: {}
{{- else if .Values.serviceMonitor.enabled }}
- namespaceSelector: {}
  podSelector:
    matchLabels:
      app.kubernetes.io/name: prometheus
{{- end }}
{{- if ne .Values.service.type "ClusterIP" }}
- ipBlock:
    cidr: 0.0.0.0/0
- ipBlock:
    cidr: "::/0"
{{- end }}
{{- end }}
{{- end }}

{{- define "streamfleet.specs" -}}
{{- with .Values.source.configMap }}{{ .name | default (printf "%s-specs" (include "streamfleet.name" $)) }}{{ end }}
{{- end }}

{{- define "streamfleet.fromGit" -}}
{{- $configMap := or .Values.source.configMap.name .Values.source.configMap.files }}
{{- if and .Values.source.git.url $configMap }}
{{- fail "source: set `git.url` or `configMap`, not both" }}
{{- else if not (or .Values.source.git.url $configMap) }}
{{- fail "source: set `git.url`, or `configMap.name`, or `configMap.files`" }}
{{- end }}
{{- if .Values.source.git.url }}yes{{ end }}
{{- end }}

{{- /* The settings of the chart, under those of the user. Numbers stay whole. */}}
{{- define "streamfleet.settings" -}}
{{- $api := dict "listen" (printf "[::]:%d" 3000) }}
{{- with .Values.superUserEmails }}{{ $_ := set $api "super_user_emails" . }}{{ end }}
{{- with .Values.baseUrl }}{{ $_ := set $api "base_url" . }}{{ end }}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $api "tls_cert_file" "/etc/streamfleet/tls/tls.crt" }}
{{- $_ := set $api "tls_key_file" "/etc/streamfleet/tls/tls.key" }}
{{- end }}
{{- $all := dict "api" $api }}
{{- if include "streamfleet.fromGit" . }}
{{- $git := dict "git" .Values.source.git.url "branch" .Values.source.git.branch "interval_seconds" (int .Values.source.git.intervalSeconds) }}
{{- with .Values.source.git.folder }}{{ $_ := set $git "folder" . }}{{ end }}
{{- range .Values.source.git.secretKeys }}
{{- $setting := get (dict "token" "token_file" "ssh-key" "ssh_key" "known-hosts" "known_hosts" "signed-by" "signed_by" "signing-key" "signing_key" "webhook-secret" "webhook_secret_file") . }}
{{- $_ := set $git $setting (printf "/etc/streamfleet/git/%s" .) }}
{{- end }}
{{- $_ := set $all "source" $git }}
{{- end }}
{{- if .Values.inCluster.enabled }}{{ $_ := set $all "targets" (dict "in_cluster" .Values.inCluster.fleets) }}{{ end }}
{{- $all = mustMergeOverwrite $all (deepCopy .Values.settings) }}
{{- include "streamfleet.whole" $all }}
{{- toToml $all }}
{{- end }}

{{- /* Helm reads every number as a fraction, and large ones would be written with an exponent. */}}
{{- define "streamfleet.whole" -}}
{{- range $key, $value := . }}
{{- if kindIs "map" $value }}{{ include "streamfleet.whole" $value }}
{{- else if and (kindIs "float64" $value) (eq $value (floor $value)) }}{{ $_ := set $ $key (int64 $value) }}
{{- end }}
{{- end }}
{{- end }}
