package objects

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scaled are the objects of a manifest that an autoscaler of the same manifest scales.
type Scaled map[target]bool

// target is an object that an autoscaler names. Namespace is as the manifest has it.
type target struct{ kind, namespace, name string }

// ScaledBy returns the objects that the autoscalers among the objects scale. The release's
// namespace is that of objects that name none.
func ScaledBy(objects []*unstructured.Unstructured, namespace string) Scaled {
	scaled := Scaled{}
	for _, object := range objects {
		switch object.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}:
			kind, has, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "kind")
			if !has {
				kind = "Deployment" // KEDA's default.
			}
			name, _, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "name")
			scaled[target{kind, or(object.GetNamespace(), namespace), name}] = true
		}
	}
	return scaled
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// ByCluster returns the fields of an object that the cluster fills, where the chart's value is only a
// placeholder. It returns no fields that the chart does not have, except the replicas of scaled
// objects.
func ByCluster(object *unstructured.Unstructured, scaled Scaled, namespace string) []Pointer {
	var all []Pointer
	add := func(placeholder func(any) bool, pointer ...string) {
		if slices.ContainsFunc(Pointer(pointer).values(object.Object), placeholder) {
			all = append(all, pointer)
		}
	}
	bundle := func(value any) bool { return isInjected(object) || isNoBundle(value) }
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		if rule, _, _ := unstructured.NestedMap(object.Object, "aggregationRule"); rule != nil {
			add(anything, "rules") // Its controller overwrites the rules with the aggregated ones.
		}
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, webhook := range webhooks {
			fields, _ := webhook.(map[string]any)
			name, _ := fields["name"].(string)
			add(bundle, "webhooks", "name="+name, "clientConfig", "caBundle")
		}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		add(bundle, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		add(bundle, "spec", "caBundle")
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		add(isEmpty, "spec", "volumeName")
	case schema.GroupKind{Kind: "Endpoints"}:
		add(isEmpty, "subsets")
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		add(isEmpty, "endpoints")
	}
	if scaled[target{object.GetKind(), or(object.GetNamespace(), namespace), object.GetName()}] {
		all = append(all, Pointer{"spec", "replicas"}) // Also where the chart no longer has it: an upgrade would reset it.
	}
	return all
}

// isTemporary reports whether the cluster itself deletes the object when its work is done. Its absence
// is not drift.
func isTemporary(object *unstructured.Unstructured) bool {
	ttl, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return isJob(object) && ttl != nil
}

func isJob(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
}

// isFinished reports whether the object is a Job that has ended.
func isFinished(object *unstructured.Unstructured) bool {
	if !isJob(object) {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
	})
}

func anything(any) bool { return true }

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	}
	return false
}

// isNoBundle reports whether a CA bundle has no certificate: charts write an empty text, or a line
// feed where the field must not be empty.
func isNoBundle(value any) bool {
	text, _ := value.(string)
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	return err == nil && strings.TrimSpace(string(decoded)) == ""
}

// isInjected reports whether the object's annotations ask a known controller for a CA bundle.
func isInjected(object *unstructured.Unstructured) bool {
	for name := range object.GetAnnotations() {
		for _, prefix := range []string{"cert-manager.io/inject-", "service.beta.openshift.io/inject-cabundle", "service.alpha.openshift.io/inject-cabundle"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}
