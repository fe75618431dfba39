package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

const ofTwoManagers = `
apiVersion: v1
kind: Service
metadata:
  name: a
  labels: {ours: a, theirs: b}
  annotations: {meta.helm.sh/release-name: a, note: theirs}
  ownerReferences: [{uid: u, apiVersion: v1, kind: K, name: k}]
  managedFields:
  - manager: former
    operation: Update
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:labels: {".": {}, f:ours: {}}
        f:annotations: {".": {}, f:meta.helm.sh/release-name: {}}
        f:ownerReferences: {".": {}, 'k:{"uid":"u"}': {}}
      f:spec:
        f:selector: {}
        f:externalIPs: {}
        f:loadBalancerSourceRanges: {".": {}, 'v:"10.0.0.0/8"': {}}
        f:ports: {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, f:name: {}}}
        f:internals: {".": {}}
  - manager: another
    operation: Update
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {f:theirs: {}}, f:annotations: {f:note: {}}}
      f:spec:
        f:loadBalancerSourceRanges: {'v:"11.0.0.0/8"': {}}
        f:ports: {'k:{"port":80,"protocol":"TCP"}': {f:nodePort: {}}, 'k:{"port":81,"protocol":"TCP"}': {".": {}, f:name: {}}}
        f:internals: {f:theirs: {}}
  - manager: former
    operation: Update
    subresource: status
    fieldsType: FieldsV1
    fieldsV1: {f:status: {f:loadBalancer: {}}}
spec:
  selector: {app: a}
  externalIPs: [1.2.3.4]
  loadBalancerSourceRanges: [10.0.0.0/8, 11.0.0.0/8]
  ports:
  - {port: 80, protocol: TCP, name: a, nodePort: 30000}
  - {port: 81, protocol: TCP, name: b}
  internals: {theirs: a}
status: {loadBalancer: {}}
`

func TestWhatAFormerManagerHolds(t *testing.T) {
	live, want := map[string]any{}, map[string]any{}
	for text, into := range map[string]*map[string]any{ofTwoManagers: &live, `
apiVersion: v1
kind: Service
metadata: {name: a, labels: {ours: a}, annotations: {meta.helm.sh/release-name: a}}
spec:
  selector: {app: a}
  externalIPs: [1.2.3.4]
  loadBalancerSourceRanges: [10.0.0.0/8]
  ports: [{port: 80, protocol: TCP, name: a}]
`: &want} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	got := held(&unstructured.Unstructured{Object: live})
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestFormerManagers(t *testing.T) {
	const whole, part = `{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}},"f:data":{"f:a":{}}}`, `{"f:metadata":{"f:annotations":{"f:other":{}}}}`
	entry := func(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
		one := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
		if err := one.FieldsV1.UnmarshalJSON([]byte(fields)); err != nil {
			t.Fatal(err)
		}
		return one
	}
	got := sets.List(formerManagers([]metav1.ManagedFieldsEntry{
		entry("helm-operator", "Update", "", whole),
		entry("manager", "Update", "", whole),
		entry("memcached-operator", "Update", "", whole),
		entry("helm", "Apply", "", whole),
		entry("helm-patch", "Update", "", whole),
		entry("other", "Update", "", part),
		entry("kube-controller-manager", "Update", "status", whole),
	}))
	if diff := cmp.Diff([]string{"helm-operator", "manager", "memcached-operator"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
