package contract

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("results of runs", Ordered, ContinueOnFailure, func() {
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
		Expect(successful.Result).To(And(HaveKeyWithValue("ok", int64(3)), HaveKeyWithValue("changed", int64(2)), HaveKeyWithValue("skipped", int64(13)), HaveKeyWithValue("failures", int64(0)),
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
		Eventually(w.seen.during("good", 2)).ShouldNot(BeEmpty())
		Expect(harness.ConditionOf(w.seen.during("good", 2)()[0], "Successful")).To(And(HaveField("Status", "False"), HaveField("Reason", "Running")))
		Expect(harness.ConditionOf(w.seen.during("good", 2)()[0], "Failure")).To(And(HaveField("Status", "False"), HaveField("Generation", int64(1))))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.good), w.good)).To(Succeed())
		list, _, err := unstructured.NestedSlice(w.good.Object, "status", "conditions")
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(And(HaveLen(5), ContainElement(Equal(any(theirs))))) // With Ready.

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
	row("§5 run starts", "after a failure Failure is not touched", func() {
		Eventually(func() int { return len(w.seen.during("plain", 1)()) }).Should(BeNumerically(">=", 2))
		again := w.seen.during("plain", 1)()[1]
		Expect(harness.ConditionOf(again, "Failure")).To(And(HaveField("Status", "True"), HaveField("Reason", "Failed")))
		Expect(harness.ConditionOf(again, "Successful")).To(And(HaveField("Status", "False"), HaveField("Reason", "Failed")))
	})
	row("§5 message", "names play, task, host and Ansible's msg, and is the same for the same failure", func() {
		Eventually(w.Failed(w.plain)).Should(BeNumerically(">=", 2))
		messages := map[string]bool{}
		for _, cr := range w.seen.of("plain") {
			if failure := harness.ConditionOf(cr, "Failure"); failure.Status == "True" {
				messages[failure.Message] = true
			}
		}
		Expect(messages).To(Equal(map[string]bool{"play [Deeds], task [Fail plainly] (deed.yml:15), host [localhost]: it went wrong": true}))
	})
	row("§5 message", "no word of the task, no_log, at most 4 KiB of whole characters", func(ctx context.Context) {
		said := map[string]string{}
		var all []*unstructured.Unstructured
		for _, how := range []string{"silent", "hidden", "long", "refused"} {
			all = append(all, w.deed(ctx, how, map[string]any{"how": how}))
		}
		for _, cr := range all {
			Eventually(ctx, w.Condition(cr, "Failure")).Should(HaveField("Status", "True"))
			failure, err := w.Condition(cr, "Failure")(ctx)
			Expect(err).NotTo(HaveOccurred())
			said[cr.GetName()] = failure.Message
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
		}
		Expect(said["silent"]).To(MatchRegexp(`task \[Fail without a word\] \(deed.yml:18\), host \[localhost\]: .*(Unknown error|unknown playbook failure)`), "newer versions of Ansible have words of their own")
		Expect(said["hidden"]).To(And(ContainSubstring("task [Fail in secret]"), Not(ContainSubstring("canary"))))
		Expect(said["refused"]).To(MatchRegexp(`task \[Fail at the API\] \(deed.yml:\d+\), host \[localhost\]: .*: ConfigMap "Not_valid" is invalid: metadata.name: `))
		Expect(said["refused"]).NotTo(ContainSubstring(`"kind"`), "what the API server answered is JSON")
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
	row("§6 restart, §6 restart order", "what is settled is left alone; deletions go first, new generations next, the rest then; nothing is left of what went meanwhile", func(ctx context.Context) {
		directory := func(cr client.Object) string { return filepath.Join(w.RunDir(), string(cr.GetUID())) }
		went := read(ctx, w.Namespace, "rescued", w.custom("Deed", "rescued", nil))
		Expect(directory(went)).To(BeADirectory())
		patch(ctx, went, `{"metadata": {"finalizers": null}}`)
		Expect(k8s.Delete(ctx, went)).To(Succeed())
		leaving := w.custom("Deed", "leaving", map[string]any{"how": "good"})
		leaving.SetFinalizers([]string{"deeds.example.com/finalizer"})
		w.Create(ctx, leaving)
		Expect(k8s.Delete(ctx, leaving)).To(Succeed())
		patch(ctx, w.hang, `{"spec": {"how": "good"}}`)
		annotate(ctx, w.plain, steering+"paused", "null")
		settled, err := versionOf(w.good)(ctx)
		Expect(err).NotTo(HaveOccurred())
		args := w.Options.Args
		w.Options.Args = append(slices.Clone(args), "--max-concurrent-runs=1", "--max-concurrent-reconciles=1")
		w.Start(ctx, "Deed", "Loose", "Tick")
		w.Options.Args = args // The next managers need not run one after the other.
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
		Eventually(w.Log).Should(MatchRegexp(`nothing changed since its last run.*/good`))
		Expect(w.Runs(w.good)()).To(BeZero())
		Expect(versionOf(w.good)(ctx)).To(Equal(settled))
		Eventually(func() string { return directory(went) }).ShouldNot(BeADirectory())
		Expect(directory(w.good)).To(BeADirectory())
	})
	row("§6 restart", "other content, or another version of a collection, is a reason to run", func(ctx context.Context) {
		play, err := os.ReadFile(filepath.Join(w.Options.Project, "deed.yml"))
		Expect(err).NotTo(HaveOccurred())
		for name, text := range map[string]string{
			"deed.yml": string(play) + "# another release\n",
			"../more/ansible_collections/my/own/MANIFEST.json": `{"collection_info": {"version": "1.0.1"}}`,
		} {
			Expect(w.Stop()).To(Succeed())
			w.Write(map[string]string{name: text})
			w.Start(ctx, "Deed", "Loose", "Tick")
			Eventually(w.Ended(w.good)).Should(Equal(1), name)
			Eventually(ctx, w.Condition(w.good, "Running")).Should(HaveField("Reason", "Successful"))
		}
	})
}
