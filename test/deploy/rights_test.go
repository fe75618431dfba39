package deploy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("with the rights that are shipped", Ordered, func() {
	used := map[right]bool{}
	granted := map[right]bool{}
	for _, overlay := range []string{"default", "namespaced"} {
		It("the operator works, and asks for nothing that it may not: "+overlay, func(ctx context.Context) {
			log, err := audit.Open(auditLog)
			Expect(err).NotTo(HaveOccurred())
			deploy(ctx, overlay)
			maps.Copy(granted, grants(ctx, overlay))
			s := start(ctx, overlay)
			place := map[string]string{"default": "shop", "namespaced": namespace}[overlay]
			life(ctx, s, place)
			elsewhere(ctx, s, place)
			Expect(s.Stop()).To(Succeed())
			done := requests(log)
			Expect(len(done)).To(BeNumerically(">", 100))
			for _, r := range done {
				Expect(r.code).NotTo(BeElementOf(int32(401), int32(403)), r.uri)
				used[r.right] = true
			}
			runs(ctx, "undeploy")
		})
	}

	It("the command rbac prints the rights that were used or that a list explains", func(ctx context.Context) {
		roles := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(roles, "roles.yaml"), []byte(rbac(ctx, 0)), 0o600)).To(Succeed())
		for _, has := range []string{"metrics_auth_role.yaml", "leader_election_role.yaml"} { // It leaves out what is there.
			text, err := os.ReadFile(filepath.Join(ground.Root, "config", "rbac", has))
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(filepath.Join(roles, has), text, 0o600)).To(Succeed())
		}
		var want strings.Builder
		for _, r := range slices.SortedFunc(maps.Keys(reasons()), func(a, b right) int { return strings.Compare(a.String(), b.String()) }) {
			want.WriteString("- " + r.String() + "\n")
		}
		account := "system:serviceaccount:" + namespace + ":" + manager
		differs := rbac(ctx, 1, "--from-audit="+auditLog, "--user="+account, "--diff="+roles)
		Expect(regexp.MustCompile(`(?m)  # .*$`).ReplaceAllString(differs, "")).To(Equal(want.String()))
	})

	It("the operator needs each of them, or a list says why it is there", func() {
		reasons := reasons()
		Expect(granted).NotTo(BeEmpty())
		var faults []string
		for r := range granted {
			switch {
			case strings.Contains(r.group+r.resource+r.verb, "*"):
				faults = append(faults, fmt.Sprintf("%v: name what is needed instead of *", r))
			case used[r] && reasons[r] != "":
				faults = append(faults, fmt.Sprintf("%v is used: remove it from testdata/unused.tsv", r))
			case !used[r] && reasons[r] == "":
				faults = append(faults, fmt.Sprintf("nothing uses %v: remove it from config/rbac, or give the reason in testdata/unused.tsv", r))
			}
		}
		for r := range reasons {
			if !granted[r] {
				faults = append(faults, fmt.Sprintf("nobody has %v: remove it from testdata/unused.tsv", r))
			}
		}
		Expect(faults).To(BeEmpty())
	})
})

// deploy deploys config/default or an overlay, and waits for the Deployment. What a spec
// that fails leaves is removed after it.
func deploy(ctx context.Context, overlay string) *appsv1.Deployment {
	GinkgoHelper()
	runs(ctx, "deploy", "OVERLAY="+strings.TrimPrefix(overlay, "default"), "IMG=example.invalid/team/ensign:1.2.3")
	DeferCleanup(func(ctx context.Context) { runs(ctx, "undeploy", "FORCE=1") })
	deployment := &appsv1.Deployment{}
	Eventually(ctx, func(ctx context.Context) bool {
		site.Read(ctx, ground, namespace, manager, deployment)
		return deployment.Status.AvailableReplicas == *deployment.Spec.Replicas && deployment.Status.ObservedGeneration == deployment.Generation
	}).Should(BeTrue(), "the restricted profile admits the pods")
	return deployment
}

// start starts a manager with the Deployment's flags and environment, as its account.
// Its addresses are its own, because it is no pod.
func start(ctx context.Context, overlay string) *site.Site {
	GinkgoHelper()
	container := site.Read(ctx, ground, namespace, manager, &appsv1.Deployment{}).Spec.Template.Spec.Containers[0]
	s := ground.Site(ctx, nil)
	s.Options.Project, s.Options.Namespace = ground.Root, ""
	s.Options.Args = slices.DeleteFunc(container.Args, func(arg string) bool { return strings.Contains(arg, "-bind-address=") })
	s.Options.Env = append(s.Options.Env, "RELATED_IMAGE_MYSQLBACKUP=example.invalid/mysql:1") // A server elsewhere has none.
	s.Options.Args = append(s.Options.Args, "--leader-election-namespace="+namespace, "--metrics-secure", "--metrics-require-rbac")
	for _, variable := range container.Env {
		if variable.Name == "WATCH_NAMESPACE" {
			Expect(variable.ValueFrom.FieldRef.FieldPath).To(Equal("metadata.namespace"))
			s.Options.Namespace = namespace
			continue
		}
		s.Options.Env = append(s.Options.Env, variable.Name+"="+variable.Value)
	}
	if overlay == "namespaced" {
		Expect(s.Options.Namespace).To(Equal(namespace))
		// Watches then begin with a list, as they do where the API server streams none.
		s.Options.Env = append(s.Options.Env, "KUBE_FEATURE_WatchListClient=false")
	}
	s.ActAs(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: manager}})
	return s.Start(ctx, backupKind.Kind, clusterKind.Kind, databaseKind.Kind, endpointKind.Kind, restoreKind.Kind, userKind.Kind)
}

