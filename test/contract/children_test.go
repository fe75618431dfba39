package contract

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const heldWatches = `
- {group: held.example.com, version: v1, kind: Box, playbook: hold.yml, watchClusterScopedResources: true}
- {group: held.example.com, version: v1, kind: Tank, playbook: hold.yml, selector: {matchLabels: {place: "${PLACE}"}}}
- {group: held.example.com, version: v1, kind: Fenced, playbook: hold.yml, confineToNamespace: true}
`

// work is three live runs of one manager, and the way to its API without a token.
type work struct {
	*site.Site

	box, tank, fenced *held
	openPort          string
}

var (
	box    = schema.GroupKind{Group: "held.example.com", Kind: "Box"}
	tank   = schema.GroupKind{Group: "held.example.com", Kind: "Tank"}
	fenced = schema.GroupKind{Group: "held.example.com", Kind: "Fenced"}
)

var _ = Describe("requests of runs to the API", Ordered, ContinueOnFailure, func() {
	w := &work{}
	BeforeAll(func(ctx context.Context) {
		tanks := harness.Definition(tank)
		tanks.Spec.Scope = apiextensionsv1.ClusterScoped
		ground.Define(ctx, harness.Definition(box), tanks, harness.Definition(fenced))
		w.Site = holder(ctx, heldWatches)
		w.openPort = freePort()
		w.Options.Namespace = "" // For children elsewhere.
		w.Options.Args = append(w.Options.Args, "--proxy-open-port="+w.openPort)
		w.Start(ctx, "Box", "Tank", "Fenced")
		crs := []*unstructured.Unstructured{
			harness.Custom(box, w.Namespace, "box", nil), harness.Custom(tank, "", w.Namespace, nil), harness.Custom(fenced, w.Namespace, "fenced", nil),
		}
		for _, cr := range crs {
			cr.SetLabels(map[string]string{"place": w.Namespace})
			w.Create(ctx, cr)
		}
		w.box, w.tank, w.fenced = hold(w.Site, crs[0]), hold(w.Site, crs[1]), hold(w.Site, crs[2])
	})
	ownershipRows(w)
	proxyRows(w)
	afterwardsRows(w)
})

func ownershipRows(w *work) {
	row("§7 owner reference, §7 annotations", "by the manager's own proxy: see test/children", func(ctx context.Context) {
		const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		near := w.box.Do(ctx, http.MethodPost, configMaps(w.Namespace), configMap("near", "1"))
		Expect(w.box.marks(near)).To(Equal("reference"))
		Expect(w.box.marks(w.box.Do(ctx, http.MethodPost, roles, clusterRole("box-"+w.Namespace)))).To(Equal("annotations"))
		Expect(w.tank.marks(w.tank.Do(ctx, http.MethodPost, roles, clusterRole("tank-"+w.Namespace)))).To(Equal("reference"))
	})
}

// afterwardsRows are those about the end of the runs, and what comes after it.
func afterwardsRows(w *work) {
	row("§7 own writes, §7 what Kubernetes writes", "bring no CR back: one run each", func(ctx context.Context) {
		deployment := w.box.Do(ctx, http.MethodPost, "/apis/apps/v1/namespaces/"+w.Namespace+"/deployments", deployment("web"))
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
			return deployment.GetAnnotations(), err
		}).Should(HaveKeyWithValue("deployment.kubernetes.io/revision", "1"))
		Eventually(ctx, func(ctx context.Context) (int64, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
			count, _, _ := unstructured.NestedInt64(deployment.Object, "status", "availableReplicas")
			return count, err
		}).Should(Equal(int64(1)))
		w.Watched(ctx, "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io")
		for _, h := range []*held{w.box, w.tank, w.fenced} {
			h.release()
		}
		for _, h := range []*held{w.box, w.tank, w.fenced} {
			Eventually(w.Ended(h.cr)).Should(Equal(1))
		}
		w.Settles(w.box.cr, 1)
		Expect(w.Runs(w.tank.cr)()).To(Equal(1))
	})
	row("§8 token", "is dead when its run has ended", func(ctx context.Context) {
		code, _ := w.box.Ask(ctx, http.MethodGet, configMaps(w.Namespace), nil)
		Expect(code).To(Equal(http.StatusUnauthorized))
	})
	row("§7 drift", "a change of a child brings its CR back, and no other", func(ctx context.Context) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tank-" + w.Namespace}}
		Expect(k8s.Patch(ctx, role, client.RawPatch("application/merge-patch+json", []byte(`{"rules": []}`)))).To(Succeed())
		w.Settles(w.tank.cr, 2)
		Expect(w.Runs(w.box.cr)()).To(Equal(1))
	})
	row("§7 restart, §8 --proxy-open-port", "the watches exist again before the first drift; no open port unless asked for", func(ctx context.Context) {
		Expect(w.Stop()).To(Succeed())
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "ensign-children"}}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(record), record)).To(Succeed())
		w.Options.Args = slices.DeleteFunc(w.Options.Args, func(arg string) bool { return strings.HasPrefix(arg, "--proxy-open-port") })
		w.Start(ctx, "Box", "Tank", "Fenced")
		_, err := net.Dial("tcp", "127.0.0.1:"+w.openPort)
		Expect(err).To(MatchError(syscall.ECONNREFUSED))
		w.Watched(ctx, "configmaps")
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "near"}}
		Expect(k8s.Delete(ctx, child)).To(Succeed())
		w.Settles(w.box.cr, 1)
		Expect(w.Runs(w.tank.cr)()).To(BeZero())
	})
}

func clusterRole(name string) map[string]any {
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
	}
}

// deployment has one replica, of nothing.
func deployment(name string) map[string]any {
	labels := map[string]any{"app": name}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nothing"}}},
			},
		},
	}
}
