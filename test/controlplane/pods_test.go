package controlplane_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/pods"
)

var _ = Describe("a node that runs pods as processes", Ordered, func() {
	var (
		c    client.Client
		node *pods.Node
	)

	BeforeAll(func(ctx context.Context) {
		cluster := boot(ctx, controlplane.Options{LeaveNodes: true})
		c = clientOf(cluster)
		dir, err := os.MkdirTemp("", "pods")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		node, err = pods.Start(ctx, cluster.Config, pods.Options{Dir: dir, Programs: map[string]string{"sh": "/bin/sh"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(node.Stop)
	})

	job := func(ctx context.Context, name, script string) *batchv1.Job {
		GinkgoHelper()
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}}
		j.Spec.Template.Spec = corev1.PodSpec{
			ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](1),
			NodeSelector: map[string]string{corev1.LabelHostname: pods.NodeName}, Tolerations: []corev1.Toleration{{Key: pods.NodeName, Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "c", Image: "none", Command: []string{"/usr/bin/sh", "-c", script}, TerminationMessagePath: "/dev/termination-log",
				Env:          []corev1.EnvVar{{Name: "TOKEN", Value: "/var/run/token/it"}, {Name: "MESSAGE", Value: "/dev/termination-log"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/token"}},
			}},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "somebody", Path: "it"}},
			}}}}},
		}
		Expect(c.Create(ctx, j)).To(Succeed())
		return j
	}
	podOf := func(ctx context.Context, j *batchv1.Job) func() (*corev1.Pod, error) {
		return func() (*corev1.Pod, error) {
			list := &corev1.PodList{}
			err := c.List(ctx, list, client.InNamespace("default"), client.MatchingLabels{batchv1.JobNameLabel: j.Name})
			if err != nil || len(list.Items) == 0 {
				return &corev1.Pod{}, err
			}
			return &list.Items[0], nil
		}
	}
	ended := func(p *corev1.Pod) corev1.ContainerStateTerminated {
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Terminated == nil {
			return corev1.ContainerStateTerminated{}
		}
		return *p.Status.ContainerStatuses[0].State.Terminated
	}

	It("runs the command of a Job's pod with its token, and says how it ended", func(ctx SpecContext) {
		j := job(ctx, "ends", `test -s $TOKEN && echo shown && printf last-words > $MESSAGE && exit 3`)
		Eventually(podOf(ctx, j)).Should(And(
			HaveField("Status.Phase", corev1.PodFailed), WithTransform(ended, And(HaveField("ExitCode", int32(3)), HaveField("Message", "last-words"))),
		))
		pod, err := podOf(ctx, j)()
		Expect(err).NotTo(HaveOccurred())
		Expect(node.Log(pod.Name)).To(Equal("shown\n"))
		Eventually(func() (int32, error) { return j.Status.Failed, c.Get(ctx, client.ObjectKeyFromObject(j), j) }).Should(Equal(int32(1)))
	})

	It("ends it by TERM and KILL, by an eviction, and as the kernel does", func(ctx SpecContext) {
		deaf := job(ctx, "deaf", `trap 'echo told' TERM; setsid sleep 1000 & while :; do sleep 0.1; done`)
		Eventually(podOf(ctx, deaf)).Should(HaveField("Status.Phase", corev1.PodRunning))
		pod, err := podOf(ctx, deaf)()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Delete(ctx, deaf, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(podOf(ctx, deaf)).Should(HaveField("Name", ""))
		Expect(node.Log(pod.Name)).To(ContainSubstring("told"))

		for name, order := range map[string]func(string) error{
			"Evicted":   func(name string) error { return node.Evict(name, "The node was low on resource: memory.") },
			"OOMKilled": node.OOM,
		} {
			j := job(ctx, map[string]string{"Evicted": "evicted", "OOMKilled": "oom"}[name], "sleep 1000")
			Eventually(podOf(ctx, j)).Should(HaveField("Status.Phase", corev1.PodRunning))
			pod, err := podOf(ctx, j)()
			Expect(err).NotTo(HaveOccurred())
			Expect(order(pod.Name)).To(Succeed())
			Eventually(podOf(ctx, j)).Should(HaveField("Status.Phase", corev1.PodFailed))
			Expect(podOf(ctx, j)()).To(Or(HaveField("Status.Reason", name), WithTransform(ended, HaveField("Reason", name))))
		}
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		Expect(err).NotTo(HaveOccurred())
		for _, path := range all {
			environment, _ := os.ReadFile(path)
			Expect(string(environment)).NotTo(ContainSubstring("ENSIGN_TEST_POD=" + string(pod.UID)))
		}
	})

	It("holds pods that cannot start", func(ctx SpecContext) {
		node.Hold("ErrImagePull", "manifest unknown")
		j := job(ctx, "held", "exit 0")
		Eventually(podOf(ctx, j)).Should(HaveField("Status.ContainerStatuses", ContainElement(HaveField("State.Waiting.Message", "manifest unknown"))))
		node.Hold("", "")
		Eventually(podOf(ctx, j)).Should(HaveField("Status.Phase", corev1.PodSucceeded))
	})
})
