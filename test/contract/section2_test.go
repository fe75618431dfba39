package contract

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

func environmentRows(w *settings) {
	row("§2 --watches-file", "names the file, relative to the working directory", func() {
		Expect(os.ReadFile(filepath.Join(w.Options.Project, "watches.yaml"))).To(BeEmpty())
	})
	row("§2 --ansible-args", "quoted as for a shell", func() {
		Expect(lastSaid(w.Site, w.one, 1).Vars).To(HaveKeyWithValue("spoken", "two words"))
	})
	row("§2 ANSIBLE_GATHERING", "explicit: a role runs without facts", func() {
		Expect(lastSaid(w.Site, w.one, 1).Facts).To(BeZero())
		Expect(w.Log()).NotTo(ContainSubstring("Gathering Facts"))
	})
	row("§2 ANSIBLE_INVENTORY", "a directory, with its group_vars, of which the run has a copy", func() {
		run := lastSaid(w.Site, w.one, 1)
		Expect(run.Groups).To(ContainElement("crew"))
		Expect(run.Vars).To(HaveKeyWithValue("shift", "night"))
	})
	row("§2 environment of runs", "the manager's, without KUBERNETES_SERVICE_* and --drop-env", func() {
		run := lastSaid(w.Site, w.one, 1)
		Expect(run.Environment).To(ContainElements("RELATED_IMAGE_DB=registry.example.com/db:1", "OWN=sesame-4711", "WATCH_NAMESPACE="+w.Namespace))
		Expect(run.Environment).NotTo(ContainElement(Or(HavePrefix("KUBERNETES_SERVICE_"), HavePrefix("DROPPED="), HavePrefix("ALSO_DROPPED="))))
		Expect(run.Environment).To(ContainElement(HavePrefix("PYTHONPATH=" + filepath.Join(w.RunDir(), ".program", "guard"))))
	})
	row("§2 environment of runs, §2 --drop-env", "the artifact keeps names, no values", func() {
		found, err := filepath.Glob(filepath.Join(w.RunDir(), string(w.one.GetUID()), "artifacts", "*", "command.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		text, err := os.ReadFile(found[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(ContainSubstring(`"watch": "one.example.com/v1, Kind=Thing",`+"\n"+`  "cr": "`+w.Namespace+`/one"`), ContainSubstring(`"OWN"`), ContainSubstring("(the operator's --ansible-args)"), Not(ContainSubstring("sesame-4711")), Not(ContainSubstring("DROPPED"))))
	})
	row("§2 KUBECONFIG of runs, §2 --run-dir", "and K8S_AUTH_KUBECONFIG are the same file of the run", func() {
		run := lastSaid(w.Site, w.one, 1)
		file := filepath.Join(w.RunDir(), string(w.one.GetUID()), "run", "kubeconfig")
		Expect(run.Environment).To(ContainElements("KUBECONFIG="+file, "K8S_AUTH_KUBECONFIG="+file))
	})
	row("§2 ANSIBLE_*", "reach runs: a vault's password, any setting", func() {
		Expect(lastSaid(w.Site, w.one, 1).Environment).To(ContainElements(HavePrefix("ANSIBLE_VAULT_PASSWORD_FILE="), "ANSIBLE_RETRY_FILES_SAVE_PATH=/tmp/retry"))
	})
	row("§2 --ansible-verbosity, §1 verbosity, §2 ANSIBLE_VERBOSITY_, §2 precedence", "the environment goes over the watch, which goes over the flag", func() {
		Expect(lastSaid(w.Site, w.below, 1).Verbosity).To(Equal(1), "the flag's")
		Expect(lastSaid(w.Site, w.bare, 1).Verbosity).To(Equal(3), "the watch's")
		Expect(lastSaid(w.Site, w.one, 1).Verbosity).To(Equal(3), "the environment's, not the watch's 2")
	})
	row("§2 ANSIBLE_VERBOSITY_", "of a kind that is not watched is told", func() {
		Expect(w.Log()).To(MatchRegexp(`WARNING: these environment variables have no effect.*ANSIBLE_VERBOSITY_NOTHING_EXAMPLE_COM`))
	})
	row("§2 --zap-*", "--zap-log-level=debug logs more", func() {
		Expect(w.Log()).To(ContainSubstring("DEBUG"))
	})
}

func annotationRows(w *settings) {
	row("§2 reconcile-requested-at", "any new value: a run now, which the status names", func(ctx context.Context) {
		annotate(ctx, w.one, steering+"reconcile-requested-at", `"first"`)
		Eventually(w.Ended(w.one)).Should(Equal(2))
		Eventually(ctx, func(g Gomega) {
			current := w.one.DeepCopy()
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
			g.Expect(current.Object["status"]).To(HaveKeyWithValue("reconcileRequestedAt", "first"))
		}).Should(Succeed())
		annotate(ctx, w.one, "example.com/any-other", `"value"`)
		Consistently(w.Runs(w.one), site.Calm).Should(Equal(2))
	})
	row("§1 maxRunnerArtifacts", "so many are kept", func() {
		Eventually(w.Ended(w.one)).Should(Equal(2))
		Eventually(artifactsOf(w, w.one)).Should(HaveLen(1))
	})
	row("§2 verbosity, §2 --max-verbosity, §2 precedence", "the annotation goes over all, up to --max-verbosity", func(ctx context.Context) {
		annotate(ctx, w.one, steering+"verbosity", `"7"`)
		Expect(lastSaid(w.Site, w.one, 3).Verbosity).To(Equal(5))
	})
	row("§2 reconcile-period, §2 precedence", "over the watch; raised to 10 s", func(ctx context.Context) {
		annotate(ctx, w.realm, steering+"reconcile-period", `"1s"`)
		Eventually(comesAgain(w.Site, w.realm)).Should(Equal("10s"))
		annotate(ctx, w.realm, steering+"reconcile-period", `"0s"`)
		Eventually(comesAgain(w.Site, w.realm)).Should(Equal("0s"))
	})
	row("§2 max-runner-artifacts", "0 keeps all", func(ctx context.Context) {
		before, err := w.Ended(w.one)()
		Expect(err).NotTo(HaveOccurred())
		annotate(ctx, w.one, steering+"max-runner-artifacts", `"0"`)
		Eventually(w.Ended(w.one)).Should(Equal(before + 1))
		Eventually(artifactsOf(w, w.one)).Should(HaveLen(2))
	})
	row("§2 reconcile-period", "a bad value is a Failure that says so, and no loop", func(ctx context.Context) {
		runs := w.Calms(w.bare)
		annotate(ctx, w.two, steering+"reconcile-period", `"often"`)
		Eventually(ctx, w.Condition(w.two, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "InvalidAnnotation"), HaveField("Message", ContainSubstring(`invalid duration "often"`))))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.two), w.two)).To(Succeed())
		Consistently(ctx, versionOf(w.two), site.Calm).Should(Equal(w.two.GetResourceVersion()))
		Expect(w.Runs(w.bare)()).To(Equal(runs))
		annotate(ctx, w.two, steering+"reconcile-period", "null")
		Eventually(ctx, w.Condition(w.two, "Successful")).Should(HaveField("Status", "True"))
	})
	row("§1 watchAnnotationsChanges, §6 annotations", "any annotation triggers where the watch asks for it", func(ctx context.Context) {
		before := w.Calms(w.two)
		annotate(ctx, w.two, "example.com/any-other", `"value"`)
		Eventually(w.Ended(w.two)).Should(Equal(before + 1))
		annotate(ctx, w.two, steering+"reconcile-perod", `"1h"`)
		Eventually(w.Log).Should(MatchRegexp(`WARNING: these annotations.*"cr": "[^"]*/two".*reconcile-perod.*"nearest": "[^"]*/reconcile-period"`))
	})
	row("§2 paused", "no runs; Running is False with reason Paused, the rest stays; then a run", func(ctx context.Context) {
		before := w.Calms(w.two)
		annotate(ctx, w.two, steering+"paused", `"true"`)
		Eventually(ctx, w.Condition(w.two, "Running")).Should(And(HaveField("Status", "False"), HaveField("Reason", "Paused")))
		patch(ctx, w.two, `{"spec": {"size": 5}}`)
		Eventually(ctx, w.Condition(w.two, "Running")).Should(HaveField("Generation", w.two.GetGeneration()))
		Consistently(w.Runs(w.two), site.Calm).Should(Equal(before))
		Expect(w.Condition(w.two, "Successful")(ctx)).To(HaveField("Status", "True"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.two), w.two)).To(Succeed())
		Expect(w.two.Object["status"]).To(HaveKeyWithValue("observedGeneration", w.two.GetGeneration()-1))
		annotate(ctx, w.two, steering+"paused", "null")
		Expect(lastSaid(w.Site, w.two, before+1).Vars).To(HaveKeyWithValue("size", 5.0))
	})
}

