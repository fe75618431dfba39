//go:build node

package node

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	etcdExample = "examples/etcd"
	etcdSpace   = "etcd-operator-system"
	etcdName    = "example-etcd-cluster"
	// The versions of hack/node/etcd.
	olderEtcd, newerEtcd = "3.6.8", "3.7.0"
)

var (
	etcdLoad   = flag.Duration("etcd-load", time.Minute, "for how long clients write and read at least, while members come and go")
	etcdRounds = flag.Int("etcd-rounds", 1, "how often")
)

// The story of examples/etcd/README.md, with real members.
var _ = Describe("an operator of etcd clusters", Ordered, func() {
	AfterEach(tellOfEtcd)
	BeforeAll(func(ctx context.Context) {
		run(ctx, "make", "--directory="+etcdExample, "deploy", "IMG=etcd-operator:node")
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "delete", "etcdrestores,etcdbackups,etcdclusters", "--all", "--timeout=2m")
			kubectl(ctx, "delete", "pvc", etcdClaim, "--ignore-not-found", "--timeout=2m")
			run(ctx, "make", "--directory="+etcdExample, "undeploy", "ENSIGN=go run "+"../../cmd/ensign")
			Eventually(ctx, func() string {
				return kubectl(ctx, "get", "statefulsets,pods,services,configmaps,pvc,poddisruptionbudgets", "--output=name", "--selector=app=etcd")
			}).Should(BeEmpty())
		})
		// A member that is down is given up after this time. It is short here, and longer than a restart.
		kubectl(ctx, "set", "env", "--namespace="+etcdSpace, "deployment/etcd-operator-manager", "ETCD_DEAD_AFTER=60")
		kubectl(ctx, "rollout", "status", "deployment/etcd-operator-manager", "--namespace="+etcdSpace, "--timeout=4m")
	})

	It("makes a cluster of three, member by member", makesEtcd)
	It("loses nothing while members are killed, replaced, added, removed and upgraded", keepsEtcdConsistent)
	It("backs up before an upgrade, where the spec asks for it", backsUpEtcdBeforeAnUpgrade)
	It("backs up again and again, and keeps as many as it is to", repeatsEtcdBackups)
	It("backs up, and restores where the quorum is lost for good", restoresEtcd)
	It("speaks TLS among members and with clients", securesEtcd)
	It("refuses harmful changes", refusesForEtcd)
})

func makesEtcd(ctx context.Context) {
	kubectl(ctx, "apply", "-f", etcdExample+"/config/samples/etcd_v1beta2_etcdcluster.yaml")
	etcdIsReady(ctx, etcdName)
	By("put and get through the Service")
	Expect(etcdctl(ctx, "put", "foo", "bar")).To(Equal("OK\n"))
	Expect(etcdctl(ctx, "get", "foo", "--print-value-only")).To(Equal("bar\n"))
	By("its parts")
	Expect(strings.Fields(kubectl(ctx, "get", "pods,pvc,services,statefulsets,poddisruptionbudgets", "--output=name", "--selector=etcd_cluster="+etcdName))).To(ConsistOf(
		"pod/"+etcdName+"-0", "pod/"+etcdName+"-1", "pod/"+etcdName+"-2",
		"persistentvolumeclaim/data-"+etcdName+"-0", "persistentvolumeclaim/data-"+etcdName+"-1", "persistentvolumeclaim/data-"+etcdName+"-2",
		"service/"+etcdName, "service/"+etcdName+"-client", "statefulset.apps/"+etcdName, "poddisruptionbudget.policy/"+etcdName))
	Expect(etcdField(ctx, etcdName, "status", "currentVersion")).To(Equal(olderEtcd))
	By("a StatefulSet that somebody deletes")
	kubectl(ctx, "delete", "statefulset", etcdName, "--timeout=2m")
	Eventually(ctx, func() error { return command(ctx, "kubectl", "get", "statefulset", etcdName).Run() }).Should(Succeed())
	settled(ctx) // Its pods go with it, one after the other: what was seen of them before says nothing.
	Expect(etcdctl(ctx, "get", "foo", "--print-value-only")).To(Equal("bar\n"))
}

