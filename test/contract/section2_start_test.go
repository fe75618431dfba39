package contract

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const faultyWatches = `
- {version: v1, kind: Misspelt, playbok: say.yml}
- {version: v1, kind: Typed, playbook: say.yml, manageStatus: "often", verbosity: 8}
- {version: v1, kind: Absent, playbook: absent.yml}
`

var _ = Describe("faults", Ordered, ContinueOnFailure, func() {
	var s *site.Site
	given := func(flag string) func(*harness.Options) {
		return func(o *harness.Options) { o.Args = []string{flag} }
	}
	// taken gives a flag whose value ends with a port that somebody listens at.
	taken := func(flag string) func(*harness.Options) {
		return func(o *harness.Options) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(listener.Close)
			_, port, err := net.SplitHostPort(listener.Addr().String())
			Expect(err).NotTo(HaveOccurred())
			o.Args = []string{flag + port}
		}
	}
	BeforeAll(func(ctx context.Context) {
		s = ground.Site(ctx, settingsProject())
		s.Script()
	})
	row("§1 strict", "all at once with their lines, exit 1, before anything is contacted", func(ctx context.Context) {
		s.Write(map[string]string{"watches.yaml": faultyWatches})
		s.Options.Kubeconfig = "/no/such/kubeconfig" // It is not looked for by then.
		code, text := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		Expect(text).To(And(MatchRegexp(`watches\.yaml:2: "playbok" is not a field`), MatchRegexp(`watches\.yaml:3: manageStatus`),
			MatchRegexp(`watches\.yaml:3: verbosity.*0 to 7`), MatchRegexp(`watches\.yaml:4: playbook: "absent.yml" was not found`)))
		Expect(text).NotTo(ContainSubstring("kubeconfig"))
	})
	DescribeTable("that end a manager at once, with what to do", func(ctx context.Context, change func(o *harness.Options), says ...string) {
		before := s.Options
		DeferCleanup(func() { s.Options = before })
		s.Options.Kubeconfig = ground.Cluster.Kubeconfig
		s.Write(map[string]string{"watches.yaml": "- {version: v1, kind: One, playbook: say.yml}\n"})
		change(&s.Options)
		code, text := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		for _, part := range says {
			Expect(text).To(ContainSubstring(part))
		}
	},
		entry("§2 unknown flags", "are errors", given("--no-such-flag"), "--no-such-flag"),
		entry("§2 --watches-file", "a file that is not there", given("--watches-file=nowhere.yaml"), "nowhere.yaml", "name the file with --watches-file"),
		entry("§2 --kubeconfig", "a server that does not answer", func(o *harness.Options) {
			o.Kubeconfig = filepath.Join(s.Dir, "dead")
			text := regexp.MustCompile(`server: .*`).ReplaceAllString(ground.Kubectl(context.Background(), "config", "view", "--raw"), "server: https://127.0.0.1:"+freePort())
			Expect(os.WriteFile(o.Kubeconfig, []byte(text), 0o600)).To(Succeed())
		}, "reach the API server", "--kubeconfig"),
		entry("§2 --proxy-port", "a port that is taken", taken("--proxy-port="), "--proxy-port"),
		entry("§2 --health-probe-bind-address", "an address that is taken", taken("--health-probe-bind-address=127.0.0.1:"), "--health-probe-bind-address"),
		entry("§2 --metrics-bind-address", "an address that is taken", taken("--metrics-bind-address=127.0.0.1:"), "--metrics-bind-address"),
		entry("§2 --user-metrics-bind-address", "an address that is taken", taken("--user-metrics-bind-address=127.0.0.1:"), "--user-metrics-bind-address"),
		entry("§2 ANSIBLE_*", "no Ansible", func(o *harness.Options) { // None is beside a copy of the manager.
			Expect(os.Link(o.Binary, filepath.Join(s.Dir, "alone"))).To(Succeed())
			o.Binary, o.Env = filepath.Join(s.Dir, "alone"), []string{"PATH=/usr/bin:/bin"}
		}, "ansible-runner", "make python"),
	)
	row("§2 --leader-elect-lease-duration, §2 WATCH_NAMESPACE", "whatever can't be is named", func(ctx context.Context) {
		s.Options.Args = []string{
			"--leader-elect", "--leader-election-id=a", "--leader-election-namespace=a", "--leader-elect-renew-deadline=15s",
			"--log-format=xml",
		}
		s.Options.Env = []string{"ANSIBLE_GATHERING=never", "WATCH_NAMESPACE=a,B"}
		code, text := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		Expect(text).To(And(
			ContainSubstring("--leader-elect-renew-deadline=15s: must be less than --leader-elect-lease-duration=15s"),
			ContainSubstring("--log-format=xml: allowed are pretty, console and json"),
			ContainSubstring("ANSIBLE_GATHERING=never: allowed are implicit, explicit, smart"),
			ContainSubstring(`WATCH_NAMESPACE: invalid namespace name "B"`)))
	})
})

