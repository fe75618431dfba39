package helmclient

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

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
		entry("other", "Update", "", part),
		entry("kube-controller-manager", "Update", "status", whole),
	}))
	if diff := cmp.Diff([]string{"helm-operator", "manager", "memcached-operator"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
