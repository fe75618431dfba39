{{- define "hello.labels" -}}
app.kubernetes.io/name: hello
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hello.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "hello.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .root.Values.replicaCount }}
  selector:
    matchLabels:
      {{- include "hello.labels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "hello.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
    spec:
      containers:
        - name: {{ .component }}
          image: {{ .root.Values.image | quote }}
          env:
            - name: GREETING
              value: {{ .root.Values.greeting | quote }}
          ports:
            - name: http
              containerPort: {{ .root.Values.port }}
{{- end }}

{{- define "hello.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "hello.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  selector:
    {{- include "hello.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  ports:
    - name: http
      port: 80
      targetPort: http
{{- end }}
