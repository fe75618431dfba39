package contract

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/dashboard"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// canary is text of a CR, which its tasks carry in their names too.
const canary = "canary-in-the-spec"

// posted returns the code and text of an answer to a POST.
func posted(ctx context.Context, url, body string) (code int, said string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	return answered(http.DefaultClient, request)
}

func answered(by *http.Client, request *http.Request) (code int, said string) {
	GinkgoHelper()
	response, err := by.Do(request)
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(text)
}

// probe asks a check for everything that it knows.
func probe(ctx context.Context, s *site.Site, name string) (code int, said string) {
	GinkgoHelper()
	address, err := s.Address(ctx, "health probe")
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+name+"?verbose", nil)
	Expect(err).NotTo(HaveOccurred())
	return answered(http.DefaultClient, request)
}

// userMetrics is where the manager takes metrics of roles.
func userMetrics(ctx context.Context, s *site.Site) string {
	GinkgoHelper()
	address, err := s.Address(ctx, "user metrics")
	Expect(err).NotTo(HaveOccurred())
	return "http://" + address + "/metrics"
}

var _ = Describe("metrics and probes", Ordered, ContinueOnFailure, func() {
	var (
		s         *site.Site
		kind      = schema.GroupKind{Group: "meter.example.com", Kind: "Meter"}
		good, bad *unstructured.Unstructured
		text      string
	)
	const gvk = `GVK="meter.example.com/v1, Kind=Meter"`
	metrics := func(ctx context.Context) string {
		GinkgoHelper()
		got, err := s.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		return got
	}
	shows := func(lines ...string) {
		GinkgoHelper()
		for _, line := range lines {
			Expect(text).To(MatchRegexp(`(?m)^` + line + `$`))
		}
	}

	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "meter", kind.Group, kind.Kind)
		s.Options.Args = append(s.Options.Args, "--health-probe-bind-address=127.0.0.1:0", "--reconcile-period=0s",
			"--leader-elect", "--leader-election-id=meters")
		s.Start(ctx, "Meter")
		good = harness.Custom(kind, s.Namespace, "good", map[string]any{"word": canary, "writes": true, "broken": false})
		bad = harness.Custom(kind, s.Namespace, "bad", map[string]any{"word": canary, "writes": false, "broken": true})
		s.Create(ctx, good, bad)
		Eventually(s.Ended(good)).Should(Equal(1))
		Eventually(s.Failed(bad)).Should(BeNumerically(">=", 1))
		// Runs are counted after the log tells of their end, and before statuses do.
		Eventually(ctx, s.Condition(good, "Successful")).Should(HaveField("Status", "True"))
		Eventually(ctx, s.Condition(bad, "Failure")).Should(HaveField("Status", "True"))
		text = metrics(ctx)
		Expect(k8s.Delete(ctx, bad)).To(Succeed())
	})

	row("§9 build_info", "commit and version", func() {
		shows(`ansible_operator_build_info\{commit="[^"]+",version="[^"]+"\} 1`)
	})
	row("§9 reconcile_result", "a counter by GVK and result", func() {
		shows(`# TYPE ansible_operator_reconcile_result counter`, `ansible_operator_reconcile_result\{`+gvk+`,result="succeeded"\} 1`,
			`ansible_operator_reconcile_result\{`+gvk+`,result="failed"\} [1-9]`, `ansible_operator_reconcile_result\{`+gvk+`,result="canceled"\} 0`)
	})
	row("§9 reconciles", "a histogram of whole runs, 10 ms to 1 h", func() {
		shows(`# TYPE ansible_operator_reconciles histogram`, `ansible_operator_reconciles_count\{`+gvk+`\} [2-9]`)
		var bounds []string
		for _, match := range regexp.MustCompile(`ansible_operator_reconciles_bucket\{`+gvk+`,le="([^"]+)"\}`).FindAllStringSubmatch(text, -1) {
			bounds = append(bounds, match[1])
		}
		Expect(bounds).To(And(HaveLen(19), HaveEach(Not(BeEmpty()))))
		Expect(append(bounds[:1:1], bounds[17:]...)).To(Equal([]string{"0.01", "3600", "+Inf"}))
	})
	row("§9 resource_created_at_seconds", "says since when a CR is there", func(ctx context.Context) {
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(good), good)).To(Succeed())
		shows(fmt.Sprintf(`resource_created_at_seconds\{group="meter.example.com",kind="Meter",name="good",namespace="%s",version="v1"\} %s`,
			s.Namespace, regexp.QuoteMeta(fmt.Sprintf("%g", float64(good.GetCreationTimestamp().Unix())))))
	})
	row("§9 new metrics", "live runs, queue wait, slots, failed tasks, run-directory bytes", func() {
		shows(`ansible_operator_live_runs\{`+gvk+`\} \d+`, `ansible_operator_slot_wait_seconds_count\{`+gvk+`\} [2-9]`, `ansible_operator_slots 4`,
			`ansible_operator_waiting_runs\{`+gvk+`\} 0`, `ansible_operator_failed_tasks_total\{`+gvk+`\} [1-9]`,
			`ansible_operator_run_directory_bytes [1-9].*`)
	})
	row("§9 resources", "CRs by state, of a manager that leads", func() {
		for state, number := range map[string]int{"succeeded": 1, "failed": 1, "refused": 0, "running": 0, "waiting": 0, "paused": 0} {
			shows(fmt.Sprintf(`ensign_operator_resources\{%s,state="%s"\} %d`, gvk, state, number))
		}
	})
	row("§9 warm runs", "runs are counted by mode", func() {
		ran := 0
		for _, mode := range []string{"warm", "cold"} {
			counted := regexp.MustCompile(`(?m)^ansible_operator_runs_total\{` + gvk + `,mode="` + mode + `"\} (\d+)$`).FindStringSubmatch(text)
			Expect(counted).To(HaveLen(2), mode)
			n, err := strconv.Atoi(counted[1])
			Expect(err).NotTo(HaveOccurred())
			ran += n
		}
		Expect(ran).To(BeNumerically(">=", 2))
	})
	row("§9 labels", "none carries text of a CR's spec or of a task", func() {
		Expect(text).NotTo(Or(ContainSubstring(canary), ContainSubstring("Look for")))
	})
	row("§9 controller-runtime", "its own metrics stay", func() {
		shows(`controller_runtime_reconcile_total\{controller="meter.meter.example.com",result="success"\} \d+`,
			`workqueue_depth\{.*name="meter.meter.example.com".*\} \d+`, `rest_client_requests_total\{.*\} \d+`, `go_goroutines \d+`, `process_resident_memory_bytes .*`)
	})

	row("§9 dashboard", "each query of config/grafana asks for what is there", func(ctx context.Context) {
		d, err := dashboard.Read(filepath.Join(ground.Root, "config", "grafana", "ensign.json"))
		Expect(err).NotTo(HaveOccurred())
		selectors, err := d.Selectors()
		Expect(err).NotTo(HaveOccurred())
		Expect(selectors).NotTo(BeEmpty())
		Eventually(ctx, s.Metrics).Should(ContainSubstring("ansible_operator_watched_kind"))
		text := metrics(ctx)
		for _, selector := range selectors {
			series := regexp.MustCompile(`(?m)^`+selector.Metric+`(\{.*\})? .*$`).FindAllString(text, -1)
			Expect(series).NotTo(BeEmpty(), selector.Metric)
			for _, label := range selector.Labels {
				if label != "job" && label != "namespace" && label != "instance" { // Prometheus gives these.
					Expect(series).To(HaveEach(MatchRegexp(`[{,]`+label+`="`)), "%s has no %s", selector.Metric, label)
				}
			}
		}
	})

	row("§9 probes", "the proxy and the caches of kinds that are served are checks of their own", func(ctx context.Context) {
		code, said := probe(ctx, s, "readyz")
		Expect(code).To(Equal(http.StatusOK))
		Expect(said).To(And(ContainSubstring("[+]proxy ok"), ContainSubstring("[+]cache Meter.meter.example.com ok")))
		code, said = probe(ctx, s, "healthz")
		Expect(code).To(Equal(http.StatusOK))
		Expect(said).To(ContainSubstring("[+]proxy ok"))
		code, _ = probe(ctx, s, "readyz/cache Meter.meter.example.com")
		Expect(code).To(Equal(http.StatusOK))
	})
	row("§9 watch_ready", "a missing CRD does not make the pod unready, and shows in the metric and in the log", func(ctx context.Context) {
		shows(`ansible_operator_watch_ready\{`+gvk+`\} 1`, `ansible_operator_watch_ready\{GVK="meter.example.com/v1, Kind=Absent"\} 0`)
		code, said := probe(ctx, s, "readyz")
		Expect(code).To(Equal(http.StatusOK))
		Expect(said).To(ContainSubstring("[+]cache Absent.meter.example.com ok"))
		Expect(s.Log()).To(MatchRegexp(`its CRD may be missing.*Kind=Absent`))
	})
	row("§9 standby", "a replica that waits for the lease is ready", func(ctx context.Context) {
		standby := *s
		standby.Options.Home = filepath.Join(s.Dir, "standby")
		standby.Script()
		standby.Start(ctx)
		Eventually(func() int { code, _ := probe(ctx, &standby, "readyz"); return code }).Should(Equal(http.StatusOK))
		Expect(standby.Log()).NotTo(ContainSubstring("watching"))
		shown, err := standby.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown).To(And(ContainSubstring("ansible_operator_watch_ready{"),
			Not(Or(ContainSubstring("ansible_operator_slots"), ContainSubstring("ansible_operator_waiting_runs"), ContainSubstring("ensign_operator_resources")))))
	})

	row("§9 user metrics", "what a role posts, null members and all, shows at the manager's endpoint", func() {
		shows(`# HELP meter_counter Of a role.`, `# TYPE meter_counter counter`, `meter_counter [2-9]`, `meter_gauge 0`, `meter_histogram_count [2-9]`,
			`meter_histogram_bucket\{le="0.5"\} [2-9]`, `meter_summary_sum [4-9]`, `meter_summary_count [2-9]`)
	})
	row("§9 user metrics refused", "no name of the manager's own is taken", func(ctx context.Context) {
		names := regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(text, -1)
		Expect(len(names)).To(BeNumerically(">", 50))
		url := userMetrics(ctx, s)
		for _, name := range names {
			if strings.HasPrefix(name[1], "meter_") {
				continue
			}
			code, said := posted(ctx, url, fmt.Sprintf(`{"name": %q, "description": "d", "gauge": {"set": 1}}`, name[1]))
			Expect(code).To(Equal(http.StatusBadRequest), "%s: %s", name[1], said)
			Expect(said).To(ContainSubstring("manager itself"), name[1])
		}
		Expect(metrics(ctx)).To(ContainSubstring("ansible_operator_build_info"))
	})
})

