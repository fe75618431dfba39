package jobs

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a run in a Job", func() {
	It("is a run as any other, of the real Ansible too: variables, owner, events, requeue, failure, and nothing left", func(ctx SpecContext) {
		o := operatorOf(ctx, map[string]string{
			"watches.yaml": strings.ReplaceAll(fmt.Sprintf(entry, filepath.Join(ground.Root, ".venv"), "10m", "finalizer: {name: jobs.example.com/farewell, playbook: farewell.yml}"), "kind: Work", "kind: Deed"),
			"play.yml": `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Write
    kubernetes.core.k8s:
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ ansible_operator_meta.name }}", namespace: "{{ ansible_operator_meta.namespace }}"}, data: {word: "{{ first_word }}"}}
  - name: Judge
    ansible.builtin.assert: {that: first_word != 'bad', fail_msg: "a bad word"}
`,
			"farewell.yml": `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Say farewell
    kubernetes.core.k8s:
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: farewell, namespace: "{{ ansible_operator_meta.namespace }}"}, data: {word: "{{ first_word }}"}}
    vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
`,
		}, []string{"VIRTUAL_ENV=" + filepath.Join(ground.Root, ".venv")})
		o.Start(ctx, deed.Kind)
		cr := harness.Custom(deed, o.Namespace, "one", map[string]any{"firstWord": "{{ 1 + 1 }}"})
		o.Create(ctx, cr)
		Expect(o.Outcome(ctx, cr)).To(And(HaveField("Reason", "Successful"), HaveField("Result", HaveKeyWithValue("ok", BeNumerically("==", 2)))))
		made := &corev1.ConfigMap{}
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), made)).To(Succeed())
		Expect(made.Data).To(HaveKeyWithValue("word", "{{ 1 + 1 }}"))
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		Expect(o.Log()).To(And(ContainSubstring("Write"), ContainSubstring("run succeeded")))
		Expect(o.Metrics(ctx)).To(MatchRegexp(`mode="job"`))
		o.leavesNothing(ctx)

		Expect(ground.Client.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"firstWord":"bad"}}`)))).To(Succeed())
		Eventually(ctx, o.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring("a bad word"))))
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr) }).Should(MatchError(ContainSubstring("not found")))
		o.leavesNothing(ctx)
	})

	It("outlives managers that are stopped and killed, and is taken over with its events and its result", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "long", map[string]any{"seconds": 6.0})
		at(ctx, cr, lives, 5)
		Expect(o.Stop()).To(Succeed())
		seen, err := counted(cr, lives)
		Expect(err).NotTo(HaveOccurred())
		at(ctx, cr, lives, seen+5) // It goes on without a manager.
		Expect(o.Condition(cr, "Running")(ctx)).To(HaveField("Reason", "Running"), "no manager has given it up")
		o.Start(ctx, work.Kind)
		Eventually(o.Log).Should(MatchRegexp(`task \d+`), "events go on")
		Expect(o.Kill()).To(Succeed())
		at(ctx, cr, ends, 1)
		o.Start(ctx, work.Kind)
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(counted(cr, begins)).To(Equal(1), "one run, whoever looked after it")
		Expect(o.Log()).NotTo(ContainSubstring("run canceled"))
		lines, err := o.ensign(ctx, "logs", "work/long", "-n", o.Namespace, "--file", o.LogFile())
		Expect(err).NotTo(HaveOccurred())
		Expect(lines).To(ContainSubstring("resuming a run that an earlier manager began in a Job"))
		took := regexp.MustCompile(`run succeeded.*"seconds": ([\d.]+)`).FindStringSubmatch(lines)
		Expect(took).To(HaveLen(2), lines)
		Expect(strconv.ParseFloat(took[1], 64)).To(BeNumerically(">=", 6), "not only what this manager saw of it")
		o.leavesNothing(ctx)
	})

	It("reaches the API while managers come and go", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "writes", map[string]any{"seconds": 1.0, "writes": true})
		at(ctx, cr, lives, 1)
		Expect(o.Kill()).To(Succeed())
		at(ctx, cr, lives, 10) // It waits for the API then.
		o.Start(ctx, work.Kind)
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		made := &corev1.ConfigMap{}
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), made)).To(Succeed())
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		o.leavesNothing(ctx)
	})

	It("ends with its resource, at its timeout, and when its run fails", func(ctx SpecContext) {
		o := newOperator(ctx, "4s")
		o.Start(ctx, work.Kind)
		gone := o.create(ctx, "gone", map[string]any{"seconds": 600.0})
		late := o.create(ctx, "late", map[string]any{"seconds": 600.0})
		bad := o.create(ctx, "bad", map[string]any{"fails": true})
		at(ctx, gone, lives, 1)
		Expect(ground.Client.Delete(ctx, gone)).To(Succeed())
		Expect(o.Outcome(ctx, late)).To(And(HaveField("Reason", "Timeout"), HaveField("Message", ContainSubstring("4s"))))
		Expect(o.Outcome(ctx, bad)).To(HaveField("Message", ContainSubstring("this was asked for")))
		for _, cr := range []*unstructured.Unstructured{late, bad} {
			Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		}
		o.leavesNothing(ctx)
	})
})

var _ = Describe("a run in a Job, for which nothing is to run any more", func() {
	It("goes on when its resource is paused, and is ended by the next manager", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		pause := func(cr *unstructured.Unstructured, value string) {
			patch := `{"metadata":{"annotations":{"ansible.sdk.operatorframework.io/paused":` + value + `}}}`
			Expect(ground.Client.Patch(ctx, cr.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		short, long := o.create(ctx, "short", map[string]any{"seconds": 3.0}), o.create(ctx, "long", map[string]any{"seconds": 600.0})
		at(ctx, long, lives, 1)
		at(ctx, short, lives, 1)
		pause(short, `"true"`)
		Expect(o.Outcome(ctx, short)).To(HaveField("Reason", "Successful"), "as in the operator's pod")
		pause(long, `"true"`)
		Expect(o.Kill()).To(Succeed())
		o.Start(ctx, work.Kind)
		o.leavesNothing(ctx)
		for _, cr := range []*unstructured.Unstructured{short, long} {
			Eventually(ctx, o.Condition(cr, "Running")).Should(HaveField("Reason", "Paused"))
			Expect(counted(cr, begins)).To(Equal(1))
		}
		pause(long, "null")
		at(ctx, long, begins, 2)
		Expect(ground.Client.Delete(ctx, long)).To(Succeed())
		o.leavesNothing(ctx)
	})
})

var _ = Describe("a run in a Job of a shard", func() {
	It("has ended before another shard runs content for its resource, also when its manager is gone", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		common := append(o.Options.Args, "--leader-elect", "--leader-election-id=jobs")
		shard := func(selector string) {
			address, err := harness.FreeAddress()
			Expect(err).NotTo(HaveOccurred())
			o.Options.Home = filepath.Join(o.Dir, selector)
			o.Options.Args = append(slices.Clone(common), "--watch-label-selector="+selector, "--job-bind-address="+address, "--job-address="+address)
			o.Start(ctx, work.Kind)
		}
		shard("!shard")
		cr := o.create(ctx, "moves", map[string]any{"seconds": 600.0})
		at(ctx, cr, lives, 1)
		Expect(o.Kill()).To(Succeed())
		Expect(ground.Client.Patch(ctx, cr.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"shard":"b"}}}`)))).To(Succeed())
		shard("shard=b")
		at(ctx, cr, begins, 2)
		By("the manager of the first shard, which leaves the other shard's Jobs alone")
		there := o.pod(ctx, cr)
		shard("!shard")
		Expect(o.Outcome(ctx, o.create(ctx, "stays", nil))).To(HaveField("Reason", "Successful"))
		Expect(o.pod(ctx, cr)).To(Equal(there))
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		o.leavesNothing(ctx)
		Expect(counted(cr, begins)).To(Equal(2))
		all, err := signs()
		Expect(err).NotTo(HaveOccurred())
		Expect(overlaps(all)).To(BeEmpty())
	})
})

