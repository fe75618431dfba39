package charts

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// ledgered returns a site whose operator keeps its ledger in a namespace of its own, and a client of a
// tenant, whose Role in the site's namespace allows Secrets and the CRs and nothing else.
func ledgered(ctx context.Context, templates map[string]string, fields string) (*site.Site, client.Client) {
	GinkgoHelper()
	s := charted(ctx, templates, fields)
	s.Options.Args = append(s.Options.Args, "--leader-election-namespace="+ground.Namespace(ctx))
	user := "tenant-" + s.Namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "tenant"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{hello.Group}, Resources: []string{"hellos", "hellos/status"}, Verbs: []string{"*"}},
	}}
	s.Create(ctx, role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
	config := rest.CopyConfig(ground.Cluster.Config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	tenant, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return s, tenant
}

// ledgerOf returns the namespace of the ledger of the site's operator.
func ledgerOf(s *site.Site) string {
	return strings.TrimPrefix(s.Options.Args[len(s.Options.Args)-1], "--leader-election-namespace=")
}

// loseLedger deletes all entries of the site's operator.
func loseLedger(ctx context.Context, s *site.Site) {
	GinkgoHelper()
	var entries corev1.ConfigMapList
	Expect(k8s.List(ctx, &entries, client.InNamespace(ledgerOf(s)), client.HasLabels{"ensign-ledger"})).To(Succeed())
	Expect(entries.Items).NotTo(BeEmpty())
	for i := range entries.Items {
		Expect(k8s.Delete(ctx, &entries.Items[i])).To(Succeed())
	}
}

// recordOf reads a record of a release.
func recordOf(ctx context.Context, s *site.Site, name string, version int) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(objectNamed(s, fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, version), secret)(ctx)).To(Succeed())
	return secret
}

// again makes an object one that can be created anew.
func again(secret *corev1.Secret) *corev1.Secret {
	secret.ResourceVersion, secret.UID = "", ""
	return secret
}

func specified(ctx context.Context, s *site.Site, cr *unstructured.Unstructured, spec string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))).To(Succeed())
	Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
}

func pausedAnd(ctx context.Context, cr *unstructured.Unstructured, value string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/paused":`+value+`}}}`)))).To(Succeed())
}

