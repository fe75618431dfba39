//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const etcdClaim = "etcd-backups"

// backsUpEtcdBeforeAnUpgrade has the backup wait for its volume: no member may move before it is made.
func backsUpEtcdBeforeAnUpgrade(ctx context.Context) {
	setEtcd(ctx, `{"version":"`+olderEtcd+`"}`)
	etcdIsReady(ctx, etcdName)
	etcdctl(ctx, "put", "before", "the upgrade")
	pods := func() string {
		return kubectl(ctx, "get", "pods", "--selector=etcd_cluster="+etcdName, `--output=jsonpath={.items[*].metadata.uid} {.items[*].spec.containers[0].image}`)
	}
	before := pods()
	setEtcd(ctx, `{"version":"`+newerEtcd+`","backupBeforeUpgrade":{"persistentVolumeClaim":{"claimName":"`+etcdClaim+`"}}}`)
	backup := func() string {
		return kubectl(ctx, "get", "etcdbackups", "--output=name", "--selector=etcd_cluster="+etcdName)
	}
	Eventually(ctx, backup).ShouldNot(BeEmpty())
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "pods", "--selector=app=etcd-backup", `--output=jsonpath={.items[*].status.conditions[?(@.reason=="Unschedulable")].message}`)
	}).Should(ContainSubstring(etcdClaim))
	Eventually(ctx, func() string { return etcdField(ctx, etcdName, "status", "reason") }).Should(Equal("a backup comes before " + newerEtcd))
	Expect(pods()).To(Equal(before))

	By("the volume")
	Expect(api.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: etcdClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})).To(Succeed())
	etcdIsReady(ctx, etcdName)
	Expect(etcdField(ctx, etcdName, "status", "currentVersion")).To(Equal(newerEtcd))
	made := kubectl(ctx, "get", strings.TrimSpace(backup()), "--output=jsonpath={.status.succeeded} {.status.etcdVersion}")
	Expect(made).To(Equal("true " + olderEtcd))
	setEtcd(ctx, `{"backupBeforeUpgrade":null}`)
}

// repeatsEtcdBackups makes one backup after the other, of which two are kept.
func repeatsEtcdBackups(ctx context.Context) {
	create(ctx, harness.Custom(etcdKind("EtcdBackup"), namespace, "again", map[string]any{
		"etcdEndpoints": []any{"http://" + etcdName + "-client:2379"}, "storageType": "PersistentVolumeClaim",
		"persistentVolumeClaim": map[string]any{"claimName": etcdClaim}, "backupPolicy": map[string]any{"backupIntervalInSecond": int64(10), "maxBackups": int64(2)},
	}))
	field := func(path string) string {
		return kubectl(ctx, "get", "etcdbackup", "again", "--output=jsonpath={.status."+path+"}")
	}
	Eventually(ctx, func() string { return field("attempts") }).Should(Equal("1"))
	first := field("backups[0].date")
	Eventually(ctx, func() []string { return strings.Fields(field("backups[*].date")) }).Should(And(HaveLen(2), Not(ContainElement(first))))
	By("the files on the volume")
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: etcdClaim}, claim)).To(Succeed())
	Expect(api.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)).To(Succeed())
	Expect(volume.Spec.Local).NotTo(BeNil())
	Eventually(ctx, func(g Gomega) { // A backup may be on its way, under another name.
		entries, err := os.ReadDir(filepath.Join(volume.Spec.Local.Path, filepath.Dir(field("backups[0].path"))))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(ConsistOf(HaveField("Name()", "0.db"), HaveField("Name()", "1.db")))
	}).Should(Succeed())
	kubectl(ctx, "delete", "etcdbackup", "again", "--timeout=1m")
}
