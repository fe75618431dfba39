//go:build long

package charts

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var failing = flag.Duration("failing", 2*time.Minute, "for how long CRs fail that are triggered all the time")

const (
	// longestPause is --max-backoff as it is by default; the harness starts managers with a shorter one.
	longestPause = 5 * time.Minute
	// failingCRs is how many CRs of each engine fail.
	failingCRs = 20
	// pokes is how often somebody else triggers each of them.
	pokes = time.Second
)

// failer is an operator whose CRs never succeed. All refer to one Secret.
type failer struct {
	*site.Site

	kind schema.GroupKind
	crs  []*unstructured.Unstructured
	log  audit.Log
	// alone is how many requests a run took of a CR that nothing triggered.
	alone float64
}

// failingRole writes a child anew with each run, and fails.
const failingRole = `- kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ ansible_operator_meta.name }}-a", namespace: "{{ ansible_operator_meta.namespace }}"}
      data: {at: "{{ lookup('pipe', 'date +%s%N') }}"}
- ansible.builtin.fail: {msg: it never succeeds}
`

const referring = "references: [{version: v1, kind: Secret, name: spec.secret}]"

// failers are one of each engine.
func failers(ctx context.Context) []*failer {
	GinkgoHelper()
	release := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "drawn: {{ randAlphaNum 16 }}"), "b.yaml": configMap("NO-NAME", "{}", "a: b")}, "  "+referring+"\n")
	role := newSite(ctx, map[string]string{
		"watches.yaml":               "- {group: demo.example.com, version: v1, kind: Greeting, role: fails, " + referring + "}\n",
		"roles/fails/tasks/main.yml": failingRole,
	})
	return []*failer{{Site: release, kind: hello}, {Site: role, kind: greeting}}
}

// create creates a CR that refers to a Secret.
func (f *failer) create(ctx context.Context, name, secret string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(f.kind, f.Namespace, name, map[string]any{"secret": secret})
	f.Create(ctx, cr)
	return cr
}

// requests counts, by user agent, what the operator and its runs have asked for in its namespace,
// but for the renewal of its lease.
func (f *failer) requests() (by map[string]int, sum int) {
	GinkgoHelper()
	events, err := f.log.Events("/namespaces/" + f.Namespace + "/")
	Expect(err).NotTo(HaveOccurred())
	by = map[string]int{}
	for _, event := range events {
		agent, _, _ := strings.Cut(event.UserAgent, "/")
		others := strings.HasPrefix(agent, "kube-") || strings.HasSuffix(agent, ".test") || event.ObjectRef.Resource == "leases"
		if !others {
			by[agent+" "+event.Verb]++
			sum++
		}
	}
	return by, sum
}

// prepare starts the operator, and measures what runs of a CR take that nothing triggers.
func (f *failer) prepare(ctx context.Context) {
	GinkgoHelper()
	f.Options.Args = append(f.Options.Args, "--max-backoff="+longestPause.String())
	f.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "shared"}})
	f.Start(ctx, f.kind.Kind)
	const runs = 4
	var err error
	f.log, err = audit.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	cr := f.create(ctx, "alone", "absent")
	Eventually(f.Failed(cr)).Should(BeNumerically(">=", runs))
	_, sum := f.requests()
	f.alone = float64(sum) / runs
	f.log, err = audit.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
}

// poke triggers all CRs by the Secret, and one by its child.
func (f *failer) poke(ctx context.Context, n int) {
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"poked":"%d"}}}`, n))
	for _, object := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		object.SetNamespace(f.Namespace)
		object.SetName("shared")
		if _, isChild := object.(*corev1.ConfigMap); isChild {
			object.SetName(f.crs[n%len(f.crs)].GetName() + "-a")
		}
		_ = k8s.Patch(ctx, object, change) // A child may just not be there.
	}
}

// allowed returns how many runs the back-off allows in a time, if they take none.
func allowed(in time.Duration) int {
	runs := 1
	for pause := time.Second; in >= pause; pause = min(2*pause, longestPause) {
		in -= pause
		runs++
	}
	return runs
}

var _ = Describe("CRs that fail and are triggered all the time", func() {
	It("run as often as their back-off allows, with either engine", func(ctx context.Context) {
		both := failers(ctx)
		for _, f := range both {
			f.prepare(ctx)
		}
		began := time.Now()
		for n := range failingCRs {
			for _, f := range both {
				f.crs = append(f.crs, f.create(ctx, fmt.Sprintf("fails-%d", n), "shared"))
			}
		}
		poking := time.NewTicker(pokes)
		defer poking.Stop()
		n := 0
		for ; time.Since(began) < *failing; n++ {
			<-poking.C
			for _, f := range both {
				f.poke(ctx, n)
			}
		}
		for _, f := range both {
			for _, cr := range f.crs { // On a slow machine later.
				Eventually(f.Failed(cr)).Should(BeNumerically(">=", 2))
			}
		}
		for _, f := range both {
			by, requests := f.requests()
			took := time.Since(began)
			runs, most := 0, allowed(took)
			var each []int
			for _, cr := range f.crs {
				pauses := f.Pauses(cr)
				for i, pause := range pauses {
					Expect(pause).To(BeNumerically(">=", min(time.Second<<min(i, 20), longestPause)), "%s: pause %d of %v", cr.GetName(), i+1, pauses)
				}
				each = append(each, len(pauses)+1)
				runs += len(pauses) + 1
				Expect(len(pauses)+1).To(BeNumerically("<=", most), cr.GetName())
			}
			alone := f.Pauses(harness.Custom(f.kind, f.Namespace, "alone", nil))
			metrics, err := f.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			AddReportEntry("failing "+f.kind.Kind, fmt.Sprintf("%d CRs in %.1f minutes, each triggered %d times: %d runs of %d allowed, each %v, and %d of the one that nothing triggers; %d requests, %.1f a run (alone %.1f), by %v",
				len(f.crs), took.Minutes(), n, runs, most*len(f.crs), each, len(alone)+1, requests, float64(requests)/float64(runs), f.alone, by))
			Expect(metrics).To(MatchRegexp(`ensign_operator_throttled_triggers_total\{[^}]*by="backoff"\} [1-9]`), "the triggers came")
			// What triggers but starts no run must cost no request. The double is for what a CR
			// that nothing triggers does less often, such as a look at its children.
			Expect(float64(requests)).To(BeNumerically("<=", 2*f.alone*float64(runs+len(alone)+1)), "%v", by)
		}
	}, NodeTimeout(2*time.Hour))
})
