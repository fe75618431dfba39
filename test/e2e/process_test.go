package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("the manager's process", func() {
	It("serves probes to everyone and metrics to those who may read them", func(ctx context.Context) {
		namespace, profiles := newNamespace(ctx), freeAddress()
		m := startManager(managerOptions{namespace: namespace, args: []string{"--metrics-secure", "--pprof-bind-address=" + profiles}}).ready("Note")
		Eventually(func() (int, error) { return get(ctx, "http://"+profiles+"/debug/pprof/cmdline", "") }).Should(Equal(http.StatusOK))
		for _, path := range []string{"/healthz", "/readyz"} {
			Eventually(func() (int, error) { return get(ctx, "http://"+m.health+path, "") }).Should(Equal(http.StatusOK))
		}
		metrics := "https://" + m.MetricsAddress() + "/metrics"
		Eventually(func() (int, error) { return get(ctx, metrics, "") }).Should(Equal(http.StatusUnauthorized))
		stranger, reader := tokenOf(ctx, namespace, "stranger", false), tokenOf(ctx, namespace, "reader", true)
		Expect(get(ctx, metrics, stranger)).To(Equal(http.StatusForbidden))
		Eventually(func() (int, error) { return get(ctx, metrics, reader) }).Should(Equal(http.StatusOK))
		_, text, err := request(ctx, metrics, reader)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(
			ContainSubstring(`ansible_operator_watch_ready{GVK="test.ensign.io/v1, Kind=Note"} 1`),
			ContainSubstring(`ansible_operator_build_info{`),
		))
	})

	It("removes what is left of CRs that went while no manager ran", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		first := startManager(managerOptions{namespace: namespace}).ready("Note")
		gone, stays := custom("Note", namespace, "gone", map[string]any{}), custom("Note", namespace, "stays", map[string]any{})
		for _, note := range []*unstructured.Unstructured{gone, stays} {
			Expect(k8s.Create(ctx, note)).To(Succeed())
			expectSuccess(ctx, note)
		}
		first.stop()
		Expect(visible(first.RunDir())).To(ConsistOf(string(gone.GetUID()), string(stays.GetUID())))
		Expect(k8s.Delete(ctx, gone)).To(Succeed())
		startManager(managerOptions{namespace: namespace, home: first.home})
		Eventually(func() []string { return visible(first.RunDir()) }).Should(ConsistOf(string(stays.GetUID())))
	})

	It("works in the layout of projects that were made for the base image", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		startManager(managerOptions{namespace: namespace, dir: projectWith(
			"- {group: test.ensign.io, version: v1, kind: Note, playbook: playbooks/note.yml}\n", map[string]string{
				"playbooks/note.yml":       "- hosts: localhost\n  gather_facts: false\n  roles: [foo]\n",
				"roles/foo/tasks/main.yml": "- assert: {that: text == 'from the CR'}\n",
			})}).ready("Note")
		note := custom("Note", namespace, "layout", map[string]any{"text": "from the CR"})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
	})
})

var _ = Describe("a manager that cannot start", func() {
	DescribeTable("says why and what to do, and ends with 1",
		func(ctx context.Context, options func() managerOptions, texts ...string) {
			said := failsAtStart(ctx, options())
			for _, text := range texts {
				Expect(said).To(ContainSubstring(text))
			}
		},
		Entry("faults in watches.yaml, all of them with their lines", func() managerOptions {
			return managerOptions{dir: projectWith("- {version: v1, kind: A, role: no_such_role}\n- {version: v1, kind: B, playbok: x}\n", nil)}
		}, "watches.yaml:1:", "no_such_role", "watches.yaml:2:", "playbok"),
		Entry("a watches file that is not there", func() managerOptions { return managerOptions{args: []string{"--watches-file=nowhere.yaml"}} }, "nowhere.yaml"),
		Entry("an unknown flag", func() managerOptions { return managerOptions{args: []string{"--no-such-flag"}} }, "no-such-flag"),
		Entry("values of flags that are not allowed, all of them", func() managerOptions {
			return managerOptions{args: []string{"--ansible-verbosity=8", "--ansible-log-events=Some", "--log-format=xml"}}
		}, "--ansible-verbosity=8", "--ansible-log-events", "--log-format=xml"),
		Entry("a kubeconfig that does not connect", func() managerOptions {
			return managerOptions{args: []string{"--kubeconfig=" + deadKubeconfig()}}
		}, "reach the API server", "--kubeconfig"),
		Entry("an occupied port of the API proxy", func() managerOptions {
			return managerOptions{args: []string{"--proxy-port=" + occupiedPort()}}
		}, "--proxy-port"),
		Entry("an occupied port of the probes", func() managerOptions {
			return managerOptions{args: []string{"--health-probe-bind-address=127.0.0.1:" + occupiedPort()}}
		}, "--health-probe-bind-address"),
		Entry("an occupied port of the metrics", func() managerOptions {
			return managerOptions{args: []string{"--metrics-bind-address=127.0.0.1:" + occupiedPort()}}
		}, "--metrics-bind-address"),
		Entry("an occupied port of the metrics of roles", func() managerOptions {
			return managerOptions{args: []string{"--user-metrics-bind-address=127.0.0.1:" + occupiedPort()}}
		}, "--user-metrics-bind-address"),
		Entry("a leader election without a name", func() managerOptions { return managerOptions{args: []string{"--leader-elect"}} }, "--leader-election-id"),
		Entry("no ansible-runner", func() managerOptions { return fakeEnvironment("", "") }, "ansible-runner", "make python"),
		Entry("an ansible-core that is too old", func() managerOptions { return fakeEnvironment("2.18.6", "") }, "2.18.6", "2.19"),
		Entry("an ansible-core that evaluates what a CR says", func() managerOptions { return fakeEnvironment("2.21.5", "42") }, "not safe"),
	)
})

func occupiedPort() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	return port
}

func deadKubeconfig() string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"users":[{"name":"u","user":{}}],"clusters":[{"name":"c","cluster":{"server":"https://%s"}}]}`, freeAddress())
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// get returns the status code of a GET request.
func get(ctx context.Context, url, token string) (int, error) {
	code, _, err := request(ctx, url, token)
	return code, err
}

func request(ctx context.Context, url, token string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	// The endpoint's certificate is made at its start and signed by nobody.
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// tokenOf makes a service account and gives a token of it.
func tokenOf(ctx context.Context, namespace, name string, mayRead bool) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(k8s.Create(ctx, account)).To(Succeed())
	if mayRead {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}
		Expect(k8s.Create(ctx, role)).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role.Name},
		})).To(Succeed())
	}
	wanted := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, account, wanted)).To(Succeed())
	return wanted.Status.Token
}
