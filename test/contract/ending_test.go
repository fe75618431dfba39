package contract

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const endingWatches = `
- {group: ending.example.com, version: v1, kind: Sleeper, playbook: sleep.yml}
- {group: ending.example.com, version: v1, kind: Late, playbook: sleep.yml, references: [{version: v1, kind: Secret, name: spec.secret}, {version: v1, kind: Secret, name: spek.secret}]}
`

// sleepPlay lets a gate know that it sleeps, and ignores TERM then, unless the CR is quick.
const sleepPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Sleep on
    ansible.builtin.shell: |
      trap '' TERM
      touch "$KEEP/{{ ansible_operator_meta.name }}.asleep"
      while :; do sleep 1; done
    when: not quick | default(false)
`

var _ = Describe("the end of a manager", Ordered, func() {
	var (
		s             *site.Site
		sleeper, late = schema.GroupKind{Group: "ending.example.com", Kind: "Sleeper"}, schema.GroupKind{Group: "ending.example.com", Kind: "Late"}
		first, second *unstructured.Unstructured
	)
	waiting := func(ctx context.Context, want int) {
		GinkgoHelper()
		Eventually(ctx, s.Metrics).Should(ContainSubstring(fmt.Sprintf("ansible_operator_waiting_runs{GVK=\"ending.example.com/v1, Kind=Sleeper\"} %d\n", want)))
	}
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(sleeper), harness.Definition(schema.GroupKind{Group: late.Group, Kind: "Later"}))
		s = ground.Site(ctx, map[string]string{"watches.yaml": endingWatches, "sleep.yml": sleepPlay})
		s.Options.Env = append(s.Options.Env, "KEEP="+s.Dir)
		s.Options.Args = append(s.Options.Args, "--max-concurrent-runs=2", "--graceful-shutdown-timeout=10m")
		s.Start(ctx, "Sleeper")
		first, second = harness.Custom(sleeper, s.Namespace, "first", nil), harness.Custom(sleeper, s.Namespace, "second", nil)
	})

	row("§12 missing kind", "the others go on; it is looked for again", func(ctx context.Context) {
		Eventually(s.Log).Should(MatchRegexp(`WARNING.*not served.*Kind=Late".*"servedInstead": \["ending.example.com/v1, Kind=Later"\]`))
		s.Create(ctx, first)
		Eventually(s.Runs(first)).Should(Equal(1))
		ground.Define(ctx, harness.Definition(late))
		Expect(s.Ready(ctx, "Late")).To(Succeed())
		Eventually(s.Log).Should(MatchRegexp(`WARNING: a path of references leads to a field.*"path": "spek.secret", "field": "spek"`))
	})

	row("§2 --max-concurrent-runs", "a kind whose runs take for ever leaves a slot to others, and a CR that is deleted gives its place up", func(ctx context.Context) {
		third, quick := harness.Custom(sleeper, s.Namespace, "third", nil), harness.Custom(late, s.Namespace, "quick", map[string]any{"quick": true})
		s.Create(ctx, third)
		waiting(ctx, 1)
		s.Create(ctx, quick)
		Eventually(s.Ended(quick)).Should(Equal(1))
		Expect(s.Metrics(ctx)).To(ContainSubstring(`ansible_operator_live_runs{GVK="ending.example.com/v1, Kind=Sleeper"} 1`))
		Expect(s.Condition(third, "Running")(ctx)).To(Equal(harness.Condition{}))
		Expect(k8s.Delete(ctx, third)).To(Succeed())
		waiting(ctx, 0)
	})

	row("§12 SIGTERM, §2 --graceful-shutdown-timeout",
		"no new runs, the live one ended whatever the grace period, its status written, exit 0", func(ctx context.Context) {
			Eventually(os.Stat).WithArguments(filepath.Join(s.Dir, "first.asleep")).Should(Not(BeNil()))
			s.Create(ctx, second)
			waiting(ctx, 1)
			Expect(s.Processes()).NotTo(BeEmpty())
			Expect(syscall.Kill(s.PID(), syscall.SIGTERM)).To(Succeed())
			begun := time.Now()
			Eventually(s.Processes).Should(BeEmpty())
			Eventually(s.Manager.Ended()).Should(BeClosed())
			AddReportEntry("from SIGTERM to the end", time.Since(begun).String())
			Expect(s.ExitCode()).To(BeZero())
			Expect(s.Condition(first, "Running")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "Canceled")))
			Expect(s.Condition(first, "Successful")(ctx)).To(HaveField("Reason", "Running"), "what it said when the run began")
			Expect(s.Condition(first, "Failure")(ctx)).To(Equal(harness.Condition{}))
			Expect(s.Runs(second)()).To(BeZero())
			Expect(s.Condition(second, "Running")(ctx)).To(Equal(harness.Condition{}))
		})
})
