package controller

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	cachev1 "github.com/ensign-operator/ensign/examples/hybrid/api/v1"
)

// reconciler returns one for an API server that has the objects, with the MemcachedBackup x.
func reconciler(t *testing.T, objects ...client.Object) (*MemcachedBackupReconciler, func() *cachev1.MemcachedBackup) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cachev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	backup := &cachev1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "the-uid", Generation: 3}, Spec: cachev1.MemcachedBackupSpec{Size: 2}}
	r := &MemcachedBackupReconciler{Scheme: scheme, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, backup)...).WithStatusSubresource(backup).Build()}
	return r, func() *cachev1.MemcachedBackup {
		t.Helper()
		key := client.ObjectKeyFromObject(backup)
		if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		read := &cachev1.MemcachedBackup{}
		if err := r.Get(context.Background(), key, read); err != nil {
			t.Fatal(err)
		}
		return read
	}
}

// TestADeploymentOfOthersIsNotTouched: the status says whose fault it is, and is ready again when the
// name is free.
func TestADeploymentOfOthersIsNotTouched(t *testing.T) {
	for name, give := range map[string]func(*appsv1.Deployment){
		"of nobody": func(*appsv1.Deployment) {},
		"of another MemcachedBackup of the name": func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cache.my.domain/v1", Kind: "MemcachedBackup", Name: "x", UID: "another", Controller: new(true)}}
		},
		"of a Helm release": func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"meta.helm.sh/release-name": "x", "meta.helm.sh/release-namespace": "ns"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{backupLabel: "x"}
			theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x-backup", Labels: labels}}
			theirs.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			give(theirs)
			r, reconcile := reconciler(t, theirs)
			before, after := &appsv1.Deployment{}, &appsv1.Deployment{}
			if err := r.Get(context.Background(), client.ObjectKeyFromObject(theirs), before); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(reconcile().Status.Conditions, "Ready")
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != 3 || !strings.HasPrefix(ready.Message, "Deployment ns/x-backup exists and does not belong to MemcachedBackup x. ") {
				t.Errorf("the condition is %v", ready)
			}
			if err := r.Get(context.Background(), client.ObjectKeyFromObject(theirs), after); err != nil || !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("it was changed to %v (%v)", after, err)
			}
			if err := r.Delete(context.Background(), after); err != nil {
				t.Fatal(err)
			}
			if ready := meta.FindStatusCondition(reconcile().Status.Conditions, "Ready"); ready.Status != metav1.ConditionTrue {
				t.Errorf("the condition is %v", ready)
			}
		})
	}
}

func TestTheStatusNamesThePods(t *testing.T) {
	pod := func(name string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{backupLabel: "x"}}}
	}
	_, reconcile := reconciler(t, pod("b"), pod("a"))
	if nodes := reconcile().Status.Nodes; len(nodes) != 2 || nodes[0] != "a" {
		t.Errorf("got %q", nodes)
	}
}
