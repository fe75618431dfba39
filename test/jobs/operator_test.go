package jobs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// entry is the watch of Work: its runs are those that the test plays, in pods of the test's node.
const entry = `
- group: jobs.example.com
  version: v1
  kind: Work
  playbook: play.yml
  executor: job
  reconcilePeriod: 0s
  timeout: %[2]s
  %[3]s
  job:
    podTemplate:
      spec: {` + pods.Placement + `, containers: [{name: manager, image: none, command: [manager], env: [{name: VIRTUAL_ENV, value: %[1]s}]}]}
`

// operator is an operator of Work, whose managers are processes.
type operator struct {
	*site.Site
}

// newOperator makes one, whose runs may take so long.
func newOperator(ctx context.Context, timeout string) operator {
	GinkgoHelper()
	return operatorOf(ctx, map[string]string{"watches.yaml": fmt.Sprintf(entry, played, timeout, ""), "play.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: []\n"},
		[]string{"VIRTUAL_ENV=" + played})
}

func operatorOf(ctx context.Context, files map[string]string, env []string, args ...string) operator {
	GinkgoHelper()
	s := ground.Site(ctx, files)
	s.Options.Binary = cmp.Or(*program, s.Options.Binary)
	address, err := harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	s.Options.Env = append(s.Options.Env, env...)
	s.Options.Args = append(s.Options.Args, append([]string{"--job-bind-address=" + address, "--job-address=" + address, "--max-backoff=1s"}, args...)...)
	return operator{s}
}

// create makes a CR of Work.
func (o operator) create(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(work, o.Namespace, name, spec)
	o.Create(ctx, cr)
	return cr
}

// allowPods limits how many pods may be in the operator's namespace, and returns when that is in force.
func (o operator) allowPods(ctx context.Context, number string) *corev1.ResourceQuota {
	GinkgoHelper()
	return o.allow(ctx, corev1.ResourcePods, number)
}

// allow limits how many of something may be in the operator's namespace, and returns when that is in force.
func (o operator) allow(ctx context.Context, what corev1.ResourceName, number string) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, GenerateName: "quota-"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: resource.MustParse(number)}},
	}
	o.Create(ctx, quota)
	Eventually(ctx, func(ctx context.Context) (corev1.ResourceList, error) {
		err := ground.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		return quota.Status.Hard, err
	}).ShouldNot(BeEmpty())
	return quota
}

// jobs returns the Jobs of runs, and pods their pods.
func (o operator) jobs(ctx context.Context) ([]batchv1.Job, error) {
	list := &batchv1.JobList{}
	err := ground.Client.List(ctx, list, client.InNamespace(o.Namespace), client.HasLabels{template.RunLabel})
	return list.Items, err
}

func (o operator) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := ground.Client.List(ctx, list, client.InNamespace(o.Namespace), client.HasLabels{template.RunLabel})
	return list.Items, err
}

// pod waits for the pod of a run that is at work, and returns its name.
func (o operator) pod(ctx context.Context, cr *unstructured.Unstructured) (name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		pods, err := o.pods(ctx)
		for i := range pods {
			if pods[i].Labels[batchv1.JobNameLabel] == template.Name(string(cr.GetUID())) && pods[i].DeletionTimestamp == nil {
				name = pods[i].Name
			}
		}
		return name, err
	}).ShouldNot(BeEmpty())
	return name
}

// at waits until a run of the CR has so many signs that it is something.
func at(ctx context.Context, cr *unstructured.Unstructured, is string, count int) {
	GinkgoHelper()
	Eventually(ctx, func() (int, error) { return counted(cr, is) }).Should(BeNumerically(">=", count), "%s %s", cr.GetName(), is)
}

func counted(cr *unstructured.Unstructured, is string) (count int, err error) {
	all, err := signs()
	for _, s := range all {
		if s.UID == string(cr.GetUID()) && s.Is == is {
			count++
		}
	}
	return count, err
}

// ensign runs the program for people with the arguments, and returns what it prints.
func (o operator) ensign(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), append(args, "--kubeconfig="+o.Options.Kubeconfig)...).CombinedOutput()
	return string(output), err
}

// leavesNothing waits until no Job, no pod and no process of a run is left.
func (o operator) leavesNothing(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, o.jobs).Should(BeEmpty())
	Eventually(ctx, o.pods).Should(BeEmpty())
	runs, err := filepath.Glob(filepath.Join(o.RunDir(), "*", "run"))
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(BeEmpty(), "a run in a Job has no directory here")
	_, err = os.Stat(o.RunDir())
	Expect(err).NotTo(HaveOccurred())
}
