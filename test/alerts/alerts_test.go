package alerts

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const watches = `
- {group: alerts.example.com, version: v1, kind: Task, playbook: play.yml, timeout: 2s, serviceAccountNamePath: spec.account}
`

const gvk = "alerts.example.com/v1, Kind=Task"

// manager starts a manager of a site of its own, with the watches and further flags.
func manager(ctx context.Context, watches string, flags ...string) *site.Site {
	GinkgoHelper()
	s := prepared(ctx, watches, flags...)
	return s.Start(ctx, "Task")
}

// prepared is a site whose managers elect one that leads.
func prepared(ctx context.Context, watches string, flags ...string) *site.Site {
	GinkgoHelper()
	return lonely(ctx, watches, append([]string{"--leader-elect", "--leader-election-id=alerts"}, flags...)...)
}

// lonely is a site of one manager at a time.
func lonely(ctx context.Context, watches string, flags ...string) *site.Site {
	GinkgoHelper()
	s := ground.Site(ctx, map[string]string{"watches.yaml": watches, "play.yml": ""})
	s.Script()
	s.Options.Env = append(s.Options.Env, "WATCH_NAMESPACE="+s.Namespace)
	s.Options.Args = append(s.Options.Args, flags...)
	return s
}

// until returns what the manager exports once it matches all expressions.
func until(ctx context.Context, s *site.Site, expressions ...string) (text string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		var err error
		text, err = s.Metrics(ctx)
		return text, err
	}).Should(SatisfyAll(matchers(expressions)...))
	return text
}

func matchers(expressions []string) (all []types.GomegaMatcher) {
	for _, expression := range expressions {
		all = append(all, MatchRegexp(`(?m)^`+expression+`$`))
	}
	return all
}

// counted is the line of a state with a number of CRs.
func counted(state string, number int) string {
	return fmt.Sprintf(`ensign_operator_resources\{GVK="%s",state="%s"\} %d`, regexp.QuoteMeta(gvk), state, number)
}

func live(number int) string {
	return fmt.Sprintf(`ansible_operator_live_runs\{GVK="%s"\} %d`, regexp.QuoteMeta(gvk), number)
}

// task is a CR with an account, unless its spec has one.
func task(s *site.Site, name string, spec map[string]any) *unstructured.Unstructured {
	all := map[string]any{"account": "default"}
	maps.Copy(all, spec)
	return harness.Custom(kind("Task"), s.Namespace, name, all)
}

// firing is an alert with its labels, as promtool shows it.
func firing(alert string, labels ...string) string {
	return fmt.Sprintf(`{alertname=%q%s}`, alert, strings.Join(append([]string{""}, labels...), ", "))
}

