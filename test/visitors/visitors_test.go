package visitors

import (
	"context"
	"flag"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	example = "../../examples/visitors"
	// title is one that somebody might take for markup, for a template, or for a variable.
	title = `<b>{{ 7*7 }}</b> $(BACKEND_URL) "&' 007`
)

var (
	waitTimeout = flag.Duration("wait-timeout", harness.WaitTimeout, "when specs that hang fail")
	ground      *site.Ground
	variants    = []string{"ansible", "helm", "go"}
	kind        = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "VisitorsApp"}
)

func TestVisitors(t *testing.T) { site.Run(t, "visitors", *waitTimeout, 50*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{CheckOwnerReferences: true})
})

var _ = Describe("the operators of examples/visitors", func() {
	It("have no faults, and the rights that they need", func(ctx context.Context) {
		for _, variant := range variants {
			Expect(run(ctx, variant, ensign(), "check")).To(ContainSubstring("0 errors, 0 warnings"), variant)
			Expect(run(ctx, variant, ensign(), "rbac", "--diff", "config/rbac")).NotTo(MatchRegexp("(?m)^[+-] "), variant)
		}
	})

	It("take the same spec", func() {
		want := specOf("ansible")
		Expect(want).NotTo(BeEmpty())
		for _, variant := range variants[1:] {
			Expect(cmp.Diff(want, specOf(variant))).To(BeEmpty(), variant)
		}
	})

	It("make the same objects", func(ctx context.Context) {
		want := made(ctx, "ansible")
		Expect(slices.Sorted(maps.Keys(want))).To(Equal([]string{
			"Deployment/lobby-backend", "Deployment/lobby-frontend", "PersistentVolumeClaim/lobby-mysql", "Secret/lobby-mysql",
			"Service/lobby-backend", "Service/lobby-frontend", "Service/lobby-mysql", "StatefulSet/lobby-mysql",
		}))
		for _, variant := range variants[1:] {
			Expect(cmp.Diff(want, made(ctx, variant))).To(BeEmpty(), variant)
		}
	})
})

func ensign() string { return filepath.Join(ground.Root, "bin", "ensign") }

// run returns what a program prints in a variant's project; it has to succeed.
func run(ctx context.Context, variant, name string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = filepath.Join(example, variant)
	command.Env = append(os.Environ(), "KUBECONFIG="+ground.Cluster.Kubeconfig, "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), output)
	return string(output)
}

func definition(variant string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(example, variant, "config/crd/bases/example.com_visitorsapps.yaml"))
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(text, crd)).To(Succeed())
	return crd
}

// specOf returns what a variant's definition says of fields. The defaults of a chart are its own, and
// texts may differ.
func specOf(variant string) map[string]apiextensionsv1.JSONSchemaProps {
	GinkgoHelper()
	all := definition(variant).Spec.Versions[0].Schema.OpenAPIV3Schema
	Expect(all.XValidations).To(HaveLen(1))
	fields := maps.Clone(all.Properties["spec"].Properties)
	for name, field := range fields {
		field.Description, field.Default, field.Format = "", nil, ""
		fields[name] = field
	}
	return fields
}

// made returns the objects that a variant's operator makes for a VisitorsApp, without what the cluster
// or the way of writing them adds. The operator, the VisitorsApp and the objects are gone then.
func made(ctx context.Context, variant string) map[string]any {
	GinkgoHelper()
	crd := definition(variant)
	Expect(harness.Define(ctx, ground.Client, crd)).To(Succeed())
	metrics, end := operator(ctx, variant)
	space := ground.Namespace(ctx)
	app := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"title": title, "size": int64(3)}}}
	app.SetGroupVersionKind(kind)
	app.SetNamespace(space)
	app.SetName("lobby")
	By("a title that no environment variable can hold")
	unfit := app.DeepCopy()
	Expect(unstructured.SetNestedField(unfit.Object, "a\x00b", "spec", "title")).To(Succeed())
	Expect(ground.Client.Create(ctx, unfit)).To(MatchError(ContainSubstring("spec.title")))
	Expect(ground.Client.Create(ctx, app)).To(Succeed())
	found := map[string]any{}
	Eventually(ctx, func(g Gomega) {
		found = objects(ctx, g, space)
		g.Expect(found).To(HaveLen(8))
	}).Should(Succeed())
	password := ground.Kubectl(ctx, "get", "secret", "lobby-mysql", "--namespace="+space, "--output=jsonpath={.data}")
	By("another run, which changes no password")
	ground.Kubectl(ctx, "patch", "visitorsapp", "lobby", "--namespace="+space, "--type=merge", `--patch={"spec": {"size": 2}}`)
	Eventually(ctx, func() string {
		return ground.Kubectl(ctx, "get", "deployment", "lobby-backend", "--namespace="+space, "--output=jsonpath={.spec.replicas}")
	}).Should(Equal("2"))
	Expect(ground.Kubectl(ctx, "get", "secret", "lobby-mysql", "--namespace="+space, "--output=jsonpath={.data}")).To(Equal(password))
	if variant == "ansible" {
		By("a backend that has counted visits, whose signals the role posts")
		tellSignals(ctx, space)
		ground.Kubectl(ctx, "annotate", "visitorsapp", "lobby", "--namespace="+space, "ansible.sdk.operatorframework.io/reconcile-requested-at=now")
		for _, series := range []string{`visitors_requests_total 20`, `visitors_errors_total 1`, `visitors_latency_seconds_sum 0\.25`, `visitors_saturation_ratio_bucket{le="0\.5"} [1-9]`} {
			Eventually(ctx, func() (string, error) { return read(ctx, "http://"+metrics+"/metrics") }).Should(MatchRegexp("(?m)^" + series))
		}
	}
	By("the end")
	ground.Kubectl(ctx, "delete", "visitorsapp", "lobby", "--namespace="+space, "--timeout="+waitTimeout.String())
	Eventually(ctx, func(g Gomega) { g.Expect(objects(ctx, g, space)).To(BeEmpty()) }).Should(Succeed())
	Eventually(ctx, func() string {
		return ground.Kubectl(ctx, "get", "pods,persistentvolumeclaims", "--namespace="+space, "--output=name")
	}).Should(BeEmpty())
	end()
	ground.Delete(ctx, crd)
	ground.Gone(ctx, crd)
	return found
}

