{{- define "memcached.selector" -}}
app.kubernetes.io/name: memcached
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "memcached.labels" -}}
{{ include "memcached.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "memcached.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
