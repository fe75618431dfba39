{{- define "memcached.labels" -}}
app.kubernetes.io/name: memcached
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