// anOlderDeployment says all in the way of older deployments.
var _ = Describe("an older deployment", Ordered, ContinueOnFailure, func() {
	var (
		s         *site.Site
		kind      = kindOf("older", "Relic")
		cr, there *unstructured.Unstructured
		metrics   string
		proxyPort string
		other     string
	)
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(kind))
		files := settingsProject()
		files["watches.yaml"] = "- {group: older.example.com, version: v1, kind: Relic, role: pathed}\n"
		s = ground.Site(ctx, files)
		other = ground.Namespace(ctx)
		metrics, proxyPort = "127.0.0.1:"+freePort(), freePort()
		s.Options.Namespace = s.Namespace + ", " + other
		s.Options.Args = []string{
			"--metrics-bind-address=" + metrics, "--metrics-addr=" + metrics, "--enable-leader-election", "--leader-election-namespace=" + s.Namespace, "--max-workers=1",
			"--leader-elect-resource-lock=configmapsleases", "--ansible-log-events=nOTHING", "--proxy-port=" + proxyPort,
		}
		s.Options.Env = append(s.Options.Env, "KEEP="+s.Dir, "OPERATOR_NAME=relic-operator", "ANSIBLE_DEBUG_LOGS=true", "ANSIBLE_ROLES_PATH=shared", "ANSIBLE_GATHERING=explicit",
			"ANSIBLE_INVENTORY=inventory/hosts", "MAX_CONCURRENT_RECONCILES_RELIC_OLDER_EXAMPLE_COM=1")
		s.Start(ctx, "Relic")
		cr, there = harness.Custom(kind, s.Namespace, "here", nil), harness.Custom(kind, other, "there", nil)
		unwatched := harness.Custom(kind, "default", "nowhere", nil)
		s.Create(ctx, unwatched, cr, there)
	})
	row("§2 deprecated spellings, §2 --leader-elect-resource-lock", "are read, with a warning", func() {
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"metrics-addr", "enable-leader-election", "max-workers", "leader-elect-resource-lock"} {
			Expect(text).To(ContainSubstring("Flag --" + name + " has been deprecated, "))
		}
	})
	row("§2 OPERATOR_NAME, §2 --leader-elect", "is the lease's name, with a warning", func(ctx context.Context) {
		lease := &unstructured.Unstructured{}
		lease.SetAPIVersion("coordination.k8s.io/v1")
		lease.SetKind("Lease")
		Expect(k8s.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: "relic-operator"}, lease)).To(Succeed())
		Expect(lease.Object["spec"]).To(HaveKeyWithValue("leaseDurationSeconds", int64(15)))
		Expect(s.Log()).To(MatchRegexp(`WARNING: OPERATOR_NAME`))
	})
	row("§2 WATCH_NAMESPACE", "a list of namespaces; what is elsewhere does not run", func() {
		Eventually(s.Ended(cr)).Should(Equal(1))
		Eventually(s.Ended(there)).Should(Equal(1))
		Consistently(sayings(s, "nowhere"), site.Calm).Should(BeEmpty())
	})
	row("§2 ANSIBLE_ROLES_PATH, §2 ANSIBLE_INVENTORY", "where roles are, relative to the working directory; an inventory may be a file", func() {
		run := lastSaid(s, cr, 1)
		Expect(run.Role).To(Equal(filepath.Join(s.Options.Project, "shared/pathed")))
		Expect(run.Groups).To(ContainElement("crew"))
		Expect(run.Vars).To(HaveKeyWithValue("shift", "absent"), "only the file is copied")
	})
	row("§2 ANSIBLE_DEBUG_LOGS", "shows the output of all tasks, whatever --ansible-log-events says", func() {
		Eventually(s.Log).Should(MatchRegexp(`/here \| TASK \[pathed : Say what the run knows\]`))
	})
	row("§2 MAX_CONCURRENT_RECONCILES_, §2 --max-concurrent-reconciles, §1 maxConcurrentReconciles", "1: no run begins while another of the watch is live", func(ctx context.Context) {
		before, err := s.Ended(there)()
		Expect(err).NotTo(HaveOccurred())
		for _, object := range []client.Object{cr, there} {
			patch(ctx, object, `{"spec": {"size": 1}}`)
		}
		Eventually(s.Ended(there)).Should(Equal(before + 1))
		Eventually(s.Ended(cr)).Should(Equal(2))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(regexp.MustCompile(`run (started|succeeded)`).FindAllString(text, -1)).To(Equal(strings.Split(strings.Repeat("run started,run succeeded,", 4)[:4*26-1], ",")))
	})
	row("§2 --proxy-port", "the kubeconfig follows it", func() {
		Expect(lastSaid(s, cr, 1).Server).To(Equal("https://127.0.0.1:" + proxyPort))
	})
})