// artifactsOf are the artifacts that are kept of a CR.
func artifactsOf(w *settings, cr client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		return filepath.Glob(filepath.Join(w.RunDir(), string(cr.GetUID()), "artifacts", "*"))
	}
}

func versionOf(object client.Object) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		current, ok := object.DeepCopyObject().(client.Object)
		Expect(ok).To(BeTrue())
		err := k8s.Get(ctx, client.ObjectKeyFromObject(object), current)
		return current.GetResourceVersion(), err
	}
}

func selectorRows(w *settings) {
	row("§1 selector", "gaining the labels triggers, losing them stops", func(ctx context.Context) {
		Expect(w.Calms(w.packed)).To(Equal(1), "since it gained its label")
		patch(ctx, w.packed, `{"metadata": {"labels": {"on": "no"}}}`)
		patch(ctx, w.packed, `{"spec": {"size": 4}}`)
		Consistently(w.Runs(w.packed), site.Calm).Should(Equal(1))
	})
	row("§1 selector finalizer", "without its labels it is finalized all the same", func(ctx context.Context) {
		Expect(k8s.Delete(ctx, w.packed)).To(Succeed())
		ground.Gone(ctx, w.packed)
		Expect(lastSaid(w.Site, w.packed, 2)).To(HaveField("Phase", "final"))
	})
}

func endingRows(w *settings) {
	row("§1 finalizer content", "the watch's own, with the finalizer's vars", func(ctx context.Context) {
		before := w.Calms(w.one)
		Expect(k8s.Delete(ctx, w.one)).To(Succeed())
		ground.Gone(ctx, w.one)
		Expect(lastSaid(w.Site, w.one, before+1)).To(And(HaveField("Phase", "final"), HaveField("Role", HaveSuffix("/roles/own"))))
	})
	row("§1 finalizer role, §2 paused", "a role of its own, with vars, of a paused CR too", func(ctx context.Context) {
		before := w.Calms(w.two)
		annotate(ctx, w.two, steering+"paused", `"true"`)
		Eventually(ctx, w.Condition(w.two, "Running")).Should(HaveField("Reason", "Paused"))
		Expect(k8s.Delete(ctx, w.two)).To(Succeed())
		ground.Gone(ctx, w.two)
		Expect(lastSaid(w.Site, w.two, before+1)).To(And(HaveField("Phase", "away"), HaveField("Role", HaveSuffix("/roles/bye"))))
	})
}