var _ = Describe("effects of Kubernetes on the pod of a run", Label("long"), func() {
	It("is in the status in its own words, and never a success", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		for name, ends := range map[string]struct {
			by    func(pod string) error
			words string
		}{
			"evicted": {func(pod string) error { return node.Evict(pod, "The node was low on resource: memory.") }, "The node was low on resource: memory."},
			"oom":     {node.OOM, "OOMKilled"},
			"killed":  {node.Kill, "exit code 137"},
			"drained": {func(pod string) error {
				return ground.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: pod}})
			}, "was deleted"},
		} {
			cr := o.create(ctx, name, map[string]any{"seconds": 600.0})
			at(ctx, cr, lives, 1)
			pod := o.pod(ctx, cr)
			Eventually(ctx, o.ensign).WithArguments("status", "work/"+name, "-n", o.Namespace, "-o", "wide").Should(ContainSubstring("Running reconciliation in pod " + pod))
			Expect(ends.by(pod)).To(Succeed())
			Eventually(ctx, o.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring(ends.words))), name)
			at(ctx, cr, begins, 2) // It is tried again, as any run.
			Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		}
		o.leavesNothing(ctx)
		all, err := signs()
		Expect(err).NotTo(HaveOccurred())
		Expect(overlaps(all)).To(BeEmpty())
	})

	It("is one run at a time when somebody deletes the Job and leaves its pod, with a manager and without", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "left", map[string]any{"seconds": 600.0})
		leave := func() {
			jobs, err := o.jobs(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(jobs).To(HaveLen(1))
			Expect(ground.Client.Delete(ctx, &jobs[0])).To(Succeed()) // What a DELETE of a Job does that says nothing of its pods.
			Eventually(ctx, o.jobs).ShouldNot(ContainElement(HaveField("UID", jobs[0].UID)))
		}
		at(ctx, cr, lives, 1)
		leave()
		Eventually(ctx, o.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("was deleted")))
		at(ctx, cr, begins, 2)
		Expect(o.Kill()).To(Succeed())
		leave()
		Expect(ground.Client.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"seconds":0}}`)))).To(Succeed())
		o.Start(ctx, work.Kind)
		Eventually(ctx, o.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		Expect(counted(cr, begins)).To(Equal(3))

		gone := o.create(ctx, "gone", map[string]any{"seconds": 600.0})
		at(ctx, gone, lives, 1)
		Expect(o.Kill()).To(Succeed())
		leave()
		Expect(ground.Client.Delete(ctx, gone)).To(Succeed())
		o.Start(ctx, work.Kind)
		o.leavesNothing(ctx)
		all, err := signs()
		Expect(err).NotTo(HaveOccurred())
		Expect(overlaps(all)).To(BeEmpty())
	})

	It("is in the condition Running while the pod does not come: image, volume, quota, Pod Security, suspended", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		says := func(name, words string) *unstructured.Unstructured {
			GinkgoHelper()
			cr := o.create(ctx, name, nil)
			began := time.Now()
			Eventually(ctx, o.Condition(cr, "Running")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring(words))))
			AddReportEntry(name+" was told after", time.Since(began).Round(time.Millisecond/10), ReportEntryVisibilityAlways)
			Expect(o.Condition(cr, "Successful")(ctx)).NotTo(HaveField("Status", "True"))
			return cr
		}
		node.Hold("ErrImagePull", "manifest unknown")
		image := says("image", "manifest unknown")
		node.Hold("", "")
		Expect(o.Outcome(ctx, image)).To(HaveField("Reason", "Successful"))

		node.Hold("ContainerCreating", "")
		mounts := o.create(ctx, "volume", nil)
		warning := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: o.Namespace, GenerateName: "volume-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.Namespace, Name: o.pod(ctx, mounts)},
			Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "ca": configmap "ca" not found`,
		}
		stuck := &corev1.Pod{}
		Expect(ground.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: warning.InvolvedObject.Name}, stuck)).To(Succeed())
		warning.InvolvedObject.UID, warning.LastTimestamp = stuck.UID, metav1.NewTime(time.Now().Add(time.Second)) // A kubelet tries again, and says so again.
		o.Create(ctx, warning)
		Eventually(ctx, o.Condition(mounts, "Running")).Should(HaveField("Message", ContainSubstring("waiting: FailedMount: "+warning.Message)))
		node.Hold("", "")
		Expect(o.Outcome(ctx, mounts)).To(HaveField("Reason", "Successful"))

		quota := o.allowPods(ctx, "0")
		waits := says("quota", "exceeded quota: "+quota.Name)
		Expect(ground.Client.Delete(ctx, quota)).To(Succeed())
		Expect(o.Outcome(ctx, waits)).To(HaveField("Reason", "Successful"))

		quota = o.allow(ctx, "count/jobs.batch", "0")
		waits = says("no-job", "exceeded quota: "+quota.Name)
		Expect(o.Condition(waits, "Failure")(ctx)).NotTo(HaveField("Status", "True"), "it waits, and has not failed")
		Expect(ground.Client.Delete(ctx, quota)).To(Succeed())
		Expect(o.Outcome(ctx, waits)).To(HaveField("Reason", "Successful"))

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
		enforce := func(level string) {
			Expect(ground.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%s}}}`, level)))).To(Succeed())
		}
		enforce(`"restricted"`)
		insecure := says("security", `violates PodSecurity`)
		enforce("null")
		Expect(o.Outcome(ctx, insecure)).To(HaveField("Reason", "Successful"))

		quota = o.allowPods(ctx, "0") // So that it has no pod yet, as if the queue had suspended it at once.
		queued := says("queued", "exceeded quota: "+quota.Name)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: template.Name(string(queued.GetUID()))}}
		suspend := func(suspended bool) {
			Expect(ground.Client.Patch(ctx, job, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"nightly"}},"spec":{"suspend":%t}}`, suspended)))).To(Succeed())
		}
		suspend(true)
		Eventually(ctx, o.Condition(queued, "Running")).Should(HaveField("Message", ContainSubstring(`the Job is suspended until the queue "nightly" admits it`)))
		Expect(ground.Client.Delete(ctx, quota)).To(Succeed())
		Consistently(ctx, o.pods).WithTimeout(site.Calm).Should(BeEmpty())
		Expect(o.Condition(queued, "Failure")(ctx)).NotTo(HaveField("Status", "True"), "it waits, and has not failed")
		suspend(false)
		Expect(o.Outcome(ctx, queued)).To(HaveField("Reason", "Successful"))
		o.leavesNothing(ctx)
	})
})

var _ = Describe("a manager that is cut off from a run", Label("long"), func() {
	It("takes its events in order, all and once, after it was frozen", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "frozen", map[string]any{"seconds": 4.0})
		at(ctx, cr, lives, 5)
		Expect(syscall.Kill(o.PID(), syscall.SIGSTOP)).To(Succeed())
		seen, err := counted(cr, lives)
		Expect(err).NotTo(HaveOccurred())
		at(ctx, cr, lives, seen+10)
		Expect(syscall.Kill(o.PID(), syscall.SIGCONT)).To(Succeed())
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		text, err := o.Log()
		Expect(err).NotTo(HaveOccurred())
		found := regexp.MustCompile(`"task": "task (\d+)"`).FindAllStringSubmatch(text, -1)
		last, distinct := "", 0
		for _, one := range found {
			if one[1] != last {
				Expect(one[1]).To(Equal(fmt.Sprint(distinct)), "the tasks of the log")
				last, distinct = one[1], distinct+1
			}
		}
		Expect(distinct).To(BeNumerically(">", 10))
	})
})