// tellSignals gives a backend of the site the address of a server that tells of 20 visits, once. Nothing runs in
// pods here.
func tellSignals(ctx context.Context, space string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.2:8000")
	Expect(err).NotTo(HaveOccurred())
	var asked atomic.Int32
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := `{"requests": 0, "errors": 0, "seconds": 0, "saturation": 0}`
		if r.Method == http.MethodPost && r.URL.Path == "/signals" && asked.Add(1) == 1 {
			answer = `{"requests": 20, "errors": 1, "seconds": 5, "saturation": 0.3}`
		}
		_, _ = io.WriteString(w, answer)
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	pods := &corev1.PodList{}
	Expect(ground.Client.List(ctx, pods, client.InNamespace(space), client.MatchingLabels{"app.kubernetes.io/component": "backend"})).To(Succeed())
	here := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning })
	Expect(here).To(BeNumerically(">=", 0))
	ground.Kubectl(ctx, "patch", "pod", pods.Items[here].Name, "--namespace="+space, "--subresource=status", "--type=merge", `--patch={"status": {"podIP": "127.0.0.2", "podIPs": [{"ip": "127.0.0.2"}]}}`)
}

func read(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// operator runs that of a variant until end is called. That of the role serves metrics.
func operator(ctx context.Context, variant string) (metrics string, end func()) {
	GinkgoHelper()
	return operatorOf(ctx, variant, filepath.Join(example, variant))
}

// operatorOf runs that of a variant with the content of a project.
func operatorOf(ctx context.Context, variant, project string) (metrics string, end func()) {
	GinkgoHelper()
	home, err := os.MkdirTemp("", "visitors") // Short: sockets are below it.
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, home)
	program := filepath.Join(ground.Root, "bin", "manager")
	metrics, err = harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	args := map[string][]string{
		"ansible": {"--metrics-bind-address=" + metrics, "--user-metrics-bind-address=127.0.0.1:0", "--leader-election-namespace=default"},
		"helm":    {"--metrics-bind-address=0", "--user-metrics-bind-address=0", "--leader-election-namespace=default"},
		"go":      {"--metrics-bind-address=0", "--kubeconfig=" + ground.Cluster.Kubeconfig},
	}[variant]
	if variant == "go" {
		program = filepath.Join(home, "manager")
		run(ctx, variant, "go", "build", "-buildvcs=false", "-o", program, "./cmd")
	}
	manager := exec.Command(program, append(args, "--health-probe-bind-address=0")...)
	manager.Dir = project
	manager.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "ANSIBLE_GATHERING=explicit", "KUBECONFIG=" + ground.Cluster.Kubeconfig}
	manager.Stdout, manager.Stderr = GinkgoWriter, GinkgoWriter
	manager.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Expect(manager.Start()).To(Succeed())
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		_ = manager.Process.Signal(syscall.SIGTERM)
		Expect(manager.Wait()).To(Succeed())
	}
	DeferCleanup(func() {
		if !ended {
			ended = true
			_ = manager.Process.Kill()
			_ = manager.Wait()
		}
	})
	return metrics, end
}

// objects returns those of a site that are there, comparable.
func objects(ctx context.Context, g Gomega, space string) map[string]any {
	found := map[string]any{}
	for _, of := range ofSites {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		g.Expect(ground.Client.List(ctx, list, client.InNamespace(space), client.MatchingLabels{"app.kubernetes.io/name": "visitors"})).To(Succeed())
		for i := range list.Items {
			object := &list.Items[i]
			found[object.GetKind()+"/"+object.GetName()] = saidOf(g, object)
		}
	}
	return found
}

// saidOf returns what the author of an operator has said of an object.
func saidOf(g Gomega, object *unstructured.Unstructured) map[string]any {
	g.Expect(object.GetOwnerReferences()).To(HaveLen(1))
	owner := object.GetOwnerReferences()[0]
	g.Expect(owner.Kind + "/" + owner.Name).To(Equal("VisitorsApp/lobby"))
	labels := object.GetLabels()
	for _, ofHelm := range []string{"app.kubernetes.io/managed-by", "helm.sdk.operatorframework.io/chart"} {
		delete(labels, ofHelm)
	}
	said := map[string]any{"labels": labels, "spec": object.Object["spec"]}
	if data, ok := object.Object["data"].(map[string]any); ok {
		said["keys"] = slices.Sorted(maps.Keys(data))
	}
	unstructured.RemoveNestedField(object.Object, "spec", "volumeName")
	if spec, ok := object.Object["spec"].(map[string]any); ok && spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	return said
}
