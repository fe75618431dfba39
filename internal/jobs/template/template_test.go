package template

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/watches"
)

// ownPod is a manager's pod as Kubernetes returns it, with much that is not for runs.
const ownPod = `
metadata:
  name: ensign-manager-7d
  labels: {app.kubernetes.io/name: ensign, pod-template-hash: 7d}
  annotations: {kubectl.kubernetes.io/default-container: manager}
spec:
  nodeName: n1
  hostNetwork: true
  serviceAccountName: ensign-manager
  restartPolicy: Always
  terminationGracePeriodSeconds: 40
  priority: 7
  priorityClassName: high
  nodeSelector: {disk: ssd}
  imagePullSecrets: [{name: pull}]
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  tolerations: [{key: db, operator: Exists}]
  affinity:
    nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: Exists}]}]}}
    podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}
  initContainers: [{name: init, image: init:1}]
  containers:
  - name: sidecar
    image: sidecar:1
    volumeMounts: [{name: data, mountPath: /data}]
  - name: manager
    image: mine:1
    command: [/entry]
    args: [run, --leader-elect]
    env: [{name: A, value: "1"}, {name: ENSIGN_RUN_ADDRESS, value: "wrong:1"}]
    ports: [{containerPort: 8443}]
    livenessProbe: {httpGet: {path: /healthz, port: 6789}}
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    resources: {requests: {cpu: 500m}, limits: {memory: 1280Mi}}
    securityContext: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
    - {name: ca, mountPath: /etc/ssl/mine, readOnly: true}
    - {name: kube-api-access-x, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  volumes:
  - {name: tmp, emptyDir: {sizeLimit: 2Gi}}
  - {name: ca, configMap: {name: ca}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: kube-api-access-x, projected: {sources: []}}
`

