package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	// Container is the name of the container that runs the content.
	Container = "manager"
	// tokenVolume is the volume with the token by which an agent claims its run. It is renewed, and
	// the agent needs it only at its start.
	tokenVolume  = "ensign-run-token"
	tokenSeconds = 3600
	// apiTokenMount is where Kubernetes mounts the token of a pod's service account.
	apiTokenMount = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // The path of a directory.
	// deadlineReserve is how much longer than the run its Job may take: the agent ends the run first,
	// and reports the timeout.
	deadlineReserve = time.Minute
	// stopSeconds is for the end of the run's processes and for its result.
	stopSeconds = 30
)

// Source is the common part of all Jobs of a watch.
type Source struct {
	// Own is the manager's own pod; nil outside of a cluster.
	Own *corev1.Pod
	// Watch has the settings of the watch for its Jobs.
	Watch watches.Job
	// Executable is the path of the program manager in the image of the operator.
	Executable string
	// Namespace is that of the Jobs, and Operator the value of OperatorLabel.
	Namespace, Operator string
	// ServiceAccount is the pods' if Watch names none. It needs no rights.
	ServiceAccount string
	// Address and Key are for the agent: see wire.EnvAddress and wire.EnvKey.
	Address, Key string
	// Timeout is the longest duration of a run; 0 means no limit.
	Timeout time.Duration
}

// Job returns the Job for a run of the CR with the UID. annotations are the manager's.
func (s *Source) Job(uid string, annotations map[string]string) (*batchv1.Job, error) {
	pod, err := s.pod()
	if err != nil {
		return nil, err
	}
	own := map[string]string{RunLabel: "true", OperatorLabel: s.Operator}
	one := int32(1)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(uid), Namespace: s.Namespace,
			Labels: join(s.Watch.Labels, own), Annotations: join(s.Watch.Annotations, annotations),
		},
		Spec: batchv1.JobSpec{
			Parallelism: &one, Completions: &one, BackoffLimit: new(int32),
			PodReplacementPolicy: new(batchv1.Failed), // No second pod while one is ending.
			Template:             *pod,
		},
	}
	job.Spec.Template.Labels = join(pod.Labels, own)
	if s.Timeout > 0 {
		job.Spec.ActiveDeadlineSeconds = new(int64((s.Timeout + deadlineReserve) / time.Second))
	}
	return job, nil
}

// pod returns the pod of a run: the manager's own pod, the settings of the watch, and the fields of
// a run.
func (s *Source) pod() (*corev1.PodTemplateSpec, error) {
	pod, err := merge(s.base(), s.Watch.PodTemplate)
	if err != nil {
		return nil, fmt.Errorf("job.podTemplate does not fit the operator's pod: %w", err)
	}
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == Container })
	if at < 0 || pod.Spec.Containers[at].Image == "" {
		return nil, errors.New("no image is known for the pods of runs, because the operator's own pod is not: give job.podTemplate a container with the name manager and an image")
	}
	s.complete(&pod.Spec, &pod.Spec.Containers[at])
	return pod, nil
}

// complete sets the fields that a run needs.
func (s *Source) complete(pod *corev1.PodSpec, c *corev1.Container) {
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.AutomountServiceAccountToken, pod.EnableServiceLinks = new(false), new(false)
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = s.ServiceAccount
	}
	if pod.TerminationGracePeriodSeconds == nil {
		pod.TerminationGracePeriodSeconds = new(int64(stopSeconds))
	}
	pod.Volumes = append(slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == tokenVolume }), corev1.Volume{
		Name: tokenVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: wire.Audience, ExpirationSeconds: new(int64(tokenSeconds)), Path: tokenFile()},
		}}}},
	})
	c.VolumeMounts = append(slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenDir() }),
		corev1.VolumeMount{Name: tokenVolume, MountPath: tokenDir(), ReadOnly: true})
	c.Args = []string{wire.Command}
	c.TerminationMessagePath, c.TerminationMessagePolicy = wire.TerminationFile, corev1.TerminationMessageReadFile
	ours := []corev1.EnvVar{
		{Name: wire.EnvAddress, Value: s.Address}, {Name: wire.EnvKey, Value: s.Key},
		{Name: wire.EnvTokenFile, Value: wire.TokenFile}, {Name: wire.EnvTerminationFile, Value: wire.TerminationFile},
	}
	c.Env = append(slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(ours, func(our corev1.EnvVar) bool { return our.Name == v.Name })
	}), ours...)
}

func tokenDir() string  { return wire.TokenFile[:strings.LastIndex(wire.TokenFile, "/")] }
func tokenFile() string { return wire.TokenFile[strings.LastIndex(wire.TokenFile, "/")+1:] }

// base returns the part of the manager's own pod that a run's pod takes over. It has no labels, by which
// Services and Deployments select pods.
func (s *Source) base() corev1.PodTemplateSpec {
	command := []string{s.Executable} // The entry point of an image may have arguments of its own.
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: Container, Command: command}}}}
	if s.Own == nil {
		return pod
	}
	c, from := managerOf(s.Own), s.Own.Spec
	pod.Spec = corev1.PodSpec{
		SecurityContext: from.SecurityContext, ImagePullSecrets: from.ImagePullSecrets, Tolerations: from.Tolerations, NodeSelector: from.NodeSelector,
		PriorityClassName: from.PriorityClassName, RuntimeClassName: from.RuntimeClassName, SchedulerName: from.SchedulerName,
		HostAliases: from.HostAliases, DNSPolicy: from.DNSPolicy, DNSConfig: from.DNSConfig,
	}
	if from.Affinity != nil && from.Affinity.NodeAffinity != nil { // Not the rules for replicas of the manager.
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: from.Affinity.NodeAffinity}
	}
	mounts := slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return m.MountPath == apiTokenMount })
	for _, v := range from.Volumes {
		if slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
	}
	pod.Spec.Containers = []corev1.Container{{
		Name: Container, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, Command: command, WorkingDir: c.WorkingDir,
		EnvFrom: c.EnvFrom, Env: c.Env, Resources: c.Resources, VolumeMounts: mounts, SecurityContext: c.SecurityContext,
	}}
	return pod
}

// managerOf returns the manager's container: by its name, by the annotation for kubectl logs, or the
// first.
func managerOf(own *corev1.Pod) corev1.Container {
	for _, name := range []string{Container, own.Annotations["kubectl.kubernetes.io/default-container"]} {
		for _, c := range own.Spec.Containers {
			if c.Name == name {
				return c
			}
		}
	}
	return own.Spec.Containers[0]
}

// merge merges the patch strategically over the pod, as kubectl patch does.
func merge(pod corev1.PodTemplateSpec, patch map[string]any) (*corev1.PodTemplateSpec, error) {
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		return nil, err
	}
	patch = runtime.DeepCopyJSON(patch)
	if spec, _ := patch["spec"].(map[string]any); spec != nil && spec["containers"] == nil {
		delete(spec, "containers") // In JSON, a Go program's template without containers says null, which would remove them.
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	result := &corev1.PodTemplateSpec{}
	return result, json.Unmarshal(text, result)
}

// join returns the labels or annotations of both.
func join(base, overrides map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, overrides)
	return all
}
