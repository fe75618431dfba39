package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// object returns a custom resource of the example; spec is JSON.
func object(kind, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	var fields map[string]any
	Expect(json.Unmarshal([]byte(spec), &fields)).To(Succeed())
	cr := harness.Custom(schema.GroupKind{Group: "etcd.database.coreos.com", Kind: kind}, namespace, name, fields)
	cr.SetAPIVersion("etcd.database.coreos.com/v1beta2")
	return cr
}

const (
	backup  = `"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups"}`
	restore = `"etcdCluster":{"name":"db"},"backupStorageType":"PersistentVolumeClaim"`
)

// Each of these would end in a run that fails, or in worse. The API server says so at once, and names the field.
var _ = DescribeTable("resources that the API server refuses", func(ctx context.Context, kind, name, spec, why string) {
	err := ground.Client.Create(ctx, object(kind, name, spec), client.DryRunAll)
	Expect(err).To(MatchError(And(ContainSubstring(why), Not(ContainSubstring("evaluating rule")))))
},
	Entry("a name with a dot", "EtcdCluster", "a.b", `{}`, "the name must begin with a letter"),
	Entry("a name that begins with a digit", "EtcdCluster", "0db", `{}`, "the name must begin with a letter"),
	Entry("a name that is too long for labels", "EtcdCluster", "a123456789a123456789a123456789a1234567890", `{}`, "at most 40"),
	Entry("an even size", "EtcdCluster", "db", `{"size":2}`, "spec.size"),
	Entry("no member", "EtcdCluster", "db", `{"size":0}`, "spec.size"),
	Entry("a size that is a text", "EtcdCluster", "db", `{"size":"3"}`, "spec.size"),
	Entry("a version with a v", "EtcdCluster", "db", `{"version":"v3.6.8"}`, "spec.version"),
	Entry("a version that is a flag", "EtcdCluster", "db", `{"version":"3.6.8 --force-new-cluster"}`, "spec.version"),
	Entry("a version with a digest", "EtcdCluster", "db", `{"version":"3.6.8@sha256:00"}`, "spec.version"),
	Entry("a version that is a template", "EtcdCluster", "db", `{"version":"{{ 1 }}"}`, "spec.version"),
	Entry("a version that is a word", "EtcdCluster", "db", `{"version":"latest"}`, "spec.version"),
	Entry("a version of no image", "EtcdCluster", "db", `{"version":"3.06.8"}`, "spec.version"),
	Entry("a version that is too old", "EtcdCluster", "db", `{"version":"3.5.20"}`, "the oldest that the operator knows"),
	Entry("a repository with a tag", "EtcdCluster", "db", `{"repository":"quay.io/coreos/etcd:latest"}`, "spec.repository"),
	Entry("a label of the operator's", "EtcdCluster", "db", `{"pod":{"labels":{"etcd_cluster":"other"}}}`, "spec.pod.labels"),
	Entry("a label of Kubernetes'", "EtcdCluster", "db", `{"pod":{"labels":{"statefulset.kubernetes.io/pod-name":"x"}}}`, "spec.pod.labels"),
	Entry("a label that is none", "EtcdCluster", "db", `{"pod":{"labels":{"a b":"x"}}}`, "spec.pod.labels"),
	Entry("a label's value that is none", "EtcdCluster", "db", `{"pod":{"labels":{"a":"x y"}}}`, "spec.pod.labels.a"),
	Entry("an annotation that is none", "EtcdCluster", "db", `{"pod":{"annotations":{"a/b/c":"x"}}}`, "spec.pod.annotations"),
	Entry("more than the limit", "EtcdCluster", "db", `{"pod":{"resources":{"requests":{"memory":"2Gi"},"limits":{"memory":"1Gi"}}}}`, "requests must not be more"),
	Entry("a version that is longer than numbers are", "EtcdCluster", "db", `{"version":"3.99999999999999999999.0"}`, "spec.version"),
	Entry("requests and limits of which one is not a quantity", "EtcdCluster", "db", `{"pod":{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"lots"}}}}`, "spec.pod.resources.limits.cpu"),
	Entry("requests and limits that are none", "EtcdCluster", "db", `{"pod":{"resources":{"requests":{"memory":"1 GB"},"limits":{"memory":"lots"}}}}`, "spec.pod.resources.requests.memory"),
	Entry("memory that is not a quantity", "EtcdCluster", "db", `{"pod":{"resources":{"limits":{"memory":"lots"}}}}`, "spec.pod.resources.limits.memory"),
	Entry("a volume without a size", "EtcdCluster", "db", `{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"0"}}}}}`, "spec.pod.persistentVolumeClaimSpec"),
	Entry("TLS of servers that the operator cannot reach", "EtcdCluster", "db", `{"TLS":{"static":{"member":{"serverSecret":"s"}}}}`, "operatorSecret go together"),
	Entry("a Secret that is a path", "EtcdCluster", "db", `{"TLS":{"static":{"member":{"peerSecret":"../s"}}}}`, "peerSecret"),
	Entry("a backup of nothing", "EtcdBackup", "b", `{"etcdEndpoints":[],`+backup+`}`, "spec.etcdEndpoints"),
	Entry("an endpoint that is a flag", "EtcdBackup", "b", `{"etcdEndpoints":["--endpoints=x"],`+backup+`}`, "spec.etcdEndpoints"),
	Entry("two endpoints in one", "EtcdBackup", "b", `{"etcdEndpoints":["http://a:1,http://b:1"],`+backup+`}`, "spec.etcdEndpoints"),
	Entry("an endpoint with a user", "EtcdBackup", "b", `{"etcdEndpoints":["http://u:p@a:1"],`+backup+`}`, "spec.etcdEndpoints"),
	Entry("https without a certificate", "EtcdBackup", "b", `{"etcdEndpoints":["https://a:1"],`+backup+`}`, "go together"),
	Entry("another storage", "EtcdBackup", "b", `{"etcdEndpoints":["http://a:1"],"storageType":"S3","persistentVolumeClaim":{"claimName":"c"}}`, "spec.storageType"),
	Entry("no claim", "EtcdBackup", "b", `{"etcdEndpoints":["http://a:1"],"storageType":"PersistentVolumeClaim"}`, "spec.persistentVolumeClaim"),
	Entry("backups without a pause", "EtcdBackup", "b", `{"etcdEndpoints":["http://a:1"],`+backup+`,"backupPolicy":{"backupIntervalInSecond":0}}`, "backupIntervalInSecond"),
	Entry("a backup without an end", "EtcdBackup", "b", `{"etcdEndpoints":["http://a:1"],`+backup+`,"backupPolicy":{"timeoutInSecond":99999}}`, "timeoutInSecond"),
	Entry("a path out of the volume", "EtcdRestore", "r", `{`+restore+`,"persistentVolumeClaim":{"claimName":"c","path":"../../etc/passwd"}}`, "spec.persistentVolumeClaim.path"),
	Entry("a path out of the volume, later", "EtcdRestore", "r", `{`+restore+`,"persistentVolumeClaim":{"claimName":"c","path":"a/../../b"}}`, "spec.persistentVolumeClaim.path"),
	Entry("a path from the root", "EtcdRestore", "r", `{`+restore+`,"persistentVolumeClaim":{"claimName":"c","path":"/a"}}`, "spec.persistentVolumeClaim.path"),
	Entry("a cluster that can have no such name", "EtcdRestore", "r", `{"etcdCluster":{"name":"a b"},"backupStorageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"c","path":"a"}}`, "spec.etcdCluster.name"),
)

