package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const forgedWatches = `
- {group: forged.example.com, version: v1, kind: Claimed, playbook: work.yml, finalizer: {name: forged.example.com/finalizer, playbook: bye.yml}}
`

const forgedWork = `
- hosts: localhost
  gather_facts: false
  tasks:
  - {ansible.builtin.fail: {msg: as asked}, when: how | default('') == 'bad'}
`

// What somebody who may write a CR's status makes a manager believe that starts after that: the
// table in docs/security.md says so much and no more.
var _ = Describe("a forged status", Ordered, func() {
	var s *site.Site
	kind := kindOf("forged", "Claimed")
	customs := map[string]*unstructured.Unstructured{}
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(kind))
		s = ground.Site(ctx, map[string]string{"watches.yaml": forgedWatches, "work.yml": forgedWork, "bye.yml": "- {hosts: localhost, gather_facts: false, tasks: []}\n"})
		s.Options.Args = append(s.Options.Args, "--zap-log-level=debug")
		s.Start(ctx, kind.Kind)
		for _, name := range []string{"good", "bad", "edited", "due", "running", "torn", "guessed", "goes"} {
			spec := map[string]any{}
			if name == "bad" {
				spec["how"] = "bad"
			}
			cr := harness.Custom(kind, s.Namespace, name, spec)
			if name == "due" {
				cr.SetAnnotations(map[string]string{steering + "reconcile-period": "10s"})
			}
			customs[name] = cr
			s.Create(ctx, cr)
		}
		for _, cr := range customs {
			s.Outcome(ctx, cr)
		}
	})
	// live reads the CR as it stands.
	live := func(ctx context.Context, name string) *unstructured.Unstructured {
		GinkgoHelper()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(customs[name]), customs[name])).To(Succeed())
		return customs[name]
	}
	// forge writes the CR's status with these values.
	forge := func(ctx context.Context, name string, status, values map[string]any) {
		GinkgoHelper()
		status = (&unstructured.Unstructured{Object: status}).DeepCopy().Object
		maps.Copy(status, values)
		text, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/status", "value": status}})
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Status().Patch(ctx, customs[name].DeepCopy(), client.RawPatch(types.JSONPatchType, text))).To(Succeed())
	}
	statusOf := func(ctx context.Context, name string) map[string]any {
		GinkgoHelper()
		status, _, err := unstructured.NestedMap(live(ctx, name).Object, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(HaveKey("contentDigest"))
		return status
	}

	It("changes nothing for a running manager: failed runs are repeated, and reported again", func(ctx context.Context) {
		forge(ctx, "bad", statusOf(ctx, "good"), nil)
		before, err := s.Failed(customs["bad"])()
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.Failed(customs["bad"])).Should(BeNumerically(">", before))
		Eventually(s.Condition(customs["bad"], "Failure")).WithContext(ctx).Should(HaveField("Message", ContainSubstring("as asked")))
	})

	It("keeps a CR from a run at a restart, until its period or its next change; its deletion runs the finalizer all the same", func(ctx context.Context) {
		Expect(s.Stop()).To(Succeed())
		success := statusOf(ctx, "good")
		forge(ctx, "bad", success, nil)
		patch(ctx, live(ctx, "edited"), `{"spec": {"how": "bad"}}`)
		forge(ctx, "edited", success, map[string]any{"observedGeneration": live(ctx, "edited").GetGeneration()})
		due := statusOf(ctx, "due")
		result := due["conditions"].([]any)
		for _, condition := range result {
			if fields, ok := condition.(map[string]any)["ansibleResult"].(map[string]any); ok {
				fields["completion"] = "2999-01-01T00:00:00.0+00:00"
			}
		}
		forge(ctx, "due", due, nil)
		forge(ctx, "guessed", success, map[string]any{"contentDigest": "0000"})
		forge(ctx, "torn", map[string]any{"conditions": "Successful", "contentDigest": int64(7), "observedGeneration": "1"}, nil)
		forge(ctx, "running", success, map[string]any{"conditions": []any{map[string]any{"type": "Running", "status": "True", "reason": "Running"}}})
		Expect(k8s.Delete(ctx, live(ctx, "goes"))).To(Succeed())
		forge(ctx, "goes", success, map[string]any{"observedGeneration": live(ctx, "goes").GetGeneration()})
		s.Start(ctx, kind.Kind)

		By("running the finalizer, and each version whose success the status does not prove")
		ground.Gone(ctx, customs["goes"])
		Expect(s.Log()).To(MatchRegexp(`run started.*/goes".*"reason": "deleted"`))
		for _, name := range []string{"guessed", "torn", "running"} {
			Eventually(s.Ended(customs[name])).Should(Equal(1), name)
		}
		By("waiting no longer than its period, though it ended in the future")
		Eventually(s.Ended(customs["due"])).Should(BeNumerically(">=", 1))
		By("taking no other CR for done or not done than those of the forged status")
		for _, name := range []string{"good", "bad", "edited"} {
			Eventually(s.Log).Should(MatchRegexp(`nothing changed since its last run.*/` + name))
			Expect(s.Runs(customs[name])()).To(BeZero(), name)
		}
		By("running a CR at its next change, and reporting the forged status")
		patch(ctx, customs["bad"], `{"spec": {"again": true}}`)
		Eventually(s.Condition(customs["bad"], "Failure")).WithContext(ctx).Should(HaveField("Message", ContainSubstring("as asked")))
	})

	It("does not make a manager with other content believe that this content has run", func(ctx context.Context) {
		Expect(s.Stop()).To(Succeed())
		success := statusOf(ctx, "good")
		for _, name := range []string{"bad", "edited", "torn"} {
			forge(ctx, name, success, map[string]any{"observedGeneration": live(ctx, name).GetGeneration()})
		}
		Expect(os.WriteFile(filepath.Join(s.Options.Project, "work.yml"), fmt.Appendf(nil, "%s# another release\n", forgedWork), 0o600)).To(Succeed())
		s.Start(ctx, kind.Kind)
		for _, name := range []string{"good", "torn"} {
			Eventually(s.Ended(customs[name])).Should(Equal(1), name)
		}
		for _, name := range []string{"bad", "edited"} {
			Eventually(s.Failed(customs[name])).Should(BeNumerically(">=", 1), name)
			Eventually(s.Condition(customs[name], "Failure")).WithContext(ctx).Should(HaveField("Status", "True"), name)
		}
	})
})