var _ = Describe("metrics of roles alone", Ordered, ContinueOnFailure, func() {
	var (
		s      *site.Site
		kind   = schema.GroupKind{Group: "closed.example.com", Kind: "Meter"}
		reader string // who may read metrics
	)
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(schema.GroupKind{Group: "locked.example.com", Kind: "Locked"}))
		s = operator(ctx, "meter", kind.Group, kind.Kind)
		s.Write(map[string]string{"watches.yaml": `
- {group: closed.example.com, version: v1, kind: Meter, playbook: meter.yml}
- {group: locked.example.com, version: v1, kind: Locked, playbook: meter.yml}
`})
		s.Options.Args = append(s.Options.Args, "--health-probe-bind-address=127.0.0.1:0", "--user-metrics-open=false", "--metrics-secure", "--pprof-bind-address=127.0.0.1:0")
		manager := s.Limit(ctx,
			rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io", kind.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io", "authorization.k8s.io"}, Resources: []string{"tokenreviews", "subjectaccessreviews"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
		reader = ground.Token(ctx, manager)
		s.Start(ctx, "Meter")
	})

	row("§2 --metrics-secure, §2 --metrics-require-rbac", "metrics are for those who may read them; profiles have an address of their own", func(ctx context.Context) {
		Expect(s.Logged(ctx, regexp.MustCompile(`Serving metrics server`))).To(Succeed())
		code, _ := scrape(ctx, s, "")
		Expect(code).To(Equal(http.StatusUnauthorized))
		stranger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "stranger"}}
		s.Create(ctx, stranger)
		code, _ = scrape(ctx, s, ground.Token(ctx, stranger))
		Expect(code).To(Equal(http.StatusForbidden))
		code, text := scrape(ctx, s, reader)
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring(`ansible_operator_build_info{`))
		address, err := s.Address(ctx, "pprof")
		Expect(err).NotTo(HaveOccurred())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/cmdline", nil)
		Expect(err).NotTo(HaveOccurred())
		code, _ = answered(http.DefaultClient, request)
		Expect(code).To(Equal(http.StatusOK))
	})

	row("§9 user metrics closed, §2 --user-metrics-open", "only the token of a live run may post", func(ctx context.Context) {
		url := userMetrics(ctx, s)
		code, said := posted(ctx, url, `{"name": "meter_counter", "counter": {"add": 100}}`)
		Expect(code).To(Equal(http.StatusUnauthorized), said)
		cr := harness.Custom(kind, s.Namespace, "closed", map[string]any{"word": "hello", "writes": false, "broken": false})
		s.Create(ctx, cr)
		Eventually(s.Ended(cr)).Should(Equal(1))
		_, text := scrape(ctx, s, reader)
		Expect(text).To(MatchRegexp(`(?m)^meter_counter 1$`))
	})
	row("§9 probes", "a kind that is served, but may not be listed, shows as what it is, and keeps no other from its work", func(ctx context.Context) {
		code, said := probe(ctx, s, "readyz")
		Expect(code).To(Equal(http.StatusInternalServerError))
		Expect(said).To(And(MatchRegexp(`\[-\]cache Locked.locked.example.com failed: .*not filled`), ContainSubstring("[+]cache Meter.closed.example.com ok"), ContainSubstring("[+]proxy ok")))
		Expect(s.Log()).To(MatchRegexp(`the probe fails.*"probe": ?"readyz".*cache Locked.locked.example.com: .*not filled`))
		Expect(s.Log()).NotTo(ContainSubstring("statuses"))
		code, _ = probe(ctx, s, "healthz")
		Expect(code).To(Equal(http.StatusOK), "a restart would not mend it")
		_, text := scrape(ctx, s, reader)
		Expect(text).To(ContainSubstring(`ansible_operator_watch_ready{GVK="locked.example.com/v1, Kind=Locked"} 0`))
	})
})

// scrape reads the metrics that are served over HTTPS, with a token, and gives the code too.
func scrape(ctx context.Context, s *site.Site, token string) (code int, text string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.MetricsAddress()+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The endpoint's certificate is made at its start and signed by nobody.
	return answered(&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, request)
}