// versioned has an object in its namespace, and a PriorityClass with a name of each spec.
var versioned = map[string]string{
	"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" }}\n  told: \"{{ .Release.IsInstall }}\""),
	"p.yaml": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: {{ .Release.Namespace }}-{{ .Release.Name }}-{{ .Values.a | default \"b\" }}}\nvalue: 1\n",
	"h.yaml": "{{ if .Values.hooked }}" + configMap("hook", `{helm.sh/hook: "pre-install,pre-upgrade,pre-delete"}`, "a: \"{{ .Release.IsInstall }}\"") + "{{ end }}",
}

var _ = Describe("a tenant that may write Secrets and CRs", func() {
	It("cannot have the manager go on from an older record", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "older")
		specified(ctx, s, cr, `{"a":"c"}`)
		victim := priorityClass(s, "older-b") // The first revision had one of its name.
		victim.Value = 1
		s.Create(ctx, victim)
		old := recordOf(ctx, s, "older", 1)
		old.Labels["status"] = "deployed"
		Expect(tenant.Update(ctx, old)).To(Succeed())
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "older", 2))).To(Succeed())
		specified(ctx, s, cr, `{"a":"d"}`)
		Expect(isGone(victim)(ctx)).To(Succeed(), "an object of somebody else was deleted")
		Expect(isGone(priorityClass(s, "older-c"))(ctx)).To(site.BeGone(), "the object of the revision before goes")
		remove(ctx, cr)
		Expect(isGone(victim)(ctx)).To(Succeed())
		Expect(isGone(priorityClass(s, "older-d"))(ctx)).To(site.BeGone())
		Expect(k8s.Delete(ctx, victim)).To(Succeed())
	})

	DescribeTable("cannot have it believe a record of a CR that is deleted", func(ctx context.Context, early bool) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "again")
		for _, a := range []string{"c", "d"} {
			specified(ctx, s, cr, `{"a":"`+a+`"}`)
		}
		third := recordOf(ctx, s, "again", 3)
		remove(ctx, cr)
		victim := priorityClass(s, "again-d")
		victim.Value = 1
		s.Create(ctx, victim)
		if early {
			Expect(tenant.Create(ctx, again(third))).To(Succeed())
		}
		cr = deployedBy(ctx, s, hello, "again")
		if !early {
			Expect(tenant.Create(ctx, again(third))).To(Succeed())
		}
		specified(ctx, s, cr, `{"a":"e"}`)
		remove(ctx, cr)
		Expect(isGone(victim)(ctx)).To(Succeed(), "an object of somebody else was deleted")
		Expect(isGone(priorityClass(s, "again-e"))(ctx)).To(site.BeGone())
		Expect(statuses(s, "again")(ctx)).To(BeEmpty())
		Expect(k8s.Delete(ctx, victim)).To(Succeed())
	}, Entry("beside one of the new CR", false), Entry("before there is a new CR", true))

	It("cannot have it believe a record of an earlier life of the same CR", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "life")
		first := recordOf(ctx, s, "life", 1)
		pausedAnd(ctx, cr, `"true"`)
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "life", 1))).To(Succeed())
		loseLedger(ctx, s)
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"c"},"metadata":{"annotations":null}}`)))).To(Succeed())
		Eventually(ctx, statuses(s, "life")).Should(Equal(map[string]string{"1": "deployed"}))
		succeeded(ctx, s, cr)
		pausedAnd(ctx, cr, `"true"`)
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "life", 1))).To(Succeed())
		Expect(tenant.Create(ctx, again(first))).To(Succeed())
		pausedAnd(ctx, cr, `null`)
		specified(ctx, s, cr, `{"a":"d"}`)
		Expect(isGone(priorityClass(s, "life-c"))(ctx)).To(site.BeGone(), "the object of the revision that the ledger knows")
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "life-d"))(ctx)).To(site.BeGone())
		Expect(k8s.Delete(ctx, priorityClass(s, "life-b"))).To(Succeed()) // Of the life that nobody knows any more.
	})

	It("cannot leave an object behind by a record that it deletes", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "behind")
		specified(ctx, s, cr, `{"a":"c"}`)
		pausedAnd(ctx, cr, `"true"`)
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "behind", 2))).To(Succeed())
		Expect(tenant.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "behind-c"))(ctx)).To(site.BeGone())
	})

	It("cannot end a deletion while the account may not read an object", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		proxy := behindProxy(s)
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "unread")
		pausedAnd(ctx, cr, `"true"`)
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "unread", 1))).To(Succeed())
		allow := proxy.Add(apiproxy.Rule{
			Match: func(r apiproxy.Request) bool {
				return r.Resource == "priorityclasses" && (r.Verb == "get" || r.Verb == "list")
			},
			Fault: apiproxy.Refuse(http.StatusForbidden),
		})
		Expect(tenant.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UninstallError"), HaveField("Message", ContainSubstring("cannot be read"))))
		Expect(isGone(priorityClass(s, "unread-b"))(ctx)).To(Succeed())
		allow()
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "unread-b"))(ctx)).To(site.BeGone())
	})

	It("has the deletion wait where a record has hooks that it deletes", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "  reconcilePeriod: 1h\n  watchDependentResources: false\n")
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "hooked", map[string]any{"hooked": true})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(tenant.Delete(ctx, recordOf(ctx, s, "hooked", 1))).To(Succeed())
		Expect(tenant.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(ContainSubstring("the record of revision 1"), ContainSubstring("abandon"))))
		Expect(isGone(priorityClass(s, "hooked-b"))(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/uninstall-disable-hooks":"true"}}}`)))).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "hooked-b"))(ctx)).To(site.BeGone())
	})

	It("cannot lead a deletion elsewhere by the status", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "led")
		pausedAnd(ctx, cr, `"true"`)
		Expect(tenant.Status().Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"deployedRelease":{"name":"other","namespace":"default"}}}`)))).To(Succeed())
		Expect(tenant.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "led-b"))(ctx)).To(site.BeGone())
		Expect(statuses(s, "led")(ctx)).To(BeEmpty())
	})

	DescribeTable("cannot have a release installed again by the state of a record", func(ctx context.Context, status string) {
		s, tenant := ledgered(ctx, versioned, "  reconcilePeriod: 500ms\n")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "stated")
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "stated-a", made)(ctx)).To(Succeed())
		record := recordOf(ctx, s, "stated", 1)
		record.Labels["status"] = status
		Expect(tenant.Update(ctx, record)).To(Succeed())
		Eventually(ctx, statuses(s, "stated")).Should(Equal(map[string]string{"1": "deployed"}))
		answered(ctx, s, cr, status)
		after := &corev1.ConfigMap{}
		Expect(objectNamed(s, "stated-a", after)(ctx)).To(Succeed())
		Expect(after.UID).To(Equal(made.UID))
		Expect(after.ResourceVersion).To(Equal(made.ResourceVersion))
		remove(ctx, cr)
	}, Entry("failed", "failed"), Entry("uninstalling", "uninstalling"), Entry("uninstalled", "uninstalled"), Entry("pending-install", "pending-install"))

	It("cannot hide the deployed revision behind attempts that fail", func(ctx context.Context) {
		s, _ := ledgered(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "told: \"{{ .Release.IsInstall }}\""),
			"b.yaml": "{{ if .Values.bad }}" + configMap("NO-NAME", "{}", "a: b") + "{{ end }}",
			"h.yaml": configMap("NO-HOOK", "{helm.sh/hook: pre-rollback}", "a: b"), // So the way back fails, too.
		}, "  maxHistory: 0\n")
		s.Options.Args = append(s.Options.Args, "--max-backoff=1s")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "behind")
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"bad":true}}`)))).To(Succeed())
		Eventually(ctx, statuses(s, "behind")).Should(HaveKey("24"))
		specified(ctx, s, cr, `{"bad":null,"a":"c"}`)
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "behind-a", made)(ctx)).To(Succeed())
		Expect(made.Data).To(Equal(map[string]string{"told": "false"}))
		remove(ctx, cr)
	})
})

