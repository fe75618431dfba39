package children

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
	"github.com/ensign-operator/ensign/test/harness"
)

// reader is a user who may follow widgets and config maps, and no secrets, in the
// namespace default.
const (
	reader    = "reader"
	namespace = "default"
)

var (
	widget     = schema.GroupKind{Group: "informers.ensign.io", Kind: "Widget"}
	widgets    = schema.GroupVersionResource{Group: widget.Group, Version: "v1", Resource: "widgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// allow lets the reader list and watch resources.
func allow(ctx context.Context, resources ...schema.GroupVersionResource) {
	GinkgoHelper()
	for _, r := range resources {
		meta := metav1.ObjectMeta{Name: "reads-" + r.Resource}
		Expect(k8s.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{"list", "watch"},
		}}})).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: reader}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		})).To(Succeed())
	}
}

// journal keeps log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, args)
		_, _ = GinkgoWriter.Write([]byte(args + "\n"))
	}, funcr.Options{})
}

// of returns the lines about a resource that have the text.
func (j *journal) of(resource, text string) func() []string {
	return func() []string {
		j.mu.Lock()
		defer j.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(j.lines), func(line string) bool {
			return !strings.Contains(line, `"resource"="`+resource+`"`) || !strings.Contains(line, text)
		})
	}
}

// follow runs a Set as the reader until the spec ends.
func follow() (*informers.Set, *journal) {
	GinkgoHelper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: reader}
	dynamicClient, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	lines := &journal{}
	set := informers.New(informers.Options{Client: dynamicClient, Logger: lines.logger()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- set.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
	})
	return set, lines
}

func live(i *informers.Informer) func(Gomega) {
	return func(g Gomega) {
		g.Expect(i.Err()).NotTo(HaveOccurred())
		g.Expect(i.Synced()).To(BeTrue())
	}
}

func configMap(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
}

var _ = Describe("an informer", Ordered, func() {
	BeforeAll(func(ctx context.Context) { allow(ctx, configMaps, widgets) })

	It("follows what may be read, beside what may not", func(ctx context.Context) {
		set, lines := follow()
		good, release := set.Use(informers.Key{Resource: configMaps, Namespace: namespace}, nil)
		DeferCleanup(release)
		bad, releaseBad := set.Use(informers.Key{Resource: secrets}, nil)
		DeferCleanup(releaseBad)
		Eventually(live(good)).Should(Succeed())
		Eventually(lines.of("secrets", "verbs list and watch on secrets by a ClusterRole")).Should(HaveLen(1))
		Expect(apierrors.IsForbidden(bad.Err())).To(BeTrue(), "%v", bad.Err())

		configMap(ctx, "beside")
		Eventually(func() []string { return good.Store().ListKeys() }).Should(ContainElement(namespace + "/beside"))

		By("allowing it")
		allow(ctx, secrets)
		Eventually(live(bad)).Should(Succeed())
		Eventually(lines.of("secrets", "followed again")).Should(HaveLen(1))
		Expect(lines.of("configmaps", "")()).To(BeEmpty())
	})

	It("follows a kind whose CRD comes, goes and comes again", func(ctx context.Context) {
		set, lines := follow()
		good, release := set.Use(informers.Key{Resource: configMaps}, nil)
		DeferCleanup(release)
		late, releaseLate := set.Use(informers.Key{Resource: widgets}, nil)
		DeferCleanup(releaseLate)
		keys := func() []string { return late.Store().ListKeys() }
		Eventually(lines.of("widgets.informers.ensign.io", "install its CustomResourceDefinition")).Should(HaveLen(1))
		Expect(apierrors.IsNotFound(late.Err())).To(BeTrue(), "%v", late.Err())

		for _, name := range []string{"first", "second"} {
			By("defining the kind for the " + name + " time")
			definition := harness.Definition(widget)
			Expect(k8s.Create(ctx, definition)).To(Succeed())
			Eventually(func() error { return k8s.Create(ctx, harness.Custom(widget, namespace, name, nil)) }).Should(Succeed())
			Eventually(live(late)).Should(Succeed())
			Eventually(keys).Should(ConsistOf(namespace + "/" + name))

			By("deleting its definition")
			Expect(k8s.Delete(ctx, definition)).To(Succeed())
			Eventually(func() bool { return apierrors.IsNotFound(late.Err()) }).Should(BeTrue())
			Eventually(keys).Should(BeEmpty(), "its objects were deleted before it")
		}
		Eventually(live(good)).Should(Succeed())
		configMap(ctx, "meanwhile")
		Eventually(func() []string { return good.Store().ListKeys() }).Should(ContainElement(namespace + "/meanwhile"))
		Expect(lines.of("configmaps", "")()).To(BeEmpty())
	})

	It("ends with its last user", func(ctx context.Context) {
		set, _ := follow()
		key := informers.Key{Resource: configMaps}
		informer, release := set.Use(key, nil)
		_, releaseSecond := set.Use(key, nil)
		Eventually(live(informer)).Should(Succeed())
		release()
		configMap(ctx, "used")
		Eventually(func() []string { return informer.Store().ListKeys() }).Should(ContainElement(namespace + "/used"))
		releaseSecond()
		Expect(informer.Err()).To(HaveOccurred())
		Expect(set.Keys()).To(BeEmpty())
		configMap(ctx, "unused")
		Consistently(func() []string { return informer.Store().ListKeys() }).WithTimeout(time.Second).ShouldNot(ContainElement(namespace + "/unused"))
	})
})
