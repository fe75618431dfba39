package contract

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	heatWatches = `
- {group: heat.example.com, version: v1, kind: Hot, playbook: ping.yml, verbosity: 1}
- {group: heat.example.com, version: v1, kind: Warm, role: ping}
- {group: heat.example.com, version: v1, kind: Chill, playbook: ping.yml, warm: false}
`
	pingTasks = `[{ping: }]`
	pingPlay  = `[{hosts: localhost, gather_facts: false, tasks: ` + pingTasks + `}]`
)

// heat is a site with kinds whose runs are warm, and one whose runs are not.
type heat struct{ *site.Site }

func newHeat(ctx context.Context, environ []string, args ...string) heat {
	GinkgoHelper()
	h := heat{ground.Site(ctx, map[string]string{"watches.yaml": heatWatches, "ping.yml": pingPlay, "roles/ping/tasks/main.yml": pingTasks})}
	h.Options.Args = append(h.Options.Args, append([]string{"--max-verbosity=7"}, args...)...)
	h.Options.Env = slices.Concat(h.Options.Env, []string{"ANSIBLE_GATHERING=explicit"}, environ)
	h.Start(ctx, "Hot", "Warm", "Chill")
	return h
}

// counted is how many runs of a kind have ended in a mode.
func (h heat) counted(ctx context.Context, kind, mode string) int {
	GinkgoHelper()
	text, err := h.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`ansible_operator_runs_total\{GVK="heat.example.com/v1, Kind=` + kind + `",mode="` + mode + `"\} (\d+)`).FindStringSubmatch(text)
	Expect(found).To(HaveLen(2), "%s %s", kind, mode)
	n, err := strconv.Atoi(found[1])
	Expect(err).NotTo(HaveOccurred())
	return n
}

// runAgain runs the CR once more, which has run so many times before.
func (h heat) runAgain(ctx context.Context, cr client.Object, before int) {
	GinkgoHelper()
	annotate(ctx, cr, steering+"reconcile-requested-at", fmt.Sprintf("%q", strconv.Itoa(before)))
	Eventually(ctx, h.Ended(cr)).Should(BeNumerically(">", before))
}

// runUntil runs the CR again and again until a run of its kind was in that mode.
func (h heat) runUntil(ctx context.Context, cr client.Object, mode string) {
	GinkgoHelper()
	runs := 0
	Eventually(ctx, func(ctx context.Context) int {
		h.runAgain(ctx, cr, runs)
		runs++
		return h.counted(ctx, cr.GetObjectKind().GroupVersionKind().Kind, mode)
	}).Should(BeNumerically(">", 0))
}

// servers lists the command lines of those for warm runs.
func (h heat) servers() []string {
	GinkgoHelper()
	found, err := harness.ProcessesOf(h.RunDir())
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	for _, p := range found {
		if p.Server {
			lines = append(lines, p.CommandLine)
		}
	}
	return lines
}

var _ = Describe("warm runs", Ordered, func() {
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "heat.example.com", Kind: name} }
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(kind("Hot")), harness.Definition(kind("Warm")), harness.Definition(kind("Chill")))
	})

	row("§1 warm, §2 --warm-servers", "one set of servers has the runs of all watches, but of those with warm: false", func(ctx context.Context) {
		h := newHeat(ctx, nil, "--warm=true", "--warm-servers=1")
		hot, warm, chill := harness.Custom(kind("Hot"), h.Namespace, "a", nil), harness.Custom(kind("Warm"), h.Namespace, "b", nil), harness.Custom(kind("Chill"), h.Namespace, "c", nil)
		warm.SetAnnotations(map[string]string{steering + "verbosity": "4"})
		h.Create(ctx, hot)
		h.runUntil(ctx, hot, "warm")
		h.Create(ctx, warm, chill)
		h.runUntil(ctx, warm, "warm")
		h.runUntil(ctx, chill, "cold")
		Expect(h.counted(ctx, "Chill", "warm")).To(BeZero())
		Expect(filepath.Glob(filepath.Join(h.RunDir(), ".warm", "*"))).To(HaveLen(1))
		Eventually(h.servers).Should(HaveLen(2), "a fork is like its server for a moment")
		Expect(h.Stop()).To(Succeed())
		Expect(h.servers()).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join(h.RunDir(), ".warm*"))).To(BeEmpty())
	})

	row("§2 --warm, §9 watch_cold", "runs are warm whatever the manager's environment says of a locale", func(ctx context.Context) {
		h := newHeat(ctx, []string{"LC_ALL=xx_XX.UTF-8"}, "--warm=true")
		hot := harness.Custom(kind("Hot"), h.Namespace, "a", nil)
		h.Create(ctx, hot)
		for before := range 23 {
			h.runAgain(ctx, hot, before)
		}
		Expect(h.counted(ctx, "Hot", "warm")).To(BeNumerically(">=", 19), "at least 95 % of those after the first three")
		Expect(h.Metrics(ctx)).To(ContainSubstring(`ansible_operator_watch_cold{GVK="heat.example.com/v1, Kind=Hot"} 0`))
		Expect(h.Log()).To(MatchRegexp(`WARNING: runs have the locale C.UTF-8.*LC_ALL`))
	})

	row("§2 --warm", "false: no servers, and all runs are cold", func(ctx context.Context) {
		h := newHeat(ctx, nil, "--warm=false")
		hot := harness.Custom(kind("Hot"), h.Namespace, "a", nil)
		h.Create(ctx, hot)
		h.runUntil(ctx, hot, "cold")
		Expect(h.counted(ctx, "Hot", "warm")).To(BeZero())
		Expect(h.servers()).To(BeEmpty())
		Expect(h.Metrics(ctx)).NotTo(ContainSubstring("ansible_operator_warm_fallbacks_total"))
	})

	row("§2 --warm-servers", "there may be 1 to 64 sets", func(ctx context.Context) {
		s := ground.Site(ctx, map[string]string{"watches.yaml": heatWatches})
		s.Options.Args = []string{"--warm-servers=0"}
		code, said := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		Expect(said).To(MatchRegexp(`--warm-servers.*1`))
	})
})