var _ = Describe("a release whose CR goes without its finalizer", func() {
	goes := func(ctx context.Context, cr *unstructured.Unstructured) {
		GinkgoHelper()
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		remove(ctx, cr)
	}

	It("is named with the objects that stay, and is the next CR's", func(ctx context.Context) {
		s, _ := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "byhand")
		goes(ctx, cr)
		stays := "PriorityClass " + s.Namespace + "-byhand-b"
		Eventually(ctx, notes(cr, "FinalizerAbandoned")).Should(ConsistOf(HaveSuffix(`: the release "byhand": ` + stays)))
		Expect(s.Log()).To(And(ContainSubstring("the resource was deleted before its finalizer's content succeeded"), ContainSubstring(stays)))
		Expect(isGone(priorityClass(s, "byhand-b"))(ctx)).To(Succeed())
		Expect(statuses(s, "byhand")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		cr = deployedBy(ctx, s, hello, "byhand")
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "byhand-b"))(ctx)).To(site.BeGone())
		Expect(statuses(s, "byhand")(ctx)).To(BeEmpty())
	})

	It("loses its history where its objects go with the CR", func(ctx context.Context) {
		s, _ := ledgered(ctx, map[string]string{"a.yaml": versioned["a.yaml"]}, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "byhand")
		goes(ctx, cr)
		Eventually(ctx, statuses(s, "byhand")).Should(BeEmpty())
		Eventually(ctx, func(ctx context.Context) ([]corev1.ConfigMap, error) {
			var entries corev1.ConfigMapList
			err := k8s.List(ctx, &entries, client.InNamespace(ledgerOf(s)), client.HasLabels{"ensign-ledger"})
			return entries.Items, err
		}).Should(BeEmpty())
		Expect(notes(cr, "FinalizerAbandoned")(ctx)).To(BeEmpty())
		cr = deployedBy(ctx, s, hello, "byhand")
		remove(ctx, cr)
	})

	It("is named by the next manager if none ran, or loses its history, and a CR that is there is not", func(ctx context.Context) {
		s, _ := ledgered(ctx, map[string]string{
			"a.yaml": versioned["a.yaml"],
			"p.yaml": "{{ if .Values.cluster }}\n" + versioned["p.yaml"] + "{{ end }}",
		}, "")
		s.Start(ctx, hello.Kind)
		stays := harness.Custom(hello, s.Namespace, "stays", map[string]any{"cluster": true})
		collected := harness.Custom(hello, s.Namespace, "collected", map[string]any{})
		there := harness.Custom(hello, s.Namespace, "there", map[string]any{})
		s.Create(ctx, stays, collected, there)
		for _, cr := range []*unstructured.Unstructured{stays, collected, there} {
			succeeded(ctx, s, cr)
		}
		Expect(s.Manager.Stop()).To(Succeed())
		goes(ctx, stays)
		goes(ctx, collected)
		s.Start(ctx, hello.Kind)
		Eventually(ctx, notes(stays, "FinalizerAbandoned")).Should(ConsistOf(HaveSuffix(`: the release "stays": PriorityClass ` + s.Namespace + "-stays-b")))
		Eventually(ctx, statuses(s, "collected")).Should(BeEmpty())
		for _, cr := range []*unstructured.Unstructured{collected, there} {
			Expect(notes(cr, "FinalizerAbandoned")(ctx)).To(BeEmpty())
		}
		Expect(statuses(s, "stays")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		Expect(statuses(s, "there")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		taken := deployedBy(ctx, s, hello, "stays")
		remove(ctx, taken)
		Expect(isGone(priorityClass(s, "stays-b"))(ctx)).To(site.BeGone())
		remove(ctx, there)
	})
})

