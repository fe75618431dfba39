package contract

import (
	"context"
	"net"
	"os"
	"os/exec"
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

// helpText is what the manager says of its flags.
func helpText() string {
	GinkgoHelper()
	text, err := exec.Command(filepath.Join(ground.Root, "bin", "manager"), "--help").CombinedOutput()
	Expect(err).NotTo(HaveOccurred())
	return regexp.MustCompile(`\s+`).ReplaceAllString(string(text), " ")
}

var _ = Describe("flags", Ordered, func() {
	var help string
	BeforeAll(func() { help = helpText() })
	DescribeTable("have their defaults", func(name, usual string) {
		Expect(help).To(MatchRegexp(`--` + regexp.QuoteMeta(name) + ` `))
		_, own, _ := strings.Cut(help, " --"+name+" ")
		own, _, _ = strings.Cut(own, " --")
		if usual == "" {
			Expect(own).NotTo(ContainSubstring("(default"))
			return
		}
		Expect(own).To(ContainSubstring("(default " + usual + ")"))
	},
		entry("§2 --watches-file", "./watches.yaml", "watches-file", `"./watches.yaml"`),
		entry("§2 --inject-owner-ref", "true", "inject-owner-ref", "true"),
		entry("§2 --ansible-verbosity", "2", "ansible-verbosity", "2"),
		entry("§2 --reconcile-period", "10h", "reconcile-period", "10h0m0s"),
		entry("§2 --max-concurrent-runs", "from CPU and memory", "max-concurrent-runs", ""),
		entry("§2 --metrics-bind-address", ":8443", "metrics-bind-address", `":8443"`),
		entry("§2 --metrics-secure", "true", "metrics-secure", "true"),
		entry("§2 --metrics-require-rbac", "true", "metrics-require-rbac", "true"),
		entry("§2 --health-probe-bind-address", ":6789", "health-probe-bind-address", `":6789"`),
		entry("§2 --leader-elect", "false", "leader-elect", ""),
		entry("§2 --leader-elect-lease-duration", "15s", "leader-elect-lease-duration", "15s"),
		entry("§2 --leader-elect-lease-duration", "and 10s to renew", "leader-elect-renew-deadline", "10s"),
		entry("§2 --graceful-shutdown-timeout", "30s", "graceful-shutdown-timeout", "30s"),
		entry("§2 --ansible-log-events", "Tasks", "ansible-log-events", `"Tasks"`),
		entry("§2 --proxy-port", "any", "proxy-port", ""),
		entry("§2 --enable-http2", "false", "enable-http2", ""),
		entry("§2 --log-format", "console", "log-format", `"console"`),
		entry("§2 --warm", "true", "warm", "true"),
		entry("§2 --artifacts-max-bytes", "1Gi", "artifacts-max-bytes", "1Gi"),
		entry("§2 --max-verbosity", "2", "max-verbosity", "2"),
		entry("§2 --max-backoff", "5m", "max-backoff", "5m0s"),
		entry("§2 --run-idle-timeout", "none", "run-idle-timeout", ""),
		entry("§2 --proxy-open-port", "none", "proxy-open-port", ""),
		entry("§2 --user-metrics-bind-address", "127.0.0.1:5050", "user-metrics-bind-address", `"127.0.0.1:5050"`),
		entry("§2 --user-metrics-open", "true", "user-metrics-open", "true"),
		entry("§2 --confine-to-namespace", "false", "confine-to-namespace", ""),
	)
})

const faultyWatches = `
- {version: v1, kind: Twice, playbook: say.yml}
- {version: v1, kind: Twice, playbook: say.yml}
- {group: g.io, version: v1, kind: Both, playbook: say.yml}
- {group: g.io, version: v2, kind: Both, playbook: say.yml}
- {version: v1, kind: Choice, role: own, playbook: say.yml}
- {version: v1, kind: Nameless, playbook: say.yml, finalizer: {vars: {a: b}}}
- {version: v1, kind: Pathless, playbook: say.yml, finalizer: {name: a.io/b, role: no_such_role}}
- {version: v1, kind: Misspelt, playbok: say.yml}
- {version: v1, kind: Typed, playbook: say.yml, manageStatus: "often", verbosity: 8, reconcilePeriod: -1s}
- {kind: Versionless, playbook: say.yml}
- {version: v1, playbook: say.yml}
- {version: v1, kind: Absent, playbook: absent.yml}
`

var _ = Describe("faults", Ordered, ContinueOnFailure, func() {
	var (
		s    *site.Site
		code int
		text string
	)
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
		files := settingsProject()
		files["watches.yaml"] = faultyWatches
		s = ground.Site(ctx, files)
		s.Options.Kubeconfig = "/no/such/kubeconfig" // It is not looked for by then.
		code, text = s.FailsAtStart(ctx)
	})
	row("§1 strict", "all at once with their lines, exit 1, before anything is contacted", func() {
		Expect(code).To(Equal(1))
		Expect(text).To(And(MatchRegexp(`watches\.yaml:9: "playbok" is no field`), MatchRegexp(`watches\.yaml:10: manageStatus`), MatchRegexp(`watches\.yaml:10: verbosity.*0 to 7`),
			MatchRegexp(`watches\.yaml:10: reconcilePeriod.*0s or more`), MatchRegexp(`watches\.yaml:13: playbook: "absent.yml" was not found`)))
		Expect(text).NotTo(ContainSubstring("kubeconfig"))
	})
	row("§1 kind twice", "names both lines", func() { Expect(text).To(MatchRegexp(`watches\.yaml:3: kind Twice.*line 2`)) })
	row("§1 two versions", "names both lines", func() { Expect(text).To(MatchRegexp(`watches\.yaml:5: kind Both\.g\.io.*line 4`)) })
	row("§1 role and playbook", "exactly one of them", func() { Expect(text).To(MatchRegexp(`watches\.yaml:6: .*a role \(line 6\) and a playbook`)) })
	row("§1 finalizer name", "required, and paths are checked", func() {
		Expect(text).To(And(MatchRegexp(`watches\.yaml:7: the finalizer's name is missing`), MatchRegexp(`watches\.yaml:8: role: "no_such_role" was not found`)))
	})
	row("§1 version, §1 kind", "required", func() {
		Expect(text).To(And(MatchRegexp(`watches\.yaml:11: version is missing`), MatchRegexp(`watches\.yaml:12: kind is missing`)))
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
		entry("§2 --watches-file", "a file that is not there", given("--watches-file=nowhere.yaml"), "nowhere.yaml"),
		entry("§2 --kubeconfig", "a server that does not answer", func(o *harness.Options) {
			o.Kubeconfig = filepath.Join(s.Dir, "dead")
			text := regexp.MustCompile(`server: .*`).ReplaceAllString(kubectl(context.Background(), "config", "view", "--raw"), "server: https://127.0.0.1:"+freePort())
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
	row("§2 --ansible-log-events, §2 --leader-elect-lease-duration, §2 ANSIBLE_GATHERING, §2 WATCH_NAMESPACE", "settings that can't be, or contradict each other, are all named", func(ctx context.Context) {
		s.Options.Args = []string{
			"--ansible-log-events=Some", "--ansible-verbosity=8", "--reconcile-period=-1s", "--leader-elect", "--leader-election-id=a", "--leader-election-namespace=a", "--leader-elect-renew-deadline=15s",
			"--max-workers=0", "--proxy-port=6789", "--proxy-open-port=6789", "--ansible-args='", "--log-format=xml",
		}
		s.Options.Env = []string{"ANSIBLE_GATHERING=never", "ANSIBLE_INVENTORY=nowhere", "ANSIBLE_DEBUG_LOGS=perhaps", "WATCH_NAMESPACE=a,B"}
		code, text := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		for _, says := range []string{
			`--ansible-log-events: "Some" is none of Nothing, Tasks, Everything`, "--ansible-verbosity=8: allowed is 0 to 7", "--reconcile-period=-1s: allowed is 0s and more",
			"--leader-elect-renew-deadline=15s must be less than --leader-elect-lease-duration=15s", "--max-concurrent-reconciles=0: allowed is 1 to 65536",
			"--proxy-port=6789 and --proxy-open-port=6789 are the same port", "--ansible-args: quote its value", "--log-format=xml: allowed are pretty, console and json",
			"ANSIBLE_GATHERING=never: allowed are implicit, explicit, smart", "ANSIBLE_INVENTORY: name one file or directory", "ANSIBLE_DEBUG_LOGS=perhaps: allowed are true and false",
			`WATCH_NAMESPACE: "B" is no name of a namespace`,
		} {
			Expect(text).To(ContainSubstring(says))
		}
	})
	row("§2 MAX_CONCURRENT_RECONCILES_, §2 ANSIBLE_VERBOSITY_", "values that can't be are all named", func(ctx context.Context) {
		s.Options.Args, s.Options.Env = nil, []string{"ANSIBLE_VERBOSITY_ONE_=8", "WORKER_TWO_=0"}
		s.Write(map[string]string{"watches.yaml": "- {version: v1, kind: One, playbook: say.yml}\n- {version: v1, kind: Two, playbook: say.yml}\n"})
		code, text := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		Expect(text).To(And(ContainSubstring(`ANSIBLE_VERBOSITY_ONE_: "8" is no whole number from 0 to 7`), ContainSubstring(`WORKER_TWO_: "0" is no whole number from 1`)))
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
