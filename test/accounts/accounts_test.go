package accounts

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const group = "accounts.example.com"

var (
	ground   *site.Ground
	k8s      client.WithWatch
	auditLog string
	// words is the kind of a playbook, shop that of a chart, everywhere one without namespaces.
	words      = schema.GroupKind{Group: group, Kind: "Words"}
	shop       = schema.GroupKind{Group: group, Kind: "Shop"}
	everywhere = schema.GroupKind{Group: group, Kind: "Everywhere"}
)

func TestAccounts(t *testing.T) { site.Run(t, "accounts", harness.WaitTimeout, 50*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.log")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog, CheckOwnerReferences: true})
	k8s = ground.Client
	global := harness.Definition(everywhere)
	global.Spec.Scope = "Cluster"
	ground.Define(ctx, harness.Definition(words), harness.Definition(shop), global)
})

const play = `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Write
    kubernetes.core.k8s:
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ ansible_operator_meta.name }}", namespace: "{{ place | default(ansible_operator_meta.namespace) }}"}, data: {a: b}}
    when: act is not defined
  - name: Write as somebody else
    kubernetes.core.k8s:
      impersonate_user: "{{ act }}"
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ ansible_operator_meta.name }}", namespace: "{{ ansible_operator_meta.namespace }}"}}
    when: act is defined
`

const farewell = `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Clean up
    kubernetes.core.k8s: {state: absent, api_version: v1, kind: ConfigMap, name: "{{ ansible_operator_meta.name }}-data", namespace: "{{ ansible_operator_meta.namespace }}"}
`

const entries = `
- group: accounts.example.com
  version: v1
  kind: Words
  playbook: play.yml
  finalizer: {name: accounts.example.com/farewell, playbook: farewell.yml}
  serviceAccountNamePath: spec.account
- group: accounts.example.com
  version: v1
  kind: Shop
  chart: chart
  reconcilePeriod: 2s
  serviceAccountName: deployer
- group: accounts.example.com
  version: v1
  kind: Everywhere
  playbook: play.yml
`

// operator is a manager that may do nothing in the namespaces of tenants but look after their
// resources, follow ConfigMaps, and act as their accounts.
func operator(ctx context.Context) *site.Site {
	GinkgoHelper()
	s := ground.Site(ctx, map[string]string{
		"watches.yaml": entries, "play.yml": play, "farewell.yml": farewell,
		"chart/Chart.yaml":            "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"chart/values.yaml":           "price: 1\n",
		"chart/templates/prices.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-prices'}\ndata: {price: '{{ .Values.price }}', seen: '{{ len (lookup \"v1\" \"ConfigMap\" .Release.Namespace \"\").items | min 0 }}'}\n",
	})
	s.Limit(
		ctx,
		rbacv1.PolicyRule{APIGroups: []string{group, "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}, // With runs in Jobs.
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"deployer", "other", "fallback"}, Verbs: []string{"impersonate"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
	)
	// The key that proves which releases are the manager's is a Secret of its own namespace, which has
	// their ledger, too.
	own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "own"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}}
	if harness.InJobs() {
		own.Rules = append(
			own.Rules,
			rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
		)
	}
	s.Create(ctx, own, binding(own, s.Namespace, "limited"))
	s.Options.Namespace = ""
	s.Options.Args = append(s.Options.Args, "--max-backoff=1s")
	return s
}

func binding(role *rbacv1.Role, namespace, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
	}
}

// tenant is a namespace with an account that may do everything there with ConfigMaps and Secrets,
// or nothing.
func tenant(ctx context.Context, account string, rights bool) (namespace string) {
	GinkgoHelper()
	namespace = ground.Namespace(ctx)
	ground.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
	if rights {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"*"}},
			// With the admission plugin OwnerReferencesPermissionEnforcement, a run may need that of the CR.
			{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}}
		ground.Create(ctx, role, binding(role, namespace, account))
	}
	return namespace
}

