package children

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// listener stands between a proxy and the API server, and keeps the requests that pass it.
type listener struct {
	mu            sync.Mutex
	writes, reads []string
}

// listenTo starts a listener for the cluster.
func listenTo(config *rest.Config) (*listener, *rest.Config) {
	GinkgoHelper()
	target, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	l := &listener{}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		if r.Method == http.MethodGet {
			l.reads = append(l.reads, r.URL.RequestURI())
		} else {
			l.writes = append(l.writes, r.Method+" "+r.URL.EscapedPath())
		}
		l.mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	return l, &rest.Config{Host: server.URL}
}

func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.writes
	l.writes = nil
	return all
}

// program runs a program of a run.
func program(ctx context.Context, kubeconfig, name string, args ...string) (string, error) {
	GinkgoHelper()
	home := filepath.Dir(kubeconfig)
	cmd := exec.CommandContext(ctx, filepath.Join(ground.Root, name), args...)
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + filepath.Join(ground.Root, ".venv", "bin") + ":" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8",
		"KUBECONFIG=" + kubeconfig, "K8S_AUTH_KUBECONFIG=" + kubeconfig, "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=0",
	}
	out, err := cmd.CombinedOutput()
	GinkgoWriter.Printf("%s %v\n%s\n", name, args, out)
	return string(out), err
}

// odd are values of a CR that a role takes for a name or a namespace.
var odd = []string{".", "..", "../", "...", "%2e%2e", "a b", "*", "a%2fb"}

// names has a task for each kind of place where a role may use such a value.
const names = `
- hosts: localhost
  gather_facts: false
  tasks:
  - {kubernetes.core.k8s: {state: absent, api_version: v1, kind: ConfigMap, namespace: %[1]q, name: "{{ item }}"}, loop: "{{ odd }}", ignore_errors: true}
  - {kubernetes.core.k8s: {state: patched, api_version: v1, kind: ConfigMap, namespace: %[1]q, name: "{{ item }}", definition: {metadata: {labels: {reached: "yes"}}}}, loop: "{{ odd[:2] }}", ignore_errors: true}
  - {kubernetes.core.k8s: {state: absent, api_version: v1, kind: ConfigMap, namespace: "{{ item }}", name: meant}, loop: "{{ odd[:2] }}", ignore_errors: true}
  - {kubernetes.core.k8s: {state: absent, api_version: v1, kind: "{{ item }}", namespace: %[1]q, name: meant}, loop: ["..", "../Secret"], ignore_errors: true}
  - {kubernetes.core.k8s: {state: absent, api_version: "{{ item }}", kind: ConfigMap, namespace: %[1]q, name: meant}, loop: ["..", "v1/.."], ignore_errors: true}
`

var _ = Describe("a value that is not a name", Ordered, func() {
	var (
		l          *listener
		namespace  string
		kubeconfig string
		bystanders []client.Object
	)
	BeforeAll(func(ctx context.Context) {
		var config *rest.Config
		l, config = listenTo(cluster.Config)
		namespace = ground.Namespace(ctx)
		bystanders = []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bystander"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bystander"}},
		}
		for _, object := range bystanders {
			Expect(k8s.Create(ctx, object)).To(Succeed())
		}
		bystanders = append(bystanders, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		text, revoke, err := startProxy(config).Grant(access.Owner{GVK: box.WithVersion("v1"), Namespace: namespace, Name: "cr", UID: "none"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(revoke)
		dir := GinkgoT().TempDir()
		kubeconfig = filepath.Join(dir, "kubeconfig")
		Expect(os.WriteFile(kubeconfig, text, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "names.yml"), fmt.Appendf(nil, names, namespace), 0o600)).To(Succeed())
	})
	// nothingElse fails if a write has reached the API server that is none of a ConfigMap with such a
	// name or in such a namespace, or if somebody else's object is not as it was.
	nothingElse := func(ctx context.Context) {
		GinkgoHelper()
		var meant []string
		for _, name := range append(slices.Clone(odd), "meant") {
			meant = append(meant, "/api/v1/namespaces/"+url.PathEscape(name)+"/configmaps/meant")
			meant = append(meant, strings.ReplaceAll("/api/v1/namespaces/"+namespace+"/configmaps/"+url.PathEscape(name), "%25", "%"))
		}
		for _, write := range l.take() {
			_, path, _ := strings.Cut(write, " ")
			Expect(meant).To(ContainElement(path), write)
			Expect(path).NotTo(HaveSuffix("/"))
		}
		for _, object := range bystanders {
			before := object.GetResourceVersion()
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			Expect(object.GetDeletionTimestamp()).To(BeNil())
			Expect(object.GetLabels()).NotTo(HaveKey("reached"))
			if before != "" {
				Expect(object.GetResourceVersion()).To(Equal(before))
			}
		}
	}

	// Without the guard of names that runs have, which guard_test.go shows.
	It("reaches nothing else by kubernetes.core, and the task says why", Label("long"), func(ctx context.Context) {
		values := fmt.Sprintf(`{"odd": [%s]}`, `"`+strings.Join(odd, `","`)+`"`)
		said, err := program(ctx, kubeconfig, ".venv/bin/ansible-playbook", "-i", "localhost,", "-c", "local", "-e", values, "names.yml")
		Expect(err).NotTo(HaveOccurred(), said)
		Expect(said).To(ContainSubstring("ends with a slash: is the name of an object or a namespace empty"))
		nothingElse(ctx)
	})

	It("reaches nothing else by kubectl and helm", func(ctx context.Context) {
		for _, value := range append(odd, "") {
			for _, args := range [][]string{
				{"-n", namespace, "delete", "configmap", "--wait=false", "--", value},
				{"-n", value, "delete", "configmap", "--wait=false", "meant"},
			} {
				_, _ = program(ctx, kubeconfig, "bin/controlplane/kubectl", args...)
			}
			_, _ = program(ctx, kubeconfig, "bin/tools/helm", "-n", namespace, "uninstall", value)
		}
		nothingElse(ctx)
	})
})

var _ = Describe("a run that acts as another account", func() {
	It("has that account's rights, and the object is its CR's", func(ctx context.Context) {
		namespace := ground.Namespace(ctx)
		r := newRun(ctx, box, namespace, "cr")
		Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weak"}})).To(Succeed())
		as := []string{"Impersonate-User", "system:serviceaccount:" + namespace + ":weak"}
		collection := "/api/v1/namespaces/" + namespace + "/configmaps"
		child := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "c"}}
		code, refused := r.Ask(ctx, http.MethodPost, collection, child, as...)
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(refused.Object["message"]).To(ContainSubstring(as[1]))

		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weak"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update"}}}}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weak"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "weak"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "weak"}},
		}
		Expect(k8s.Create(ctx, role)).To(Succeed())
		Expect(k8s.Create(ctx, binding)).To(Succeed())
		Eventually(ctx, func() int { code, _ := r.Ask(ctx, http.MethodPost, collection, child, as...); return code }).Should(Equal(http.StatusCreated))
		got := r.Do(ctx, http.MethodPut, collection+"/c", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "c"}, "data": object{"a": "b"}}, as...)
		references, _ := r.ours(got)
		Expect(references).To(ConsistOf(r.reference()))
		code, _ = r.Ask(ctx, http.MethodDelete, collection+"/c", "", as...)
		Expect(code).To(Equal(http.StatusForbidden))
	})
})