var _ = Describe("a change", Ordered, func() {
	var cluster *unstructured.Unstructured
	change := func(ctx context.Context, patch string) error {
		return ground.Client.Patch(ctx, cluster.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
	}
	BeforeAll(func(ctx context.Context) {
		cluster = object("EtcdCluster", "db", `{"version":"3.7.0","pod":{"resources":{"requests":{"cpu":1,"memory":"128Mi"},"limits":{"cpu":"2"}}}}`)
		Expect(ground.Client.Create(ctx, cluster)).To(Succeed(), "a number is a quantity, too")
		status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"currentVersion":"3.7.0"}}`))
		Expect(ground.Client.Status().Patch(ctx, cluster, status)).To(Succeed())
	})

	DescribeTable("of the version goes one minor version at a time", func(ctx context.Context, version string, allowed bool) {
		err := change(ctx, fmt.Sprintf(`{"spec":{"version":%q}}`, version))
		if allowed {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring("spec.version: Invalid value: the cluster runs 3.7.0, and etcd goes one minor version at a time")))
	},
		Entry("up", "3.8.0", true), Entry("down", "3.6.8", true), Entry("to another patch", "3.7.3", true),
		Entry("not two up", "3.9.0", false),
	)

	It("of the version goes down by no more either", func(ctx context.Context) {
		newer := object("EtcdCluster", "newer", `{"version":"3.8.0"}`)
		Expect(ground.Client.Create(ctx, newer)).To(Succeed())
		Expect(ground.Client.Status().Patch(ctx, newer, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"currentVersion":"3.8.0"}}`)))).To(Succeed())
		err := ground.Client.Patch(ctx, newer, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"3.6.8"}}`)), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring("the cluster runs 3.8.0, and etcd goes one minor version at a time")))
	})

	It("of a field that cannot change is refused", func(ctx context.Context) {
		for patch, why := range map[string]string{
			`{"spec":{"version":"garbage"}}`:                                                              "spec.version",
			`{"spec":{"version":"3.7"}}`:                                                                  "spec.version",
			`{"spec":{"TLS":{"static":{"member":{"peerSecret":"s"}}}}}`:                                   "TLS cannot be added or removed",
			`{"spec":{"pod":{"persistentVolumeClaimSpec":{"storageClassName":"fast"}}}}`:                  "persistentVolumeClaimSpec cannot change",
			`{"spec":{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"2Gi"}}}}}}`: "persistentVolumeClaimSpec cannot change",
		} {
			Expect(change(ctx, patch)).To(MatchError(And(ContainSubstring(why), Not(ContainSubstring("evaluating rule")))), patch)
		}
	})
})