func source(t *testing.T, own string, podTemplate string) *Source {
	t.Helper()
	s := &Source{
		Executable: "/usr/local/bin/manager", Namespace: "ops", Operator: "my-lease", ServiceAccount: "runs", Address: "runs.ops.svc:8445", Key: "a key", Timeout: time.Hour,
		Watch: watches.Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "q"}, Annotations: map[string]string{"team": "db"}},
	}
	if own != "" {
		s.Own = &corev1.Pod{}
		read(t, own, s.Own)
	}
	read(t, podTemplate, &s.Watch.PodTemplate)
	return s
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func jobOf(t *testing.T, s *Source) *batchv1.Job {
	t.Helper()
	job, err := s.Job("1-2", map[string]string{RunAnnotation: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestAJobIsTheManagersPodWithWhatARunNeeds(t *testing.T) {
	job := jobOf(t, source(t, ownPod, ""))
	want := &batchv1.Job{}
	read(t, `
metadata:
  name: ensign-run-1-2
  namespace: ops
  labels: {ensign.io/run: "true", ensign.io/operator: my-lease, kueue.x-k8s.io/queue-name: q}
  annotations: {ensign.io/run-id: r1, team: db}
spec:
  parallelism: 1
  completions: 1
  backoffLimit: 0
  activeDeadlineSeconds: 3660
  podReplacementPolicy: Failed
  template:
    metadata:
      labels: {ensign.io/run: "true", ensign.io/operator: my-lease}
    spec:
      serviceAccountName: runs
      automountServiceAccountToken: false
      enableServiceLinks: false
      restartPolicy: Never
      terminationGracePeriodSeconds: 30
      priorityClassName: high
      nodeSelector: {disk: ssd}
      imagePullSecrets: [{name: pull}]
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      tolerations: [{key: db, operator: Exists}]
      affinity:
        nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: Exists}]}]}}
      containers:
      - name: manager
        image: mine:1
        command: [/usr/local/bin/manager]
        args: [run-agent]
        env: [{name: A, value: "1"}, {name: ENSIGN_RUN_ADDRESS, value: "runs.ops.svc:8445"}, {name: ENSIGN_RUN_KEY, value: a key}, {name: ENSIGN_RUN_TOKEN_FILE, value: /var/run/secrets/ensign.io/token}, {name: ENSIGN_TERMINATION_LOG, value: /dev/termination-log}]
        resources: {requests: {cpu: 500m}, limits: {memory: 1280Mi}}
        securityContext: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: ca, mountPath: /etc/ssl/mine, readOnly: true}
        - {name: ensign-run-token, mountPath: /var/run/secrets/ensign.io, readOnly: true}
      volumes:
      - {name: tmp, emptyDir: {sizeLimit: 2Gi}}
      - {name: ca, configMap: {name: ca}}
      - name: ensign-run-token
        projected: {sources: [{serviceAccountToken: {audience: ensign.io/run, expirationSeconds: 3600, path: token}}]}
`, want)
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, job)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A podTemplate says how the pod looks, and cannot make it one that gives no result.
func TestAPodTemplateIsMergedAndCannotBreakTheRun(t *testing.T) {
	job := jobOf(t, source(t, ownPod, `
metadata: {labels: {team: db, ensign.io/run: "no"}, annotations: {a: b}}
spec:
  restartPolicy: Always
  automountServiceAccountToken: true
  serviceAccountName: cloud
  terminationGracePeriodSeconds: 300
  nodeSelector: {disk: null, gpu: "yes"}
  tolerations: [{key: gpu, operator: Exists}]
  containers:
  - name: manager
    image: big:2
    command: [/tini, --, manager]
    args: [something]
    env: [{name: A, value: "2"}, {name: ENSIGN_RUN_KEY, value: wrong}]
    resources: {limits: {memory: 8Gi}}
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  - {name: helper, image: helper:1}
  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}, {name: ensign-run-token, emptyDir: {}}]
`))
	pod := job.Spec.Template
	if diff := cmp.Diff(map[string]string{"team": "db", RunLabel: "true", OperatorLabel: "my-lease"}, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	c := pod.Spec.Containers[0]
	got := map[string]any{
		"restart": pod.Spec.RestartPolicy, "token": *pod.Spec.AutomountServiceAccountToken, "account": pod.Spec.ServiceAccountName, "grace": *pod.Spec.TerminationGracePeriodSeconds,
		"nodes": pod.Spec.NodeSelector, "image": c.Image, "command": c.Command, "args": c.Args, "messages": c.TerminationMessagePolicy, "memory": c.Resources.Limits.Memory().String(),
		"cpu": c.Resources.Requests.Cpu().String(), "A": env(c, "A"), "key": env(c, "ENSIGN_RUN_KEY"), "containers": len(pod.Spec.Containers),
		"volumes": names(pod.Spec.Volumes), "tolerations": len(pod.Spec.Tolerations), "annotations": pod.Annotations,
	}
	want := map[string]any{
		"restart": corev1.RestartPolicyNever, "token": false, "account": "cloud", "grace": int64(300),
		"nodes": map[string]string{"gpu": "yes"}, "image": "big:2", "command": []string{"/tini", "--", "manager"}, "args": []string{"run-agent"}, "messages": corev1.TerminationMessageReadFile, "memory": "8Gi",
		"cpu": "500m", "A": "2", "key": "a key", "containers": 2,
		"volumes": "ca ensign-run-token scratch tmp", "tolerations": 1, "annotations": map[string]string{"a": "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == "ensign-run-token" && v.Projected == nil {
			t.Error("the token's volume is the podTemplate's")
		}
	}
}

func env(c corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func names(volumes []corev1.Volume) string {
	var all []string
	for _, v := range volumes {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestOutsideOfAClusterAPodTemplateGivesTheImage(t *testing.T) {
	if _, err := source(t, "", "").Job("u", nil); err == nil || !strings.Contains(err.Error(), "job.podTemplate") {
		t.Errorf("want an error that says what to do, got %v", err)
	}
	s := source(t, "", "spec: {containers: [{name: manager, image: mine:1}]}")
	s.Timeout = 0
	job := jobOf(t, s)
	if job.Spec.ActiveDeadlineSeconds != nil || job.Spec.Template.Spec.Containers[0].Image != "mine:1" {
		t.Errorf("got %s", asJSON(t, job))
	}
}

// The template of a Go program has containers: null in JSON, which a patch takes for their removal.
func TestATemplateWithoutContainersLeavesThem(t *testing.T) {
	if c := jobOf(t, source(t, ownPod, "spec: {containers: null, priorityClassName: low}")).Spec.Template.Spec.Containers; len(c) != 1 || c[0].Image != "mine:1" {
		t.Errorf("got %+v", c)
	}
}

func TestTheManagersContainer(t *testing.T) {
	pod := func(annotation string, names ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubectl.kubernetes.io/default-container": annotation}}}
		for _, name := range names {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		return p
	}
	for why, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"by its name":              {pod("b", "a", "b", "manager"), "manager"},
		"by what kubectl logs has": {pod("b", "a", "b"), "b"},
		"else the first":           {pod("", "a", "b"), "a"},
	} {
		if got := managerOf(test.pod).Name; got != test.want {
			t.Errorf("%s: got %q, want %q", why, got, test.want)
		}
	}
	if uid, ok := UID(Name("u-1")); uid != "u-1" || !ok {
		t.Errorf("got %q, %v", uid, ok)
	}
	if _, ok := UID("ensign-run-"); ok {
		t.Error("no UID is one")
	}
}
