// Package observe looks at what the operator has made of a MySQLCluster, and says
// what is not as it should be. It changes nothing and waits for nothing.
package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// childLabel is on everything that the role creates; its value is the cluster.
const childLabel = "mysql-cluster"

// Condition is what matters here of a condition in a status.
type Condition struct{ Status, Reason, Message string }

// Conditions are those of an object's status that are about its generation.
func Conditions(object *unstructured.Unstructured) map[string]Condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	found := map[string]Condition{}
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok || fields["observedGeneration"] != object.GetGeneration() {
			continue
		}
		found[text(fields, "type")] = Condition{text(fields, "status"), text(fields, "reason"), text(fields, "message")}
	}
	return found
}

func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}

// Outcome checks that the last run for the object's generation succeeded or
// failed, and that both conditions say so.
func Outcome(object *unstructured.Unstructured, succeeded bool) error {
	want := map[string]string{"Successful": "False", "Failure": "True", "Running": "False"}
	if succeeded {
		want = map[string]string{"Successful": "True", "Failure": "False", "Running": "True"}
	}
	got := Conditions(object)
	var wrong []string
	for kind, status := range want {
		if got[kind].Status != status {
			wrong = append(wrong, fmt.Sprintf("%s is %q (%s), not %q", kind, got[kind].Status, got[kind].Reason, status))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("for generation %d %s", object.GetGeneration(), strings.Join(wrong, ", "))
	}
	return nil
}

// Cluster is a MySQLCluster by its name.
type Cluster struct {
	Client    client.Client
	Namespace string
	Name      string
}

// Selector matches everything that the role creates for the cluster.
func (c Cluster) Selector() string { return childLabel + "=" + c.Name }

// Kinds that the role creates, and those of the objects that come of them.
func kindsMade() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	}
}

func kindsThatCome() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PersistentVolumeClaim"}}
}

// children lists the objects of a kind that carry the cluster's label.
func (c Cluster) children(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := c.Client.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{childLabel: c.Name})
	if err != nil {
		return nil, fmt.Errorf("list the %ss: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// ChildrenBelong checks that each kind that the role creates has an object, and
// that all of them belong to the custom resource.
func (c Cluster) ChildrenBelong(ctx context.Context, owner *unstructured.Unstructured) error {
	for _, kind := range kindsMade() {
		items, err := c.children(ctx, kind)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return fmt.Errorf("there is no %s", kind.Kind)
		}
		for _, item := range items {
			if !slices.ContainsFunc(item.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }) {
				return fmt.Errorf("%s %q has no owner reference to %s", kind.Kind, item.GetName(), owner.GetName())
			}
		}
	}
	return nil
}

// ChildrenGone checks that nothing is left of a custom resource.
func (c Cluster) ChildrenGone(ctx context.Context) error {
	for _, kind := range append(kindsMade(), kindsThatCome()...) {
		items, err := c.children(ctx, kind)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			return fmt.Errorf("%s %q is still there", kind.Kind, items[0].GetName())
		}
	}
	return nil
}

// ServerReady checks that the StatefulSet's Pod runs the image of a version, is
// ready, and has its volume.
func (c Cluster) ServerReady(ctx context.Context, version string) error {
	set := &appsv1.StatefulSet{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, set); err != nil {
		return fmt.Errorf("get the StatefulSet: %w", err)
	}
	if image := set.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+version) {
		return fmt.Errorf("the StatefulSet runs image %q, not version %s", image, version)
	}
	if set.Status.ObservedGeneration != set.Generation || set.Status.UpdatedReplicas != 1 || set.Status.ReadyReplicas != 1 {
		return fmt.Errorf("%d of 1 Pods are ready", set.Status.ReadyReplicas)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := c.Client.List(ctx, claims, client.InNamespace(c.Namespace), client.MatchingLabels{childLabel: c.Name}); err != nil {
		return fmt.Errorf("list the claims: %w", err)
	}
	if len(claims.Items) != 1 || claims.Items[0].Status.Phase != corev1.ClaimBound {
		return fmt.Errorf("%d claims, want one that is Bound", len(claims.Items))
	}
	return nil
}
