package deploy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/mariadb"
)

// elsewhere leads all kinds from creation to deletion, with a cluster whose server runs outside of
// the control plane: no pod of it can be one.
func elsewhere(ctx context.Context, s *site.Site, place string) {
	GinkgoHelper()
	server, err := mariadb.Start(ctx, mariadb.Options{TLS: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "dumps"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	db := harness.Custom(clusterKind, place, "there", map[string]any{
		"mysqlAdminSecret": "there-admin",
		"endpoint":         map[string]any{"host": server.Host, "port": int64(server.Port), "caSecret": "there-ca"},
	})
	to := map[string]any{"name": db.GetName()}
	schema := harness.Custom(databaseKind, place, "stock", map[string]any{"cluster": to, "databaseName": "stock", "deletionPolicy": "Delete"})
	user := harness.Custom(userKind, place, "stock", map[string]any{"cluster": to, "username": "stock", "passwordSecret": "mysql-shop"})
	app := endpoint(place, "there-app", db.GetName())

	By("creating a cluster with a server elsewhere, an endpoint, a database and a user of it")
	s.Create(
		ctx, claim, secret(place, "there-admin", "password", server.Password), secret(place, "there-ca", "ca.crt", string(server.CA)),
		db, app, schema, user,
	)
	for _, cr := range []*unstructured.Unstructured{db, app, schema, user} {
		succeeds(ctx, s, cr)
	}
	By("changing both of their specs")
	change(ctx, schema, `{"spec": {"charset": "utf8mb4", "collation": "utf8mb4_unicode_ci"}}`)
	change(ctx, user, `{"spec": {"privileges": [{"database": "stock", "privileges": ["SELECT"]}]}}`)
	succeeds(ctx, s, schema)
	succeeds(ctx, s, user)

	By("creating a backup and a restore, whose Jobs do nothing here: test/node runs Jobs")
	store := map[string]any{"persistentVolumeClaim": claim.Name}
	backup := harness.Custom(backupKind, place, "weekly", map[string]any{"cluster": to, "storage": store})
	s.Create(ctx, backup)
	Eventually(ctx, s.Condition(backup, "Failure")).Should(HaveField("Message", ContainSubstring("The dump failed in Job weekly-")))
	change(ctx, backup, `{"spec": {"keep": 2}}`)
	Eventually(ctx, s.Condition(backup, "Failure")).Should(HaveField("Generation", BeEquivalentTo(2)))

	By("deleting them, the cluster last")
	ground.Delete(ctx, backup)
	ground.Delete(ctx, app, schema, user)
	ground.Delete(ctx, db, claim)
}

func secret(place, name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: name, Labels: mariadb.SecretLabels()}, StringData: map[string]string{key: value}}
}

// leave takes the StatefulSet of a cluster away from its pod, as a run that is cut off may leave it.
func leave(ctx context.Context, s *site.Site, db *unstructured.Unstructured) {
	GinkgoHelper()
	pause := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"ansible.sdk.operatorframework.io/paused": "true"}}}`))
	Expect(k8s.Patch(ctx, db.DeepCopy(), pause)).To(Succeed())
	Eventually(ctx, s.Condition(db, "Running")).Should(HaveField("Reason", "Paused"))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: db.GetNamespace(), Name: db.GetName()}}
	Expect(k8s.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	ground.Gone(ctx, set)
}

// succeeds waits until a run of the CR's generation has succeeded.
func succeeds(ctx context.Context, s *site.Site, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
}

// change patches an object as a person does.
func change(ctx context.Context, object client.Object, patch string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}