var _ = Describe("the alerts of config/prometheus", Ordered, func() {
	var (
		rules      Rules
		situations []Situation
		a          = Target{"a", "shop-metrics", "10.0.0.1:8443"}
		a2         = Target{"a", "shop-metrics", "10.0.0.2:8443"}
		b          = Target{"b", "shop-metrics", "10.0.0.3:8443"}
		healthy    string
		cold       *site.Site
	)
	of := func(t Target) []string {
		return []string{fmt.Sprintf("namespace=%q", t.Namespace), fmt.Sprintf("job=%q", t.Job)}
	}
	ofKind := func(t Target) []string { return append(of(t), fmt.Sprintf("GVK=%q", gvk)) }
	// seen adds a situation in which one manager exports the same all the time.
	seen := func(name, text string, fires ...string) {
		situations = append(situations, Situation{name, map[Target][]Scrape{a: {{text, 60}}}, fires})
	}

	BeforeAll(func(ctx context.Context) {
		var err error
		// Runs are reported that were cold for a minute: they are during the other specs.
		cold = manager(ctx, watches, "--warm=true", "--reconcile-period=5s")
		cold.Create(ctx, task(cold, "cold", nil))
		rules, err = ReadRules(filepath.Join(ground.Root, "config", "prometheus", "rules.yaml"))
		Expect(err).NotTo(HaveOccurred())
	})

	It("records the metrics of a manager that works, and of one whose runs fail, time out, wait, or are refused", func(ctx context.Context) {
		s := manager(ctx, watches, "--max-concurrent-runs=1")
		s.Create(ctx, task(s, "good", nil))
		healthy = until(ctx, s, counted("succeeded", 1), counted("waiting", 0), live(0))
		seen("all is well", healthy)

		refused := task(s, "refused", map[string]any{"account": "no name!"})
		s.Create(ctx, refused)
		seen("a resource is refused (InvalidSpec), and nothing runs", until(ctx, s, counted("refused", 1), counted("succeeded", 1)), firing("EnsignResourcesRefused", ofKind(a)...))
		ground.Delete(ctx, refused)

		late := task(s, "late", map[string]any{"hangs": true})
		s.Create(ctx, late)
		first := until(ctx, s, counted("running", 1), live(1))
		running := until(ctx, s, counted("failed", 1), counted("running", 0), live(1))
		between := until(ctx, s, counted("failed", 1), live(0))
		Expect(s.Outcome(ctx, late)).To(HaveField("Reason", "Timeout"))
		var hours []Scrape
		hours = append(hours, Scrape{first, 60})
		for range 4 {
			hours = append(hours, Scrape{between, 5}, Scrape{running, 60})
		}
		situations = append(situations,
			Situation{"each run ends by its timeout of an hour", map[Target][]Scrape{a: hours}, []string{firing("EnsignResourcesFail", ofKind(a)...)}},
			Situation{"the manager of a resource that fails restarts each half an hour", map[Target][]Scrape{
				a: {{running, 30}, {"", 2}, {healthy, 2}, {running, 30}, {"", 2}, {healthy, 2}, {running, 10}},
			}, []string{firing("EnsignResourcesFail", ofKind(a)...)}},
			Situation{"a resource fails once, and then succeeds", map[Target][]Scrape{a: {{between, 5}, {healthy, 60}}}, nil},
			Situation{"two installs in one Prometheus, of which one has a failing resource", map[Target][]Scrape{
				a: {{healthy, 120}}, b: {{running, 120}},
			}, []string{firing("EnsignResourcesFail", ofKind(b)...)}},
			Situation{"an install is gone while another is there", map[Target][]Scrape{
				a: {{healthy, 60}, {"", 60}}, b: {{healthy, 120}},
			}, []string{firing("EnsignDown", of(a)...)}},
			Situation{"an install was removed two days ago", map[Target][]Scrape{
				a: {{healthy, 60}, {"", 48 * 60}}, b: {{healthy, 49 * 60}},
			}, nil},
			Situation{"no manager was ever there", map[Target][]Scrape{a: {{"", 60}}}, []string{firing("EnsignDown")}},
		)
		s.Create(ctx, task(s, "queued", map[string]any{"hangs": true}))
		seen("more runs than slots", until(ctx, s, `ansible_operator_waiting_runs\{GVK=".*"\} 1`, `ansible_operator_live_runs\{GVK=".*"\} 1`, counted("succeeded", 1)),
			firing("EnsignRunsWait", of(a)...), firing("EnsignResourcesFail", ofKind(a)...))

		standby := *s
		standby.Options.Home = filepath.Join(s.Dir, "standby")
		standby.Start(ctx)
		waits := until(ctx, &standby, `ansible_operator_build_info\{.*\} 1`)
		Expect(waits).NotTo(Or(ContainSubstring("ansible_operator_slots "), ContainSubstring("ensign_operator_resources{")))
		situations = append(situations,
			Situation{"a standby beside the leader", map[Target][]Scrape{a: {{healthy, 120}}, a2: {{waits, 120}}}, nil},
			Situation{"the leader is gone, and the standby does not lead", map[Target][]Scrape{
				a: {{healthy, 60}, {"", 30}}, a2: {{waits, 90}},
			}, []string{firing("EnsignDown", of(a)...)}},
			Situation{"the standby leads in its place", map[Target][]Scrape{
				a: {{healthy, 60}, {"", 60}}, a2: {{waits, 61}, {healthy, 59}},
			}, nil},
		)
	})

	It("records the metrics of a manager that may not list referenced objects, and whose other kind is missing", func(ctx context.Context) {
		s := prepared(ctx, `
- {group: alerts.example.com, version: v1, kind: Task, playbook: play.yml, references: [{version: v1, kind: Secret, name: spec.secret}]}
- {group: alerts.example.com, version: v1, kind: Absent, playbook: play.yml}
`)
		s.Limit(ctx, rbacv1.PolicyRule{APIGroups: []string{"alerts.example.com", "coordination.k8s.io", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "events"}, Verbs: []string{"*"}})
		s.Start(ctx, "Task")
		s.Create(ctx, task(s, "blind", map[string]any{"secret": "s"}))
		text := until(ctx, s, `ansible_operator_watched_kind\{.*resource="secrets",state="failing"\} 1`, counted("succeeded", 1))
		seen("a kind is not served, and one may not be listed", text,
			firing("EnsignWatchingFails", append(of(a), `resource="secrets"`)...),
			firing("EnsignWatchNotReady", append(of(a), `GVK="alerts.example.com/v1, Kind=Absent"`)...))
		situations = append(situations, Situation{"two shards, of which one does not watch a kind", map[Target][]Scrape{
			a: {{strings.ReplaceAll(text, `state="failing"`, `state="live"`), 60}}, a2: {{strings.ReplaceAll(healthy, "Kind=Task", "Kind=Absent"), 60}},
		}, []string{firing("EnsignWatchNotReady", append(of(a), `GVK="alerts.example.com/v1, Kind=Absent"`)...)}})
	})

	It("records the metrics of a shard while a resource has the label of no shard", func(ctx context.Context) {
		s := prepared(ctx, watches, "--watch-label-selector=shard=a")
		lost := task(s, "lost", nil)
		lost.SetLabels(map[string]string{"shard": "c"})
		s.Create(ctx, lost)
		s.Start(ctx, "Task")
		seen("no shard has a resource", until(ctx, s, `ensign_operator_unselected_resources\{.*\} 1`), firing("EnsignResourcesUnselected", ofKind(a)...))
	})

	It("records the metrics of a manager whose runs stay cold", func(ctx context.Context) {
		seen("runs stay cold", until(ctx, cold, `ansible_operator_watch_cold\{.*\} 1`, live(0)), firing("EnsignRunsCold", ofKind(a)...))
	})

	It("fires each of them in its situation, and no other", func(ctx context.Context) {
		fired := map[string]bool{}
		for _, s := range situations {
			for _, alert := range s.Firing {
				fired[regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(alert)[1]] = true
			}
			AddReportEntry(s.Name, strings.Join(s.Firing, " "), ReportEntryVisibilityAlways)
		}
		for _, rule := range rules.All() {
			Expect(fired).To(HaveKey(rule.Alert), "no situation is of this alert")
		}
		dir := GinkgoT().TempDir()
		test, err := rules.Test(dir, situations)
		Expect(err).NotTo(HaveOccurred())
		out, err := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "tools", "promtool"), "test", "rules", test).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
	})
})
