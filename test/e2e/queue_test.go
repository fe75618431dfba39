package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// notePlay keeps the name of each CR that it runs for in a ConfigMap.
const notePlay = "playbooks/note.yml"

// versions returns the resourceVersion of each object, by name.
func versions(ctx context.Context, objects ...*unstructured.Unstructured) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, object := range objects {
		Expect(fetch(ctx, object)).To(Succeed())
		found[object.GetName()] = object.GetResourceVersion()
	}
	return found
}

var _ = Describe("a restart", func() {
	const watchNotes = "- {group: test.ensign.io, version: v1, kind: Note, playbook: playbooks/note.yml}\n"

	It("runs what changed, and again what runs with other content, and leaves the rest alone", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		settled := custom("Note", namespace, "settled", map[string]any{"text": "one"})
		edited := custom("Note", namespace, "edited", map[string]any{"text": "one"})
		Expect(k8s.Create(ctx, settled)).To(Succeed())
		Expect(k8s.Create(ctx, edited)).To(Succeed())
		collections := GinkgoT().TempDir()
		install(collections, "1.0.0")
		options := managerOptions{
			namespace: namespace, args: []string{"--zap-log-level=debug"}, env: []string{"ANSIBLE_COLLECTIONS_PATH=" + collections},
			dir: projectWith(watchNotes, map[string]string{notePlay: readProject(notePlay)}),
		}

		By("bringing both to success")
		m := startManager(options).ready("Note")
		expectSuccess(ctx, settled)
		expectSuccess(ctx, edited)
		m.stop()

		By("changing one of them while no manager runs")
		before := versions(ctx, settled)
		edited.Object["spec"] = map[string]any{"text": "two"}
		edited.SetResourceVersion("")
		Expect(k8s.Patch(ctx, edited, client.Merge)).To(Succeed())
		m = startManager(options).ready("Note")
		expectSuccess(ctx, edited)
		m.logged(fmt.Sprintf(`nothing changed since its last run.*%s/settled`, namespace))
		Expect(m.startsOf(namespace + "/edited")).To(Equal(1))
		Expect(m.startsOf(namespace + "/settled")).To(BeZero())
		Expect(versions(ctx, settled)).To(Equal(before))
		m.stop()

		By("changing the playbook")
		Expect(os.WriteFile(filepath.Join(options.dir, notePlay), []byte(readProject(notePlay)+"# another release\n"), 0o600)).To(Succeed())
		m = startManager(options).ready("Note")
		expectRuns(ctx, m, settled, edited)
		m.stop()

		By("installing another version of a collection")
		install(collections, "1.0.1")
		m = startManager(options).ready("Note")
		expectRuns(ctx, m, settled, edited)
	})
})

// install makes a collection of that version in a directory of collections.
func install(dir, version string) {
	GinkgoHelper()
	collection := filepath.Join(dir, "ansible_collections", "my", "own")
	Expect(os.MkdirAll(collection, 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(collection, "MANIFEST.json"), []byte(`{"collection_info": {"version": "`+version+`"}}`), 0o600)).To(Succeed())
}

// expectRuns waits until each CR has had one run of the manager's, whose result is told.
func expectRuns(ctx context.Context, m *manager, crs ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, cr := range crs {
		Eventually(func() int { return m.startsOf(cr.GetNamespace() + "/" + cr.GetName()) }).Should(Equal(1))
		Eventually(ctx, conditionOf(cr, "Running")).Should(HaveField("Reason", "Successful"))
	}
}

var _ = Describe("a kind whose runs take for ever", func() {
	const watchBoth = `- {group: test.ensign.io, version: v1, kind: Slow, playbook: playbooks/slow.yml}
- {group: test.ensign.io, version: v1, kind: Note, playbook: playbooks/note.yml}
`

	It("leaves a slot to the others, and a CR that is deleted gives its place up", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		const slow = "playbooks/slow.yml"
		m := startManager(managerOptions{
			namespace: namespace, args: []string{"--max-concurrent-runs=2", "--max-concurrent-reconciles=3"},
			dir: projectWith(watchBoth, map[string]string{slow: readProject(slow), notePlay: readProject(notePlay)}),
		}).ready("Slow", "Note")
		gauge := func(name string) func() (string, error) {
			return func() (string, error) {
				text, err := m.Metrics(ctx)
				return lineWith(text, fmt.Sprintf(`ansible_operator_%s{GVK="test.ensign.io/v1, Kind=Slow"} `, name)), err
			}
		}
		var sleepers []*unstructured.Unstructured
		for i := range 3 {
			sleeper := custom("Slow", namespace, fmt.Sprintf("slow-%d", i), nil)
			Expect(k8s.Create(ctx, sleeper)).To(Succeed())
			sleepers = append(sleepers, sleeper)
		}
		Eventually(gauge("live_runs")).Should(Equal("1"))
		Eventually(gauge("waiting_runs")).Should(Equal("2"))

		for i := range 3 {
			note := custom("Note", namespace, fmt.Sprintf("note-%d", i), map[string]any{"text": "quick"})
			Expect(k8s.Create(ctx, note)).To(Succeed())
			expectSuccess(ctx, note)
		}
		Expect(gauge("live_runs")()).To(Equal("1"))

		By("deleting the CRs that wait, which say nothing of a run")
		for _, sleeper := range sleepers {
			running, err := conditionOf(sleeper, "Running")(ctx)
			Expect(err).NotTo(HaveOccurred())
			if running.Status == "" {
				Expect(k8s.Delete(ctx, sleeper)).To(Succeed())
			}
		}
		Eventually(gauge("waiting_runs")).Should(Equal("0"))
		Expect(gauge("live_runs")()).To(Equal("1"))
	}, SpecTimeout(3*time.Minute))
})

// lineWith returns what follows the prefix in the first line that begins with it.
func lineWith(text, prefix string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, prefix); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