func restoresEtcd(ctx context.Context) {
	setEtcd(ctx, `{"version":"`+newerEtcd+`","backupBeforeUpgrade":null}`)
	etcdIsReady(ctx, etcdName)
	etcdctl(ctx, "put", "kept", "as it was")
	kubectl(ctx, "apply", "-f", etcdExample+"/config/samples/etcd_v1beta2_etcdbackup.yaml")
	kubectl(ctx, "wait", "--for=jsonpath={.status.succeeded}=true", "etcdbackup/example-etcd-backup", "--timeout=4m")
	status := etcdObject(ctx, "EtcdBackup", "example-etcd-backup").Object["status"].(map[string]any)
	Expect(status).To(And(HaveKeyWithValue("etcdVersion", newerEtcd), HaveKey("etcdRevision"), HaveKey("lastSuccessDate")))
	path := kubectl(ctx, "get", "etcdbackup", "example-etcd-backup", "--output=jsonpath={.status.backups[0].path}")
	etcdctl(ctx, "put", "later", "lost")

	By("the loss of the quorum, for which nothing is changed")
	volumes := func() string {
		return kubectl(ctx, "get", "configmap", etcdName+"-members", "--output=jsonpath={.data.volumes}{.data.replicas}")
	}
	before := volumes()
	loseVolumes(ctx, etcdName+"-1", etcdName+"-2")
	Eventually(ctx, func(g Gomega) {
		failure := harness.ConditionOf(etcdObject(ctx, "EtcdCluster", etcdName), "Failure")
		g.Expect(failure.Status).To(Equal("True"))
		g.Expect(failure.Message).To(ContainSubstring("create an EtcdRestore with a backup"))
	}).Should(Succeed())
	Expect(volumes()).To(Equal(before))

	By("a backup that is none, for which nothing is changed either")
	claim := kubectl(ctx, "get", "pvc", "data-"+etcdName+"-0", "--output=jsonpath={.metadata.uid}")
	restore := func(name, file string) *unstructured.Unstructured {
		return harness.Custom(etcdKind("EtcdRestore"), namespace, name, map[string]any{
			"etcdCluster": map[string]any{"name": etcdName}, "backupStorageType": "PersistentVolumeClaim",
			"persistentVolumeClaim": map[string]any{"claimName": "etcd-backups", "path": file},
		})
	}
	create(ctx, restore("of-nothing", "no/such.db"))
	etcdFails(ctx, "EtcdRestore", "of-nothing", "spec.persistentVolumeClaim.path: no/such.db cannot be restored, and nothing was changed")
	Expect(kubectl(ctx, "get", "pvc", "data-"+etcdName+"-0", "--output=jsonpath={.metadata.uid}")).To(Equal(claim))

	By("the restore")
	create(ctx, restore("after-the-accident", path))
	kubectl(ctx, "wait", "--for=jsonpath={.status.succeeded}=true", "etcdrestore/after-the-accident", "--timeout=6m")
	kubectl(ctx, "delete", "etcdrestores", "--all", "--timeout=1m")
	etcdIsReady(ctx, etcdName)
	Expect(etcdctl(ctx, "get", "kept", "--print-value-only")).To(Equal("as it was\n"))
	Expect(etcdctl(ctx, "get", "later", "--print-value-only")).To(BeEmpty())
}

func refusesForEtcd(ctx context.Context) {
	By("other owners' objects with the cluster's names")
	kubectl(ctx, "create", "service", "clusterip", "taken-client", "--tcp=2379")
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", "service", "taken-client") })
	create(ctx, etcdCluster("taken", map[string]any{"size": int64(1)}))
	etcdFails(ctx, "EtcdCluster", "taken", "Service default/taken-client exists and has no owner, so it does not belong to EtcdCluster taken")

	By("Secrets that are not there")
	create(ctx, etcdCluster("secretless", map[string]any{"size": int64(1), "TLS": map[string]any{"static": map[string]any{
		"member": map[string]any{"serverSecret": "nowhere"}, "operatorSecret": "nowhere",
	}}}))
	etcdFails(ctx, "EtcdCluster", "secretless", "Secret default/nowhere, named by spec.TLS.static.member.serverSecret, does not exist")

	By("a Secret and a claim of a backup that are not there")
	for name, spec := range map[string]map[string]any{
		"unclaimed": {"etcdEndpoints": []any{"http://a:2379"}, "backupPolicy": map[string]any{"timeoutInSecond": int64(5)}},
		"unsecret":  {"etcdEndpoints": []any{"https://a:2379"}, "clientTLSSecret": "nowhere"},
	} {
		spec["storageType"], spec["persistentVolumeClaim"] = "PersistentVolumeClaim", map[string]any{"claimName": "nowhere"}
		create(ctx, harness.Custom(etcdKind("EtcdBackup"), namespace, name, spec))
	}
	etcdFails(ctx, "EtcdBackup", "unclaimed", `persistentvolumeclaim "nowhere" not found`)
	etcdFails(ctx, "EtcdBackup", "unsecret", "spec.clientTLSSecret: there is no Secret default/nowhere")
	kubectl(ctx, "delete", "etcdbackups", "unclaimed", "unsecret", "--timeout=1m")

	By("a version without an image, which is taken back")
	create(ctx, etcdCluster("wrong", map[string]any{"size": int64(1), "version": "3.6.999"}))
	etcdFails(ctx, "EtcdCluster", "wrong", "See spec.version")
	kubectl(ctx, "patch", "etcdcluster", "wrong", "--type=merge", "--patch", `{"spec":{"version":"`+olderEtcd+`"}}`)
	etcdIsReady(ctx, "wrong")
	By("the same where no other member is left to answer")
	kubectl(ctx, "patch", "etcdcluster", "wrong", "--type=merge", "--patch", `{"spec":{"version":"3.6.999"}}`)
	etcdFails(ctx, "EtcdCluster", "wrong", "See spec.version")
	kubectl(ctx, "patch", "etcdcluster", "wrong", "--type=merge", "--patch", `{"spec":{"version":"`+olderEtcd+`"}}`)
	etcdIsReady(ctx, "wrong")

	By("texts that would be code elsewhere")
	create(ctx, etcdCluster("texts", map[string]any{"size": int64(1), "pod": map[string]any{
		"annotations": map[string]any{"a/b": "{{ lookup('pipe', 'id') }}\nx: $(POD_NAME) ${HOME}"}, "labels": map[string]any{"my-label": "v"},
	}}))
	etcdIsReady(ctx, "texts")
	Expect(kubectl(ctx, "get", "pod", "texts-0", `--output=jsonpath={.metadata.annotations.a/b}`)).To(Equal("{{ lookup('pipe', 'id') }}\nx: $(POD_NAME) ${HOME}"))
	Expect(kubectl(ctx, "get", "pod", "texts-0", `--output=jsonpath={.metadata.labels.my-label}`)).To(Equal("v"))
	kubectl(ctx, "delete", "etcdclusters", "taken", "secretless", "wrong", "texts", "--timeout=2m")
}

func etcdKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "etcd.database.coreos.com", Kind: kind}
}

func etcdCluster(name string, spec map[string]any) *unstructured.Unstructured {
	return etcdVersion(harness.Custom(etcdKind("EtcdCluster"), namespace, name, spec))
}

func etcdVersion(cr *unstructured.Unstructured) *unstructured.Unstructured {
	cr.SetAPIVersion("etcd.database.coreos.com/v1beta2")
	return cr
}

func create(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Create(ctx, etcdVersion(cr))).To(Succeed())
}

func etcdObject(ctx context.Context, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(etcdKind(kind).WithVersion("v1beta2"))
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cr)).To(Succeed())
	return cr
}

func etcdField(ctx context.Context, name string, path ...string) string {
	GinkgoHelper()
	text, _, err := unstructured.NestedString(etcdObject(ctx, "EtcdCluster", name).Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// setEtcd changes the spec of the sample.
func setEtcd(ctx context.Context, spec string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "etcdcluster", etcdName, "--type=merge", "--patch", `{"spec":`+spec+`}`)
}

// etcdIsReady waits until all is as the spec says now.
func etcdIsReady(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		cr := etcdObject(ctx, "EtcdCluster", name)
		ready := harness.ConditionOf(cr, "Ready")
		g.Expect(ready.Status).To(Equal("True"), ready.Message)
		g.Expect(ready.Generation).To(Equal(cr.GetGeneration()))
	}, 6*time.Minute).Should(Succeed())
}

func etcdFails(ctx context.Context, kind, name, why string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		failure := harness.ConditionOf(etcdObject(ctx, kind, name), "Failure")
		g.Expect(failure.Status).To(Equal("True"))
		g.Expect(failure.Message).To(ContainSubstring(why))
	}).Should(Succeed())
}

// loseVolumes deletes claims with their pods, which come back with empty volumes.
func loseVolumes(ctx context.Context, pods ...string) {
	GinkgoHelper()
	for _, pod := range pods {
		kubectl(ctx, "delete", "pvc", "data-"+pod, "--wait=false")
	}
	kubectl(ctx, append([]string{"delete", "pod", "--grace-period=0", "--force"}, pods...)...)
}

// etcdctl runs it in a member's pod, against the Service. A member that restarts is no failure.
func etcdctl(ctx context.Context, args ...string) (output string) {
	GinkgoHelper()
	arguments := append([]string{"exec", etcdName + "-0", "--", "etcdctl", fmt.Sprintf("--endpoints=http://%s-client.%s.svc:2379", etcdName, namespace)}, args...)
	Eventually(ctx, func() error {
		text, err := command(ctx, "kubectl", arguments...).Output()
		output = string(text)
		return err
	}).Should(Succeed())
	return output
}

func tellOfEtcd(ctx context.Context) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, args := range [][]string{
		{"get", "etcdclusters,etcdbackups,etcdrestores,statefulsets,pods,pvc,jobs", "--output=wide"},
		{"get", "configmaps", "--selector=app=etcd", "--output=yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "--namespace=" + etcdSpace, "deployment/etcd-operator-manager", "--tail=120"},
	} {
		output, err := command(ctx, "kubectl", args...).CombinedOutput()
		GinkgoWriter.Printf("--- kubectl %v: %v\n%s\n", args, err, output)
	}
}