var _ = Describe("a release whose ledger is lost", func() {
	It("is taken over once by its annotations", func(ctx context.Context) {
		s, _ := ledgered(ctx, versioned, "  reconcilePeriod: 1s\n")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "lost")
		Expect(s.Manager.Stop()).To(Succeed())
		loseLedger(ctx, s)
		s.Start(ctx, hello.Kind)
		Eventually(ctx, statuses(s, "lost")).Should(Equal(map[string]string{"2": "superseded", "3": "deployed"}))
		answered(ctx, s, cr, "again")
		Expect(statuses(s, "lost")(ctx)).To(Equal(map[string]string{"2": "superseded", "3": "deployed"}))
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "lost-b"))(ctx)).To(site.BeGone())
	})
})

var _ = Describe("a release that somebody changes by the helm command", func() {
	It("is the resource's again at its next change, and its hooks run at its deletion, whatever the command has pruned", func(ctx context.Context) {
		s, _ := ledgered(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "\"n\": {{ .Values.n | int64 | quote }}\n  a: {{ .Values.a | default \"b\" | quote }}"),
			"h.yaml": hookJob("helm.sh/hook: pre-delete", "suspend: true, "),
		}, "  reconcilePeriod: 1h\n  watchDependentResources: false\n")
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "byhand", map[string]any{"n": int64(9007199254740993)}) // Not a float.
		s.Create(ctx, cr)
		succeeded(ctx, s, cr)
		data := func(a string) {
			GinkgoHelper()
			made := &corev1.ConfigMap{}
			Expect(objectNamed(s, "byhand-a", made)(ctx)).To(Succeed())
			Expect(made.Data).To(Equal(map[string]string{"n": "9007199254740993", "a": a}))
		}
		data("b")
		upgrade := []string{"upgrade", "byhand", filepath.Join(s.Options.Project, "chart"), "--reuse-values", "--set", "a=theirs"}
		helm(s, upgrade...)
		Expect(statuses(s, "byhand")(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
		specified(ctx, s, cr, `{"a":"c"}`)
		data("c")
		Expect(s.Log()).NotTo(ContainSubstring("HooksSkipped"), "the manager's own record is the base")

		By("the command, which keeps its own records alone")
		for range 2 { // Helm keeps the record that is deployed when it begins.
			helm(s, append(upgrade, "--history-max", "1")...)
		}
		Expect(statuses(s, "byhand")(ctx)).To(Equal(map[string]string{"3": "superseded", "4": "deployed"}))
		specified(ctx, s, cr, `{"a":"d"}`)
		data("d")
		Expect(s.Log()).To(ContainSubstring("HooksSkipped"))

		By("the deletion")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		end(ctx, s, "byhand-hook", batchv1.JobComplete, "")
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Eventually(ctx, objectNamed(s, "byhand-a", &corev1.ConfigMap{})).Should(site.BeGone())
		Expect(statuses(s, "byhand")(ctx)).To(BeEmpty())
	})
})
