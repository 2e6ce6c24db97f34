{{/* The pod of a factory. Takes root, name, and f: its settings, laid over those of all. */}}
{{- define "giga.factoryPod" -}}
{{- $root := .root }}{{ $f := .f -}}
metadata:
  labels:
    {{- include "giga.selects" (dict "root" $root "component" "factory") | nindent 4 }}
    gigafactory/{{ .kind }}: {{ .name }}
    {{- with $f.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Whoever makes room on a node is to wait for its end.
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    {{- with $f.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "giga.fullname" $root }}-factory
  automountServiceAccountToken: false
  enableServiceLinks: false
  # What a job leaves behind without a parent is reaped by the pod, and not left to the agent.
  shareProcessNamespace: true
  restartPolicy: {{ .restart }}
  terminationGracePeriodSeconds: {{ $f.terminationGracePeriodSeconds }}
  {{- if $f.nestedSandbox }}
  hostUsers: false
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{- range . }}{{ (list (dict "name" .)) | toYaml | nindent 4 }}{{ end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: {{ ternary "Unconfined" "RuntimeDefault" $f.nestedSandbox }}}
  containers:
    - name: factory
      image: {{ include "giga.image" (dict "root" $root "image" $root.Values.image.factory) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        - factory
        - run
        - --{{ if eq .kind "pool" }}pool{{ else }}id{{ end }}={{ .name }}
        - --token-file=/etc/giga/token/token
        {{- with $f.seats }}
        - --seats={{ . }}
        {{- end }}
        - --sandbox={{ $f.sandbox }}
        {{- range $f.capabilities }}
        - {{ printf "--capability=%s" . | quote }}
        {{- end }}
        {{- range $f.gitAllow }}
        - {{ printf "--git-allow=%s" . | quote }}
        {{- end }}
        - --log-format=json
        {{- range $f.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - {name: GIGA_URL, value: {{ include "giga.url" $root | quote }}}
        # A folder of its own in the volume, whose owner it is.
        - {name: GIGA_DATA, value: /var/lib/giga/data}
        {{- if not $root.Values.tls.secret }}
        - {name: GIGA_ALLOW_PLAIN_HTTP, value: "true"}
        {{- else if $root.Values.tls.ca.secret }}
        - {name: GIGA_CA_CERT, value: /etc/giga/ca/ca.crt}
        {{- end }}
        {{- if .scaler }}
        # KEDA reads it here and sends it to the coordinator. It is worth one thing: to ask for this pool's demand.
        - name: GIGA_SCALER_TOKEN
          valueFrom: {secretKeyRef: {name: {{ .scaler.secret }}, key: {{ .scaler.key }}}}
        {{- end }}
        {{- with $f.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $f.envSecret }}
      envFrom:
        - secretRef: {name: {{ . }}}
      {{- end }}
      resources: {{- toYaml $f.resources | nindent 8 }}
      securityContext:
        {{- include "giga.container" $root | nindent 8 }}
        {{- if $f.nestedSandbox }}
        procMount: Unmasked
        {{- end }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/giga}
        - {name: tmp, mountPath: /tmp}
        - {name: token, mountPath: /etc/giga/token, readOnly: true}
        {{- if and $root.Values.tls.secret $root.Values.tls.ca.secret }}
        - {name: ca, mountPath: /etc/giga/ca, readOnly: true}
        {{- end }}
  volumes:
    - {name: data, emptyDir: {sizeLimit: {{ $f.workSize }}}}
    - {name: tmp, emptyDir: {sizeLimit: {{ $f.tmpSize }}}}
    - {name: token, secret: {secretName: {{ $f.tokenSecret.secret }}, defaultMode: 0440, items: [{key: {{ $f.tokenSecret.key }}, path: token}]}}
    {{- if and $root.Values.tls.secret $root.Values.tls.ca.secret }}
    - {name: ca, secret: {secretName: {{ $root.Values.tls.ca.secret }}, defaultMode: 0440, items: [{key: {{ $root.Values.tls.ca.key }}, path: ca.crt}]}}
    {{- end }}
  {{- with $f.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $f.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $f.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end }}
