package charts

import (
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// requests returns what the API server was asked about a site since the log was opened, by what was asked. Watches,
// leases and informers of the manager are not counted: they do not belong to a run.
func requests(s *site.Site, log audit.Log) map[string]int {
	GinkgoHelper()
	all, err := log.Events("")
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]int{}
	for _, e := range all {
		others := strings.Contains(e.UserAgent, ".test/") || strings.HasPrefix(e.UserAgent, "kube-") || strings.HasPrefix(e.UserAgent, "kwok")
		if others || e.Verb == "watch" || e.Stage != "ResponseComplete" {
			continue
		}
		what := "discovery " + strings.SplitN(e.RequestURI, "?", 2)[0]
		if ref := e.ObjectRef; ref != nil && ref.Resource != "" {
			if ref.Namespace != s.Namespace && ref.Namespace != "" || ref.Resource == "leases" || ref.Namespace == "" && e.Verb == "list" {
				continue
			}
			what = e.Verb + " " + ref.Resource + " " + ref.Subresource
			if strings.Contains(e.RequestURI, "dryRun=") {
				what += " dry run"
			}
		}
		counts[what]++
	}
	return counts
}

// sum adds up the counts, and writes them into the log.
func sum(step string, counts map[string]int) (all int) {
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		all += counts[what]
		GinkgoWriter.Printf("%-10s %3d %s\n", step, counts[what], what)
	}
	GinkgoWriter.Printf("%-10s %3d requests\n", step, all)
	return all
}

var _ = Describe("the requests of a run", Serial, func() {
	It("are few", func(ctx context.Context) {
		s := operator(ctx, "hello")
		s.Start(ctx, hello.Kind)
		warm := harness.Custom(hello, s.Namespace, "warm", map[string]any{"replicaCount": int64(1)})
		s.Create(ctx, warm)
		Expect(s.Outcome(ctx, warm)).To(HaveField("Reason", "Successful"))
		s.Settles(warm, 1)

		cr := harness.Custom(hello, s.Namespace, "counted", map[string]any{"replicaCount": int64(1)})
		counts := map[string]int{}
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"install", func() { s.Create(ctx, cr); succeeded(ctx, s, cr) }},
			{"upgrade", func() { change(ctx, cr, `{"spec":{"replicaCount":2}}`); succeeded(ctx, s, cr) }},
		} {
			log, err := audit.Open(auditLog)
			Expect(err).NotTo(HaveOccurred())
			step.do()
			Consistently(ctx, s.Condition(cr, "Successful"), site.Calm).Should(HaveField("Status", "True"))
			counts[step.name] = sum(step.name, requests(s, log))
		}
		// With the reads and writes of the CR. The former operator makes 37 at an installation. Of each object Helm asks
		// whether another release has it, and it is compared when all is done. The ledger is read once, and written three times.
		const most = 38
		Expect(counts).To(And(HaveKeyWithValue("install", BeNumerically("<=", most)), HaveKeyWithValue("upgrade", BeNumerically("<=", most))))
	})
})
