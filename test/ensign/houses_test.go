package ensign

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a manager as a Go program has it", func() {
	It("shares a process with another one, and is stopped alone", func(ctx context.Context) {
		one := newHouse(ctx, roleFor(note))
		other := newHouse(ctx, roleFor(letter))
		one.start()
		other.start()
		one.reconciled(ctx, note, "first", map[string]any{"text": "one"})
		other.reconciled(ctx, letter, "first", map[string]any{"text": "other"})
		By("having logs and metrics of its own")
		Expect(one.log.String()).To(And(ContainSubstring(`"cr"="`+one.namespace+`/first"`), Not(ContainSubstring(other.namespace))))
		Expect(other.log.String()).To(And(ContainSubstring(`"cr"="`+other.namespace+`/first"`), Not(ContainSubstring(one.namespace))))
		Expect(kindsCounted(one)).To(ConsistOf(note.WithVersion("v1").String()))
		Expect(kindsCounted(other)).To(ConsistOf(letter.WithVersion("v1").String()))
		By("losing its earlier objects")
		one.stop()
		Eventually(one.ended).Should(BeClosed())
		Expect(one.err).NotTo(HaveOccurred())
		Expect(kindsCounted(one)).To(BeEmpty())
		By("leaving the other one alone")
		other.reconciled(ctx, letter, "second", map[string]any{"text": "other"})
	})

	It("says what a process cannot have twice", func(ctx context.Context) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		o, e, first := settings(ctx, roleFor(note))
		first.furnish(ctx, o, e).start()
		Eventually(first.log.String).Should(ContainSubstring("watching"))
		for field, change := range map[string]func(*ctrl.Options, *ensign.Options){
			"RunDir":     func(_ *ctrl.Options, another *ensign.Options) { another.RunDir = e.RunDir },
			"Registerer": func(_ *ctrl.Options, another *ensign.Options) { another.Registerer = e.Registerer },
			"ProxyPort": func(_ *ctrl.Options, another *ensign.Options) {
				another.ProxyPort = listener.Addr().(*net.TCPAddr).Port
			},
			"ctrl.Options.HealthProbeBindAddress": func(another *ctrl.Options, _ *ensign.Options) {
				another.HealthProbeBindAddress = listener.Addr().String()
			},
			"UserMetricsBindAddress": func(_ *ctrl.Options, another *ensign.Options) {
				another.UserMetricsBindAddress = listener.Addr().String()
			},
		} {
			o, e, second := settings(ctx, roleFor(letter))
			change(&o, &e)
			err := second.furnish(ctx, o, e).Start(ctx)
			named, ok := errors.AsType[*ensign.Error](err)
			Expect(ok).To(BeTrue(), "%s: %v", field, err)
			Expect(named.Field).To(Equal(field), "%v", err)
		}
	})

	It("has the program's own reconcilers, which see whole objects of watched kinds", func(ctx context.Context) {
		h := newHouse(ctx, roleFor(note))
		whole := make(chan string, 100)
		kind := &unstructured.Unstructured{}
		kind.SetGroupVersionKind(note.WithVersion("v1"))
		Expect(ctrl.NewControllerManagedBy(h).For(kind).Named("own").Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			cr := kind.DeepCopy()
			if err := h.GetCache().Get(ctx, r.NamespacedName, cr); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			text, _, err := unstructured.NestedString(cr.Object, "spec", "text")
			whole <- text
			return reconcile.Result{}, err
		}))).To(Succeed())
		h.start()
		cr := h.reconciled(ctx, note, "seen", map[string]any{"text": "all of it"})
		Eventually(whole).Should(Receive(Equal("all of it")))
		written := &corev1.ConfigMap{}
		Expect(h.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(cr), written)).To(Succeed())
		Expect(written.Data).To(HaveKeyWithValue("text", "all of it"))
	})

	It("needs no Python for charts alone", func(ctx context.Context) {
		o, e, h := settings(ctx, nil)
		Expect(os.CopyFS(e.Dir, os.DirFS("../../examples/hello"))).To(Succeed())
		e.Environ = []string{"PATH=" + GinkgoT().TempDir(), "HOME=" + GinkgoT().TempDir()}
		h.furnish(ctx, o, e).start()
		h.reconciled(ctx, hello, "lonely", map[string]any{"replicaCount": int64(1)})
		Expect(h.log.String()).NotTo(ContainSubstring("ansible"))
		By("as a program too")
		s := ground.Site(ctx, nil)
		Expect(os.CopyFS(s.Options.Project, os.DirFS("../../examples/hello"))).To(Succeed())
		s.Options.Env = append(s.Options.Env, e.Environ[0])
		s.Start(ctx, hello.Kind)
	})

	It("changes nothing before its content is in order", func(ctx context.Context) {
		o, e, h := settings(ctx, nil)
		Expect(os.CopyFS(e.Dir, os.DirFS("../../examples/hello"))).To(Succeed())
		e.Executable = filepath.Join(GinkgoT().TempDir(), "program")
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "house", h.namespace
		Expect(h.furnish(ctx, o, e).Start(ctx)).To(MatchError(ContainSubstring("chart-exec")))
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "house-seal"}, &corev1.Secret{})).NotTo(Succeed())
		cr := harness.Custom(hello, h.namespace, "untouched", map[string]any{"replicaCount": int64(1)})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Expect(cr.GetFinalizers()).To(BeEmpty())
	})
})

func newHouse(ctx context.Context, files map[string]string) *house {
	GinkgoHelper()
	o, e, h := settings(ctx, files)
	return h.furnish(ctx, o, e)
}

// kindsCounted are the kinds of which a manager has metrics.
func kindsCounted(h *house) []string {
	GinkgoHelper()
	families, err := h.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "GVK" {
					found[label.GetValue()] = true
				}
			}
		}
	}
	var kinds []string
	for kind := range found {
		kinds = append(kinds, kind)
	}
	return kinds
}
