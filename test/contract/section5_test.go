package contract

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// deedPlay does what the CR asks for by its "how".
const deedPlay = `
- name: Deeds
  hosts: localhost
  gather_facts: false
  tasks:
  - name: Hire a mate
    ansible.builtin.add_host: {name: mate, ansible_connection: local}
    changed_when: false
  - name: Change something
    ansible.builtin.debug: {msg: done}
    changed_when: true
  - name: Wait for a sign
    ansible.builtin.wait_for: {path: "{{ lookup('ansible.builtin.env', 'KEEP') }}/go", timeout: 600}
    when: how == "wait"
  - name: Fail plainly
    ansible.builtin.fail: {msg: "it went wrong"}
    when: how == "plain"
  - name: Fail without a word
    silent:
    when: how == "silent"
  - name: Fail in secret
    ansible.builtin.fail: {msg: "canary-4711"}
    no_log: true
    when: how == "hidden"
  - name: Fail at length
    ansible.builtin.fail: {msg: "{{ 'ä' * 5000 }}"}
    when: how == "long"
  - name: Fail and be rescued
    when: how == "rescued"
    block:
    - name: Fail inside
      ansible.builtin.fail: {msg: rescued}
    rescue:
    - name: Mend it
      ansible.builtin.debug: {msg: mended}
  - name: Fail and be ignored
    ansible.builtin.fail: {msg: ignored}
    ignore_errors: true
    when: how == "rescued"
  - name: Come again, by the bare name
    requeue_after: {time: "{{ after }}"}
    when: how == "bare"
  - name: Come again, by the older name
    operator_sdk.util.requeue_after: {time: "{{ after }}"}
    when: how == "older"
  - name: Come again, by our name
    ensign.operator.requeue_after: {time: "{{ after }}"}
    when: how == "ours"
  - name: Fail after all
    ansible.builtin.fail: {msg: "after all"}
    when: fails | default(false)

- name: Deeds of the mate
  hosts: mate
  gather_facts: false
  tasks:
  - name: Change something else
    ansible.builtin.debug: {msg: done}
    changed_when: true
`

// deedBye is the finalizer's.
const deedBye = `
- name: Farewells
  hosts: localhost
  gather_facts: false
  tasks:
  - name: Stay
    ansible.builtin.fail: {msg: "not yet"}
    when: stay | default(false)
`

const requeueModule = `#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}})
module.exit_json(changed=False, period=module.params["time"])
`

const deedWatches = `
- {group: deeds.example.com, version: v1, kind: Deed, playbook: deed.yml, finalizer: {name: deeds.example.com/finalizer, playbook: bye.yml}}
- {group: deeds.example.com, version: v1, kind: Loose, playbook: deed.yml, vars: {how: wait}}
- {group: deeds.example.com, version: v1, kind: Tick, playbook: bye.yml, reconcilePeriod: 1s}
`

// deeds are CRs that do what they are told, and what has been seen of them.
type deeds struct {
	*site.Site

	good, plain, hang *unstructured.Unstructured
	seen              *history
}

func (w *deeds) custom(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(kindOf("deeds", kind), w.Namespace, name, spec)
}

// deed creates a CR.
func (w *deeds) deed(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	cr := w.custom("Deed", name, spec)
	w.Create(ctx, cr)
	return cr
}

func (w *deeds) begin(ctx context.Context) {
	GinkgoHelper()
	ground.Define(ctx, harness.Definition(kindOf("deeds", "Deed")), harness.Definition(kindOf("deeds", "Loose")), harness.Definition(kindOf("deeds", "Tick")))
	const collections = "collections/ansible_collections/"
	w.Site = ground.Site(ctx, map[string]string{
		"watches.yaml": deedWatches, "deed.yml": deedPlay, "bye.yml": deedBye,
		"library/requeue_after.py": requeueModule, "library/silent.py": "#!/usr/bin/python\nprint('{\"failed\": true}')\n",
		collections + "operator_sdk/util/plugins/modules/requeue_after.py": requeueModule, collections + "ensign/operator/plugins/modules/requeue_after.py": requeueModule,
	})
	w.Options.Args = append(w.Options.Args, "--zap-log-level=debug", "--ansible-collections-path=collections", "--max-backoff=3s")
	w.Options.Env = append(w.Options.Env, "KEEP="+w.Dir)
	w.seen = follow(w.Namespace, "Deed")
	w.Start(ctx, "Deed", "Loose", "Tick")
	w.good = w.deed(ctx, "good", map[string]any{"how": "good"})
	w.plain = w.deed(ctx, "plain", map[string]any{"how": "plain"})
}