// asManager returns the requests in a namespace that somebody made with the manager's rights, but
// for resources of its kinds and Events.
func asManager(log audit.Log, s *site.Site, namespace string) (found []string) {
	GinkgoHelper()
	events, err := log.Events(namespace)
	Expect(err).NotTo(HaveOccurred())
	manager := serviceaccount.MakeUsername(s.Namespace, "limited")
	for _, e := range events {
		if e.User.Username == manager && e.ImpersonatedUser == nil && inNamespace(e, namespace) {
			found = append(found, e.Verb+" "+e.RequestURI)
		}
	}
	return found
}

func inNamespace(e auditv1.Event, namespace string) bool {
	return e.ObjectRef != nil && e.ObjectRef.Namespace == namespace && !slices.Contains([]string{group, "events.k8s.io"}, e.ObjectRef.APIGroup)
}

// actors returns in whose names the manager has written ConfigMaps in a namespace.
func actors(log audit.Log, namespace string) (found []string) {
	GinkgoHelper()
	events, err := log.Events(namespace)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range events {
		if e.ImpersonatedUser != nil && inNamespace(e, namespace) {
			found = append(found, e.ImpersonatedUser.Username)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func openLog() audit.Log {
	GinkgoHelper()
	log, err := audit.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	return log
}

func configMap(ctx context.Context, namespace, name string) error {
	return k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
}

var _ = Describe("runs with a service account", Ordered, func() {
	var s *site.Site

	BeforeAll(func(ctx context.Context) {
		s = operator(ctx)
		s.Start(ctx, words.Kind, shop.Kind, everywhere.Kind)
	})

	created := func(ctx context.Context, kind schema.GroupKind, namespace string, spec map[string]any) *unstructured.Unstructured {
		GinkgoHelper()
		cr := harness.Custom(kind, namespace, "mine", spec)
		ground.Create(ctx, cr)
		return cr
	}

	DescribeTable("get no further than their account, and the status says whose right is lacking", func(ctx context.Context, kind schema.GroupKind) {
		namespace, log := tenant(ctx, "deployer", false), openLog()
		cr := created(ctx, kind, namespace, map[string]any{"account": "deployer"})
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", And(
			ContainSubstring("forbidden"), ContainSubstring("system:serviceaccount:"+namespace+":deployer"), ContainSubstring("Role")))))
		Expect(actors(log, namespace)).To(Equal([]string{"system:serviceaccount:" + namespace + ":deployer"}))
		Expect(asManager(log, s, namespace)).To(BeEmpty())
	},
		Entry("a playbook's", words),
		Entry("a chart's, whose record they cannot read", shop),
	)

	It("act in two namespaces with the rights of each account, and do nothing in the other's", func(ctx context.Context) {
		first, second := tenant(ctx, "deployer", true), tenant(ctx, "other", true)
		log := openLog()
		mine, theirs := created(ctx, words, first, map[string]any{"account": "deployer"}), created(ctx, words, second, map[string]any{"account": "other"})
		for _, cr := range []*unstructured.Unstructured{mine, theirs} {
			Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
			Expect(configMap(ctx, cr.GetNamespace(), "mine")).To(Succeed())
		}
		Expect(k8s.Patch(ctx, theirs, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"place":"`+first+`"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(theirs, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring("system:serviceaccount:"+second+":other"))))
		for namespace, account := range map[string]string{first: "deployer", second: "other"} {
			Expect(actors(log, namespace)).To(ContainElement("system:serviceaccount:" + namespace + ":" + account))
			Expect(asManager(log, s, namespace)).To(BeEmpty())
		}
		By("deleting them, whose finalizer has no other rights either")
		ground.Delete(ctx, mine, theirs)
		ground.Gone(ctx, mine, theirs)
		Expect(asManager(log, s, first)).To(BeEmpty())
	})

	It("install, compare, repair and uninstall a release in that name alone", func(ctx context.Context) {
		namespace, log := tenant(ctx, "deployer", true), openLog()
		cr := created(ctx, shop, namespace, map[string]any{"price": 2})
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		prices := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine-prices"}}
		Expect(k8s.Patch(ctx, prices, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"price":"99"}}`)))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(prices), prices)
			return prices.Data["price"], err
		}).Should(Equal("2"))
		ground.Delete(ctx, cr)
		ground.Gone(ctx, cr)
		Expect(configMap(ctx, namespace, "mine-prices")).To(site.BeGone())
		Expect(actors(log, namespace)).To(Equal([]string{"system:serviceaccount:" + namespace + ":deployer"}))
		Expect(asManager(log, s, namespace)).To(BeEmpty())
	})

	It("act as nobody else, whatever content asks for", func(ctx context.Context) {
		namespace, log := tenant(ctx, "deployer", true), openLog()
		cr := created(ctx, words, namespace, map[string]any{"account": "deployer", "act": "system:serviceaccount:kube-system:admin"})
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring("serviceAccountName"))))
		Expect(append(actors(log, namespace), asManager(log, s, namespace)...)).To(BeEmpty())
		Expect(configMap(ctx, namespace, "mine")).To(site.BeGone())
	})

	DescribeTable("do not begin where no account can be told", func(ctx context.Context, account any, says string) {
		namespace := tenant(ctx, "deployer", true)
		cr := created(ctx, words, namespace, map[string]any{"account": account})
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring(says))))
		Expect(s.Runs(cr)()).To(BeZero())
	},
		Entry("none", nil, "spec.account: name the service account"),
		Entry("a name with another namespace", "kube-system:admin", `spec.account: "kube-system:admin"`),
		Entry("a name that is none", map[string]any{"name": "deployer"}, "spec.account: write the name of a service account"),
	)

	It("are checked by ensign check, which asks the cluster for missing rights of a sample's account", func(ctx context.Context) {
		able, unable := tenant(ctx, "deployer", true), tenant(ctx, "deployer", false)
		sample := "apiVersion: accounts.example.com/v1\nkind: Words\nmetadata: {name: a, namespace: %s}\nspec: {account: %s}\n"
		s.Write(map[string]string{
			"config/samples/able.yaml": fmt.Sprintf(sample, able, "deployer"), "config/samples/unable.yaml": fmt.Sprintf(sample, unable, "deployer"),
			"config/samples/none.yaml": fmt.Sprintf(sample, unable, "a:b"),
		})
		command := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), "check", "--cluster", "--kubeconfig", ground.Cluster.Kubeconfig)
		command.Dir = s.Options.Project
		out, err := command.CombinedOutput()
		GinkgoWriter.Printf("%s\n", out)
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(And(
			MatchRegexp(`unable\.yaml:3:1.*system:serviceaccount:`+unable+`:deployer may not, in `+unable+`: .*create configmaps`),
			MatchRegexp(`none\.yaml:4:.*spec\.account: "a:b" is not the name`),
			Not(ContainSubstring("system:serviceaccount:"+able)),
		))
	})
})

var _ = Describe("runs of a manager with a default service account", func() {
	It("have it where neither the watch nor the resource names one, and never run without a namespace", func(ctx context.Context) {
		s := operator(ctx)
		s.Options.Args = append(s.Options.Args, "--default-service-account=fallback")
		s.Start(ctx, words.Kind, everywhere.Kind)
		namespace, log := tenant(ctx, "fallback", true), openLog()
		cr := harness.Custom(words, namespace, "mine", nil)
		ground.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(actors(log, namespace)).To(Equal([]string{"system:serviceaccount:" + namespace + ":fallback"}))
		Expect(asManager(log, s, namespace)).To(BeEmpty())

		global := harness.Custom(everywhere, "", "mine", nil)
		ground.Create(ctx, global)
		Eventually(ctx, s.Condition(global, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("--default-service-account"))))
		Expect(s.Runs(global)()).To(BeZero())
	})
})
