{{/* Names what an older chart did not have, before a template fails for want of it. */}}
{{- define "ensign.checkValues" -}}
{{- range list "crds" "image" "jobs" "leaderElection" "metrics" "networkPolicy" "podDisruptionBudget" "serviceAccount" "uninstallCheck" "userRoles" -}}
{{- if not (kindIs "map" (index $.Values .)) -}}
{{- fail (printf "the value %q is missing: helm upgrade --reuse-values takes all values from the older release; use --reset-then-reuse-values" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The prefix of all names: "ensign" for a release of that name, as config/default has it. */}}
{{- define "ensign.fullname" -}}
{{- include "ensign.checkValues" . -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "ensign.labels" -}}
app.kubernetes.io/part-of: ensign
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The labels by which config/ finds the manager, on the objects themselves. */}}
{{- define "ensign.managerLabels" -}}
{{ include "ensign.labels" . }}
app.kubernetes.io/name: ensign
app.kubernetes.io/component: manager
{{- end -}}

{{/* What tells the manager's pods from all others. It never changes: selectors are immutable. */}}
{{- define "ensign.selector" -}}
app.kubernetes.io/name: ensign
app.kubernetes.io/component: manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ensign.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The arguments and the environment of the manager. The uninstall check gets the same, so that it reads watches.yaml as the manager does. */}}
{{- define "ensign.args" -}}
- --health-probe-bind-address=:6789
- --metrics-bind-address={{ if .Values.metrics.enabled }}:8443{{ else }}0{{ end }}
# Of each watch; see the memory limit.
- --max-concurrent-reconciles={{ .Values.maxConcurrentReconciles }}
{{- if .Values.leaderElection.enabled }}
- --leader-elect
- --leader-election-id={{ include "ensign.fullname" . }}.myapp.myorg.tld
{{- end }}
{{- if .Values.jobs.enabled }}
- --job-address={{ include "ensign.fullname" . }}-jobs.{{ .Release.Namespace }}.svc:8445
{{- end }}
{{- if ne .Values.logFormat "console" }}
- --log-format={{ .Values.logFormat }}
{{- end }}
{{- if not .Values.warm }}
- --warm=false
{{- end }}
{{- with .Values.maxConcurrentRuns }}
- --max-concurrent-runs={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ensign.env" -}}
- name: ANSIBLE_GATHERING
  value: {{ .Values.gathering }}
{{- with .Values.watchNamespaces }}
- name: WATCH_NAMESPACE
  value: {{ join "," . }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ensign.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "ensign.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/*
The rights of a role with what binds them to an account, in each of the namespaces, or in all by a
ClusterRole where there are none. The argument is a dictionary: root, name, account, namespaces,
rules, and annotations (YAML) if there are any.
*/}}
{{- define "ensign.grant" -}}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .namespaces)) -}}
{{- range $namespace := .namespaces | default (list "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $.name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "ensign.labels" $.root | nindent 4 }}
  {{- with $.annotations }}
  annotations: {{- . | nindent 4 }}
  {{- end }}
rules: {{- toYaml $.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $.name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "ensign.labels" $.root | nindent 4 }}
  {{- with $.annotations }}
  annotations: {{- . | nindent 4 }}
  {{- end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $.account }}
    namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end -}}

{{/* The pod of a manager: of all resources, of those without a shard, or, with "shard", of one. */}}
{{- define "ensign.pod" -}}
metadata:
  labels:
    {{- include "ensign.selector" . | nindent 4 }}
    {{- if .shard }}
    ensign.io/manager-of: shards
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: manager
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "ensign.fullname" . }}-manager
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  # Two phases of stopping (runs, then the rest) fit in it.
  terminationGracePeriodSeconds: 40
  securityContext: {{- include "ensign.podSecurityContext" . | nindent 4 }}
  containers:
    - name: manager
      image: {{ include "ensign.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- include "ensign.args" . | nindent 8 }}
        {{- if .shard }}
        - --watch-label-selector=ensign.io/shard=$(SHARD)
        {{- else if .Values.shards }}
        - --watch-label-selector=!ensign.io/shard
        {{- end }}
      env:
        {{- include "ensign.env" . | nindent 8 }}
        {{- if .shard }}
        - name: SHARD
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
        {{- end }}
      ports:
        {{- if .Values.metrics.enabled }}
        - name: metrics
          containerPort: 8443
          protocol: TCP
        {{- end }}
        - name: probes
          containerPort: 6789
          protocol: TCP
        {{- if .Values.jobs.enabled }}
        - name: jobs
          containerPort: 8445
          protocol: TCP
        {{- end }}
      # Runs may take all of a node's processors for a moment, and the probes' answers wait.
      startupProbe:
        httpGet:
          path: /healthz
          port: probes
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 30
      livenessProbe:
        httpGet:
          path: /healthz
          port: probes
        periodSeconds: 20
        timeoutSeconds: 5
      readinessProbe:
        httpGet:
          path: /readyz
          port: probes
        periodSeconds: 10
        timeoutSeconds: 5
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext: {{- include "ensign.securityContext" . | nindent 8 }}
      volumeMounts:
        # Run directories and Ansible's temporary files.
        - name: tmp
          mountPath: /tmp
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: {{ .Values.tmpSizeLimit }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if gt (int .Values.replicas) 1 }}
  topologySpreadConstraints:
    # A wish. The hash keeps pods of the old version from counting during a rollout.
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels: {{- include "ensign.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
{{- end -}}