// history has all states of the CRs of a kind that a watch has told of.
type history struct {
	mu     sync.Mutex
	states map[string][]*unstructured.Unstructured
}

func follow(namespace, kind string) *history {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("deeds.example.com/v1")
	list.SetKind(kind + "List")
	events, err := k8s.Watch(ctx, list, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	h := &history{states: map[string][]*unstructured.Unstructured{}}
	go func() {
		for event := range events.ResultChan() {
			if cr, ok := event.Object.(*unstructured.Unstructured); ok {
				h.mu.Lock()
				h.states[cr.GetName()] = append(h.states[cr.GetName()], cr)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

func (h *history) of(name string) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states[name])
}

func (h *history) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.states {
		names = append(names, name)
	}
	return names
}

// during gives the states of a CR while a run of the generation was at work.
func (h *history) during(name string, generation int64) func() []*unstructured.Unstructured {
	return func() []*unstructured.Unstructured {
		var found []*unstructured.Unstructured
		for _, cr := range h.of(name) {
			if running := harness.ConditionOf(cr, "Running"); running.Reason == "Running" && running.Generation == generation {
				found = append(found, cr)
			}
		}
		return found
	}
}

var _ = Describe("what comes of runs", Ordered, ContinueOnFailure, func() {
	w := &deeds{}
	BeforeAll(w.begin)
	statusRows(w)
	failureRows(w)
	triggerRows(w)
	requeueRows(w)
	finalizerRows(w)
	stopRows(w)
})

func statusRows(w *deeds) {
	row("§5 success, §6 create", "all three conditions, with ansibleResult", func(ctx context.Context) {
		Eventually(ctx, w.Condition(w.good, "Successful")).Should(And(
			HaveField("Status", "True"), HaveField("Reason", "Successful"), HaveField("Message", "Last reconciliation succeeded"), HaveField("Result", Not(BeNil()))))
		Expect(w.Condition(w.good, "Running")(ctx)).To(And(
			HaveField("Status", "True"), HaveField("Reason", "Successful"), HaveField("Message", "Awaiting next reconciliation"), HaveField("Result", Not(BeNil()))))
		Expect(w.Condition(w.good, "Failure")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "Successful"), HaveField("Result", BeNil())))
	})
	row("§5 run starts", "Running is True; of a new generation Successful is False, Failure is not touched", func() {
		Eventually(w.seen.during("good", 1)).ShouldNot(BeEmpty())
		first := w.seen.during("good", 1)()[0]
		Expect(harness.ConditionOf(first, "Running")).To(And(HaveField("Status", "True"), HaveField("Message", "Running reconciliation")))
		Expect(harness.ConditionOf(first, "Successful")).To(And(HaveField("Status", "False"), HaveField("Reason", "Running"), HaveField("Generation", int64(1))))
		Expect(harness.ConditionOf(first, "Failure")).To(BeZero())
	})
	row("§5 run starts", "of the same generation, Successful is not touched", func(ctx context.Context) {
		before := len(w.seen.during("good", 1)())
		annotate(ctx, w.good, steering+"reconcile-requested-at", `"now"`)
		Eventually(w.seen.during("good", 1)).Should(HaveLen(before + 1))
		again := w.seen.during("good", 1)()[before]
		Expect(harness.ConditionOf(again, "Successful")).To(And(HaveField("Status", "True"), HaveField("Reason", "Successful")))
		Expect(harness.ConditionOf(again, "Failure").Status).To(Equal("False"))
		Eventually(w.Ended(w.good)).Should(Equal(2))
	})
	row("§5 ansibleResult", "summed over all hosts, with the time of completion", func(ctx context.Context) {
		successful, err := w.Condition(w.good, "Successful")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(successful.Result).To(And(HaveKeyWithValue("ok", int64(3)), HaveKeyWithValue("changed", int64(2)), HaveKeyWithValue("skipped", int64(11)), HaveKeyWithValue("failures", int64(0)),
			HaveKeyWithValue("completion", MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00$`))))
	})
	row("§5 others' conditions, §6 status and labels", "and custom keys survive byte for byte; neither they nor labels trigger", func(ctx context.Context) {
		w.Settles(w.good, 2)
		theirs := map[string]any{"type": "BackupDone", "status": "True", "own": map[string]any{"deep": []any{int64(1), 2.5, nil, "x"}}}
		changes := `[{"op": "add", "path": "/status/conditions/0", "value": {"type": "BackupDone", "status": "True", "own": {"deep": [1, 2.5, null, "x"]}}},
			{"op": "add", "path": "/status/endpoint", "value": {"port": 3306, "ratio": 0.5}}]`
		Expect(k8s.Status().Patch(ctx, w.good, client.RawPatch(types.JSONPatchType, []byte(changes)))).To(Succeed())
		patch(ctx, w.good, `{"metadata": {"labels": {"any": "label"}}}`)
		Consistently(w.Runs(w.good), site.Calm).Should(Equal(2))
		patch(ctx, w.good, `{"spec": {"new": "generation"}}`)
		Eventually(w.Ended(w.good)).Should(Equal(3))
		Eventually(ctx, w.Condition(w.good, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2))))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.good), w.good)).To(Succeed())
		list, _, err := unstructured.NestedSlice(w.good.Object, "status", "conditions")
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(And(HaveLen(4), ContainElement(Equal(any(theirs)))))
		Expect(w.good.Object["status"]).To(HaveKeyWithValue("endpoint", Equal(map[string]any{"port": int64(3306), "ratio": 0.5})))
	})
	row("§5 observedGeneration, §6 spec", "in each condition and in status; a new generation triggers", func() {
		for _, kind := range []string{"Running", "Successful", "Failure"} {
			Expect(harness.ConditionOf(w.good, kind)).To(HaveField("Generation", int64(2)), kind)
		}
		Expect(w.good.Object["status"]).To(HaveKeyWithValue("observedGeneration", int64(2)))
	})
	row("§5 failure", "all three conditions, with reason, message and ansibleResult", func(ctx context.Context) {
		Eventually(ctx, w.Condition(w.plain, "Failure")).Should(And(
			HaveField("Status", "True"), HaveField("Reason", "Failed"), HaveField("Result", HaveKeyWithValue("failures", int64(1)))))
		Eventually(ctx, w.Condition(w.plain, "Running")).Should(And(HaveField("Status", "False"), HaveField("Reason", "Failed")))
		Expect(w.Condition(w.plain, "Successful")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "Failed")))
	})
	row("§5 message", "names play, task, host and Ansible's msg, and is the same for the same failure", func() {
		Eventually(w.Failed(w.plain)).Should(BeNumerically(">=", 2))
		messages := map[string]bool{}
		for _, cr := range w.seen.of("plain") {
			if failure := harness.ConditionOf(cr, "Failure"); failure.Status == "True" {
				messages[failure.Message] = true
			}
		}
		Expect(messages).To(Equal(map[string]bool{"play [Deeds], task [Fail plainly], host [localhost]: it went wrong": true}))
	})
	row("§5 message", "no word of the task, no_log, at most 4 KiB of whole characters", func(ctx context.Context) {
		said := map[string]string{}
		var all []*unstructured.Unstructured
		for _, how := range []string{"silent", "hidden", "long"} {
			all = append(all, w.deed(ctx, how, map[string]any{"how": how}))
		}
		for _, cr := range all {
			Eventually(ctx, w.Condition(cr, "Failure")).Should(HaveField("Status", "True"))
			failure, err := w.Condition(cr, "Failure")(ctx)
			Expect(err).NotTo(HaveOccurred())
			said[cr.GetName()] = failure.Message
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
		}
		Expect(said["silent"]).To(MatchRegexp(`task \[Fail without a word\], host \[localhost\]: .*(Unknown error|unknown playbook failure)`), "newer versions of Ansible have words of their own")
		Expect(said["hidden"]).To(And(ContainSubstring("task [Fail in secret]"), Not(ContainSubstring("canary"))))
		Expect(said["long"]).To(ContainSubstring("äää"))
		Expect(len(said["long"])).To(BeNumerically("<=", 4<<10))
		Expect(utf8.ValidString(said["long"])).To(BeTrue())
	})
}

// transitions looks at when a condition said that it had changed, in all states seen.
func transitions(states []*unstructured.Unstructured, kind string) (changes int, faults []string) {
	var before map[string]any
	for _, cr := range states {
		list, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
		for _, item := range list {
			now, _ := item.(map[string]any)
			if now["type"] != kind {
				continue
			}
			if before != nil && (before["status"] == now["status"]) != (before["lastTransitionTime"] == now["lastTransitionTime"]) {
				// Times are told in seconds: two changes may be told by the same one.
				if before["status"] == now["status"] {
					faults = append(faults, fmt.Sprintf("%s: %v → %v", cr.GetName(), before, now))
				}
			}
			if before != nil && before["lastTransitionTime"] != now["lastTransitionTime"] {
				changes++
			}
			before = now
		}
	}
	return changes, faults
}

func stopRows(w *deeds) {
	row("§5 lastTransitionTime", "moves exactly when status changes", func() {
		moved := map[string]int{}
		for _, name := range w.seen.names() {
			for _, kind := range []string{"Running", "Successful", "Failure"} {
				changes, faults := transitions(w.seen.of(name), kind)
				Expect(faults).To(BeEmpty())
				moved[kind] += changes
			}
		}
		Expect(moved).To(And(HaveKeyWithValue("Running", BeNumerically(">", 2)), HaveKeyWithValue("Successful", BeNumerically(">", 2))))
	})
	row("§5 canceled", "Running is False with reason Canceled, the rest stays", func(ctx context.Context) {
		w.hang = w.deed(ctx, "hang", map[string]any{"how": "good"})
		Eventually(ctx, w.Condition(w.hang, "Successful")).Should(HaveField("Status", "True"))
		patch(ctx, w.hang, `{"spec": {"how": "wait"}}`)
		Eventually(w.Log).Should(MatchRegexp(`TASK|run started.*hang.*"generation": 2`))
		Eventually(ctx, w.Condition(w.hang, "Running")).Should(And(HaveField("Reason", "Running"), HaveField("Generation", int64(2))))
		started := w.hang.DeepCopy()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.hang), started)).To(Succeed())
		Expect(w.Stop()).To(Succeed())
		Expect(w.Condition(w.hang, "Running")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "Canceled")))
		for _, kind := range []string{"Successful", "Failure"} {
			Expect(w.Condition(w.hang, kind)(ctx)).To(Equal(harness.ConditionOf(started, kind)), kind)
		}
	})
	row("§6 restart, §6 restart order", "what is settled is left alone; deletions go first, new generations next, the rest then", func(ctx context.Context) {
		leaving := w.custom("Deed", "leaving", map[string]any{"how": "good"})
		leaving.SetFinalizers([]string{"deeds.example.com/finalizer"})
		w.Create(ctx, leaving)
		Expect(k8s.Delete(ctx, leaving)).To(Succeed())
		patch(ctx, w.hang, `{"spec": {"how": "good"}}`)
		annotate(ctx, w.plain, steering+"paused", "null")
		w.Options.Args = append(w.Options.Args, "--max-concurrent-runs=1", "--max-concurrent-reconciles=1")
		w.Start(ctx, "Deed", "Loose", "Tick")
		var order []string
		Eventually(func() ([]string, error) {
			text, err := w.Log()
			order = nil
			for _, found := range regexp.MustCompile(`run started.*"cr": "[^"/]*/([^"]*)"`).FindAllStringSubmatch(text, -1) {
				order = append(order, found[1])
			}
			return order, err
		}).Should(ContainElement("plain"))
		Expect(order[:2]).To(Equal([]string{"leaving", "hang"}))
		Expect(order).NotTo(ContainElement("good"))
	})
}
