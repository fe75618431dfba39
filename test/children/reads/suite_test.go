package reads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/proxy"
	"github.com/ensign-operator/ensign/internal/readcache"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// patience is the deadline for what should take seconds, on machines that are
	// busy with something else.
	patience = 2 * time.Minute
	interval = 50 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	k8s     client.Client
	root    string // of the repository
	widget  = schema.GroupKind{Group: "reads.ensign.io", Kind: "Widget"}
)

func TestReads(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	RunSpecs(t, "reads")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	root, err = filepath.Abs("../../..")
	Expect(err).NotTo(HaveOccurred())
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.New(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Create(ctx, harness.Definition(widget))).To(Succeed())
	Eventually(func() error {
		return k8s.Create(ctx, harness.Custom(widget, "default", "first", map[string]any{"size": int64(1)}))
	}).Should(Succeed())
})

// way is the way of runs to the API, with a cache.
type way struct {
	proxy *proxy.Proxy
	cache *readcache.Cache

	answered atomic.Int64
}

// open makes a way to the API server as a configuration says, until the spec ends.
func open(config *rest.Config, options readcache.Options) *way {
	GinkgoHelper()
	w := &way{}
	options.MaxBytes, options.Logger = 64<<20, GinkgoLogr
	options.Observe = func(result readcache.Result) {
		if result == readcache.Hit {
			w.answered.Add(1)
		}
	}
	var err error
	w.cache, err = readcache.New(config, options)
	Expect(err).NotTo(HaveOccurred())
	w.proxy, err = proxy.New(config, proxy.Options{
		InjectOwnerRef: true, Reader: w.cache, Followers: []access.Follower{w.cache}, Logger: GinkgoLogr,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- w.cache.Start(ctx) }()
	go func() { ended <- w.proxy.Server().Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		for range 2 {
			Eventually(ended).Should(Receive(BeNil()))
		}
	})
	return w
}

// hits is how many reads were answered from memory.
func (w *way) hits() int { return int(w.answered.Load()) }

// run is a run with a token of its own.
type run struct {
	kubeconfig string
	// home is where clients keep what they have discovered.
	home string
	host string
	http *http.Client
	end  func()
}

// grant lets a run begin whose CR is a widget.
func (w *way) grant(ctx context.Context) *run {
	GinkgoHelper()
	cr := harness.Custom(widget, "default", "first", nil)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
	kubeconfig, end, err := w.proxy.Grant(access.Owner{GVK: cr.GroupVersionKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID()})
	Expect(err).NotTo(HaveOccurred())
	home := GinkgoT().TempDir()
	path := filepath.Join(home, "kubeconfig")
	Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	httpClient, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	return &run{path, home, config.Host, httpClient, end}
}

// answer is what a server says to a request.
type answer struct {
	code     int
	cached   bool
	warnings []string
	body     map[string]any
}

func (r *run) do(ctx context.Context, method, path, contentType, body string) answer {
	GinkgoHelper()
	return do(ctx, r.http, method, r.host+path, contentType, body)
}

func (r *run) get(ctx context.Context, path string) answer {
	GinkgoHelper()
	return r.do(ctx, http.MethodGet, path, "", "")
}

// live asks the API server itself.
func live(ctx context.Context, path string) map[string]any {
	GinkgoHelper()
	httpClient, err := rest.HTTPClientFor(cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	return do(ctx, httpClient, http.MethodGet, cluster.Config.Host+path, "", "").body
}

func do(ctx context.Context, c *http.Client, method, url, contentType, body string) answer {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	a := answer{code: response.StatusCode, cached: response.Header.Get("X-Cache") == "HIT", warnings: response.Header.Values("Warning")}
	Expect(json.Unmarshal(content, &a.body)).To(Succeed(), "%s", content)
	return a
}

// warm reads until the answer comes from memory.
func (r *run) warm(ctx context.Context, path string) map[string]any {
	GinkgoHelper()
	var got answer
	Eventually(func() bool {
		got = r.get(ctx, path)
		return got.cached
	}).Should(BeTrue(), path)
	return got.body
}

// program runs a program as the run and gives its output.
func (r *run) program(ctx context.Context, input, name string, args ...string) string {
	GinkgoHelper()
	output, err := r.try(ctx, input, name, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %v: %s", name, args, output)
	return output
}

func (r *run) try(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig, "K8S_AUTH_KUBECONFIG="+r.kubeconfig, "HOME="+r.home, "TMPDIR="+r.home)
	cmd.Stdin = bytes.NewBufferString(input)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// space makes a namespace for a spec.
func space(ctx context.Context, name string) string {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Eventually(func() error { // What each namespace comes to have is counted among its config maps.
		return k8s.Get(ctx, client.ObjectKey{Namespace: name, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	}).Should(Succeed())
	return name
}

// fill makes so many config maps, named one-000 and so on.
func fill(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	for i := range n {
		Expect(k8s.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("one-%03d", i), Labels: map[string]string{"app": "one", "number": fmt.Sprint(i)}},
			Data:       map[string]string{"number": fmt.Sprint(i)},
		})).To(Succeed())
	}
}
