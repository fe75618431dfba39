//go:build long

package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/dashboard"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// troubles are the queries that may have no answer where all is well: what they count has no series then.
var troubles = []string{
	`panel "Not watched", query A`,
	`panel "Not watched", query B`,
	`panel "Errors of the API", query B`,
}

var _ = Describe("the dashboard of config/grafana", Ordered, func() {
	var (
		d       dashboard.Dashboard
		p       prometheus
		ill     *site.Site
		healthy *site.Site
		needed  = []rbacv1.PolicyRule{
			{APIGroups: []string{"alerts.example.com", "coordination.k8s.io", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps", "events"}, Verbs: []string{"*"}},
		}
	)

	// secured prepares a manager whose metrics are for those who may read them.
	secured := func(ctx context.Context, watches string) *site.Site {
		s := lonely(ctx, watches, "--metrics-secure", "--metrics-require-rbac", "--warm=true", "--reconcile-period=5s")
		s.Limit(ctx, append(rulesOf("metrics_auth_role.yaml"), needed...)...)
		return s
	}

	BeforeAll(func(ctx context.Context) {
		var err error
		d, err = dashboard.Read(filepath.Join(ground.Root, "config", "grafana", "ensign.json"))
		Expect(err).NotTo(HaveOccurred())
		healthy = secured(ctx, watches).Start(ctx, "Task")
		healthy.Create(ctx, task(healthy, "good", nil))
		ill = secured(ctx, `
- {group: alerts.example.com, version: v1, kind: Task, playbook: play.yml, references: [{version: v1, kind: Secret, name: spec.secret}]}
- {group: alerts.example.com, version: v1, kind: Absent, playbook: play.yml}
`).Start(ctx, "Task")
		ill.Create(ctx, task(ill, "good", nil), task(ill, "bad", map[string]any{"fails": true}), task(ill, "blind", map[string]any{"secret": "s"}))
		p = scraping(ctx, healthy, ill)
	})

	It("lets its reader choose among existing values", func(ctx context.Context) {
		Expect(p.choices(ctx, d, map[string]string{"namespace": quoted(ill.Namespace)})).To(Equal(map[string]string{
			"namespace": quoted(ill.Namespace), "job": quoted(job), "kind": quoted("alerts.example.com/v1, Kind=Absent", gvk),
		}))
	})

	It("answers each query for an operator that has all troubles", func(ctx context.Context) {
		values := map[string]string{"namespace": quoted(ill.Namespace), "job": quoted(job), "kind": quoted("alerts.example.com/v1, Kind=Absent", gvk)}
		for _, query := range d.Queries(values) {
			Eventually(ctx, p.samples).WithArguments(query.Expr).ShouldNot(BeEmpty(), query.Of+": "+query.Expr)
		}
	})

	It("answers each query for an operator without any, except those that name troubles", func(ctx context.Context) {
		values := map[string]string{"namespace": quoted(healthy.Namespace), "job": quoted(job), "kind": ".*"}
		for _, query := range d.Queries(values) {
			if !slices.Contains(troubles, query.Of) {
				Eventually(ctx, p.samples).WithArguments(query.Expr).ShouldNot(BeEmpty(), query.Of+": "+query.Expr)
			}
		}
	})
})

// job is the name of the Service in front of the manager, which a ServiceMonitor gives its series.
const job = "ensign-metrics"

// rulesOf are the rules of a role of config/rbac.
func rulesOf(file string) []rbacv1.PolicyRule {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(ground.Root, "config", "rbac", file))
	Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
	return role.Rules
}

// quoted is how Grafana puts chosen values into a string of a query that matches an expression.
func quoted(values ...string) string {
	for i, value := range values {
		values[i] = strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`)
	}
	if len(values) == 1 {
		return values[0]
	}
	return "(" + strings.Join(values, "|") + ")"
}

// prometheus is the address of a server.
type prometheus string

// scraping starts a Prometheus that reads the managers' metrics as config/prometheus has it do, with
// the token of an account that has the role for it.
func scraping(ctx context.Context, sites ...*site.Site) prometheus {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: sites[0].Namespace, Name: "prometheus"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"}, Rules: rulesOf("metrics_reader_role.yaml")}
	sites[0].Create(ctx, reader, role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: reader.Namespace, Name: reader.Name}},
	})
	token := filepath.Join(dir, "token")
	Expect(os.WriteFile(token, []byte(ground.Token(ctx, reader)), 0o600)).To(Succeed())
	var targets []any
	for _, s := range sites {
		targets = append(targets, map[string]any{"targets": []string{s.MetricsAddress()}, "labels": map[string]string{"namespace": s.Namespace}})
	}
	scrape := monitored()
	scrape["job_name"], scrape["scrape_interval"], scrape["static_configs"] = job, "1s", targets
	scrape["authorization"] = map[string]any{"credentials_file": token}
	config, err := yaml.Marshal(map[string]any{"scrape_configs": []any{scrape}})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "prometheus.yml"), config, 0o600)).To(Succeed())
	address, err := harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	command := exec.Command(filepath.Join(ground.Root, "bin", "tools", "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	Expect(command.Start()).To(Succeed(), "run these tests by `make test-all`, which builds what they need")
	DeferCleanup(func() {
		_ = command.Process.Kill() // Its data go with the test.
		_ = command.Wait()
	})
	return prometheus("http://" + address)
}

// monitored is what the ServiceMonitor of config/prometheus says of an endpoint, as Prometheus'
// operator writes it for Prometheus.
func monitored() map[string]any {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(ground.Root, "config", "prometheus", "monitor.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var monitor struct {
		Spec struct {
			Endpoints []struct {
				Port, Path, Scheme, BearerTokenFile string
				TLSConfig                           struct{ InsecureSkipVerify bool }
			}
		}
	}
	Expect(yaml.Unmarshal(text, &monitor)).To(Succeed())
	Expect(monitor.Spec.Endpoints).To(HaveLen(1))
	endpoint := monitor.Spec.Endpoints[0]
	Expect(endpoint.BearerTokenFile).NotTo(BeEmpty())
	return map[string]any{
		"metrics_path": endpoint.Path, "scheme": endpoint.Scheme,
		"tls_config": map[string]any{"insecure_skip_verify": endpoint.TLSConfig.InsecureSkipVerify},
	}
}

// samples are the numbers with which a query is answered now.
func (p prometheus) samples(ctx context.Context, expr string) (all []string, err error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get(ctx, "query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	for _, series := range data.Result {
		text := fmt.Sprint(series.Value[1])
		if number, err := strconv.ParseFloat(text, 64); err == nil && number == number { // Not NaN, which shows nothing.
			all = append(all, text)
		}
	}
	return all, nil
}

// choices are the values of the dashboard's variables that are not given, as Grafana asks for them.
func (p prometheus) choices(ctx context.Context, d dashboard.Dashboard, given map[string]string) map[string]string {
	GinkgoHelper()
	for _, variable := range d.Templating.List {
		series, label, ok := variable.Asks()
		if !ok || given[variable.Name] != "" {
			continue
		}
		var values []string
		Eventually(ctx, func(ctx context.Context) ([]string, error) {
			return values, p.get(ctx, "label/"+label+"/values", url.Values{"match[]": {dashboard.Fill(series, given)}}, &values)
		}).ShouldNot(BeEmpty(), variable.Name)
		given[variable.Name] = quoted(values...)
	}
	return given
}

func (p prometheus) get(ctx context.Context, what string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(p)+"/api/v1/"+what+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}
	return nil
}
