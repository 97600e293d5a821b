{{- define "headrace.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "headrace.labels" -}}
app.kubernetes.io/name: headrace
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "headrace.selector" -}}
app.kubernetes.io/name: headrace
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "headrace.image" -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .version) -}}
{{- end }}

{{- define "headrace.tokenKey" -}}
{{- .Values.tokenKey.existingSecret | default (printf "%s-token-key" (include "headrace.name" .)) -}}
{{- end }}

{{- /* What the operator does in a namespace of jobs: each verb because some line of code needs it. */ -}}
{{- define "headrace.operatorRules" -}}
# patch: only of the finalizer by which a deleted job waits until its checkpoints are removed, or saved.
- apiGroups: [headrace.dev]
  resources: [streamjobs]
  verbs: [get, list, watch, patch]
- apiGroups: [headrace.dev]
  resources: [streamjobs/status]
  verbs: [patch]
# create, delete: those that a job takes by its schedule and before its steps, and retention. patch: only of
# the finalizer by which a deleted savepoint waits until its copy is removed.
- apiGroups: [headrace.dev]
  resources: [streamsavepoints]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [headrace.dev]
  resources: [streamsavepoints/status]
  verbs: [patch]
# To own what it makes, so that deleting a StreamJob or StreamSavepoint deletes everything.
- apiGroups: [headrace.dev]
  resources: [streamjobs/finalizers, streamsavepoints/finalizers]
  verbs: [update]
# patch: only of the labels of a rehearsed driver, just before it takes over.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch, create, patch, delete]
# The tokens of the agents are made here, and can never be read back: no get, no list, no watch. And since
# nobody could tell whose a Secret is, none is deleted: each goes with the ConfigMap that owns it.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
# Spark makes them; the operator scales them and cleans up.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, delete]
- apiGroups: [apps]
  resources: [statefulsets/scale]
  verbs: [patch]
# For jobs with driver.evictions: Block.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
{{- end }}