// life leads a cluster and an endpoint in the namespace from creation to deletion.
func life(ctx context.Context, s *site.Site, place string) {
	GinkgoHelper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}}
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, home))).To(Succeed())
	ground.Kubectl(ctx, "apply", "--namespace="+place, "--filename="+filepath.Join(ground.Root, "config", "samples", "secrets.yaml"))

	By("creating an endpoint, which waits for its cluster, and the cluster")
	app, db := endpoint(place, "app", "db"), cluster(place, "db")
	s.Create(ctx, app)
	Eventually(ctx, s.Condition(app, "Published")).Should(And(HaveField("Status", "False"), HaveField("Reason", "ClusterNotFound")))
	Eventually(ctx, s.Condition(app, "Successful")).Should(HaveField("Status", "True"), "to wait is no failure")
	s.Create(ctx, db)
	Eventually(ctx, s.Condition(db, "Successful")).Should(HaveField("Status", "True"))
	Eventually(ctx, s.Condition(app, "Published")).Should(HaveField("Status", "True"))
	Expect(site.Read(ctx, ground, place, "db", db).GetFinalizers()).To(ConsistOf(clusterFinalizer))

	By("changing the cluster's port, its volume's size and its version, whose Jobs do nothing here")
	Expect(k8s.Patch(ctx, db.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"mysqlPort": 3307, "size": "3Gi", "mysqlVersion": "9.7"}}`)))).To(Succeed())
	Eventually(ctx, s.Condition(db, "Upgrading")).Should(HaveField("Reason", "Finished"))
	published := func(ctx context.Context) map[string]string {
		return site.Read(ctx, ground, place, "app-connection", &corev1.ConfigMap{}).Data
	}
	Eventually(ctx, published).Should(HaveKeyWithValue("port", "3307"))

	By("repairing a child that somebody has changed")
	metrics := scrape(s, reader(ctx, s))
	for _, resource := range []string{"services", "configmaps", "statefulsets.apps", "poddisruptionbudgets.policy"} {
		Eventually(ctx, metrics).Should(follows(resource))
	}
	text, err := metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	expectMetrics(text)
	budget := site.Read(ctx, ground, place, "db", &policyv1.PodDisruptionBudget{})
	Expect(k8s.Patch(ctx, budget.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"maxUnavailable": 0}}`)))).To(Succeed())
	Eventually(ctx, func(ctx context.Context) *intstr.IntOrString {
		return site.Read(ctx, ground, place, "db", budget).Spec.MaxUnavailable
	}).Should(HaveValue(Equal(intstr.FromInt32(1))))

	By("creating a database and an account, which find no cluster, and deleting them")
	to := map[string]any{"name": "nowhere"}
	content := []*unstructured.Unstructured{
		harness.Custom(databaseKind, place, "shop", map[string]any{"cluster": to, "deletionPolicy": "Delete"}),
		harness.Custom(userKind, place, "shop", map[string]any{"cluster": to, "passwordSecret": "mysql-shop"}),
	}
	for _, object := range content {
		s.Create(ctx, object)
	}
	for _, object := range content {
		Eventually(ctx, s.Condition(object, "Failure")).Should(HaveField("Message", ContainSubstring("Could not find requested MySQLCluster nowhere")))
	}
	ground.Delete(ctx, content[0], content[1])
	By("creating a backup that finds no cluster, and a restore that finds no dump, and deleting them")
	store := map[string]any{"persistentVolumeClaim": "dumps"}
	backup := harness.Custom(backupKind, place, "nightly", map[string]any{"cluster": to, "storage": store})
	restore := harness.Custom(restoreKind, place, "back", map[string]any{"cluster": to, "backup": "nightly"})
	s.Create(ctx, backup, restore)
	Eventually(ctx, s.Condition(backup, "Failure")).Should(HaveField("Message", ContainSubstring("Could not find requested MySQLCluster nowhere")))
	Eventually(ctx, s.Condition(restore, "Failure")).Should(HaveField("Message", ContainSubstring("MySQLBackup nightly has no dump yet")))
	ground.Delete(ctx, backup, restore)

	By("deleting both, the cluster with a pod that was left, and with its claim, which is in use for a while")
	claim := site.Read(ctx, ground, place, "data-db-0", &corev1.PersistentVolumeClaim{})
	hold := func(finalizers string) {
		GinkgoHelper()
		Expect(k8s.Patch(ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`)))).To(Succeed())
	}
	hold(`["example.com/in-use"]`)
	leave(ctx, s, db)
	log, err := audit.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	ground.Delete(ctx, app)
	Expect(k8s.Delete(ctx, db)).To(Succeed())
	Eventually(ctx, func() (times int) {
		for _, r := range requests(log) {
			if r.right == (right{"", "persistentvolumeclaims", "get"}) {
				times++
			}
		}
		return times
	}).Should(BeNumerically(">", 3), "the finalizer waits for the claim")
	hold("null")
	ground.Delete(ctx, db, claim)
}
