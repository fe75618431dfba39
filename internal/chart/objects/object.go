package objects

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The label and the annotations by which Helm knows the objects of a release.
const (
	managedBy        = "app.kubernetes.io/managed-by"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// HelmMetadata returns the label and the annotations that Helm sets on the objects of a release.
func HelmMetadata(namespace, name string) (labels, annotations map[string]string) {
	return map[string]string{managedBy: "Helm"}, map[string]string{releaseName: name, releaseNamespace: namespace}
}

// KeepPolicy is Helm's annotation for objects that outlive their release.
const KeepPolicy = "helm.sh/resource-policy"

// IsKept reports whether an object outlives its release.
func IsKept(object metav1.Object) bool {
	return strings.EqualFold(strings.TrimSpace(object.GetAnnotations()[KeepPolicy]), "keep")
}

// OtherRelease returns the release that Helm's annotations on an object name, if it is not this one.
func OtherRelease(object metav1.Object, namespace, name string) string {
	annotations := object.GetAnnotations()
	ofNamespace, ofName := annotations[releaseNamespace], annotations[releaseName]
	if ofName == "" || ofNamespace == namespace && ofName == name {
		return ""
	}
	return ofNamespace + "/" + ofName
}

// OtherOwner returns the kind and name of an object's owner, if the object is not annotated with this
// release and the CR with the UID is not an owner.
func OtherOwner(object metav1.Object, namespace, name string, uid types.UID) string {
	owners := object.GetOwnerReferences()
	if isAnnotated(object, namespace, name) || len(owners) == 0 || slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == uid }) {
		return ""
	}
	return owners[0].Kind + " " + owners[0].Name
}

// BelongsTo reports whether an object has Helm's label and its annotations for the release.
func BelongsTo(object metav1.Object, namespace, name string) bool {
	return object.GetLabels()[managedBy] == "Helm" && isAnnotated(object, namespace, name)
}

func isAnnotated(object metav1.Object, namespace, name string) bool {
	annotations := object.GetAnnotations()
	return annotations[releaseNamespace] == namespace && annotations[releaseName] == name
}

// addHelmMetadata sets Helm's label and annotations on an object.
func (a *Applier) addHelmMetadata(object *unstructured.Unstructured) {
	labels, annotations := HelmMetadata(a.Namespace, a.Name)
	object.SetLabels(with(object.GetLabels(), labels))
	object.SetAnnotations(with(object.GetAnnotations(), annotations))
}

func with(all, more map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, all)
	maps.Copy(result, more)
	return result
}

// lastOfEach returns the objects without earlier duplicates: Helm applies one after the other, so that
// the last one stays.
func lastOfEach(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	seen := map[string]bool{}
	var kept []*unstructured.Unstructured
	for _, object := range slices.Backward(objects) {
		identity := identityOf(object, namespace)
		if object.GetName() == "" || !seen[identity] {
			kept = append(kept, object)
		}
		seen[identity] = true
	}
	slices.Reverse(kept)
	return kept
}

// identityOf returns the kind, namespace and name of an object. namespace is that of objects that name none.
func identityOf(object *unstructured.Unstructured, namespace string) string {
	return strings.Join([]string{object.GroupVersionKind().GroupKind().String(), or(object.GetNamespace(), namespace), object.GetName()}, "/")
}

// writeOnly is a field of Secrets that no answer has.
var writeOnly = fieldpath.FieldNameElement("stringData") //nolint:gochecknoglobals // A constant.

func isSecret(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// plain returns a copy of the chart's object. It moves the stringData of a Secret to its data: a key
// that the chart drops from stringData would stay in the Secret. A value that the API server refuses
// stays as it is. It drops the directives of a strategic merge patch.
func plain(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	if scheme.Scheme.Recognizes(object.GroupVersionKind()) { // Another kind may have such a field.
		dropDirectives(object.Object)
	}
	text, has := object.Object["stringData"].(map[string]any)
	data, isMap := object.Object["data"].(map[string]any)
	if !isSecret(object) || !has || !isMap && object.Object["data"] != nil {
		return object
	}
	encoded := map[string]any{}
	for key, value := range text {
		switch value := value.(type) {
		case string:
			encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
		case nil:
			encoded[key] = "" // The API server converts it to this.
		default:
			return object
		}
	}
	merged := map[string]any{}
	maps.Copy(merged, data)
	maps.Copy(merged, encoded)
	object.Object["data"] = merged
	delete(object.Object, "stringData")
	return object
}

// dropDirectives removes the directives of a strategic merge patch. A creation ignores them, and server-side apply
// refuses them. In the patch of an upgrade, "$patch: replace" would remove the fields that have not changed.
func dropDirectives(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(name string, _ any) bool { return directive.MatchString(name) })
		for _, inner := range value {
			dropDirectives(inner)
		}
	case []any:
		for _, inner := range value {
			dropDirectives(inner)
		}
	}
}

var directive = regexp.MustCompile(`^\$(patch$|retainKeys$|setElementOrder/|deleteFromPrimitiveList/)`)

// asData moves managed fields of a Secret from stringData to data: the next apply removes a key only if its
// manager holds it there. It reports whether there are any.
func asData(secret *unstructured.Unstructured) (found bool, err error) {
	entries := secret.GetManagedFields()
	for i := range entries {
		set := setOf(&entries[i])
		if !isSecret(secret) || set == nil || !isApplied(&entries[i]) || set.WithPrefix(writeOnly).Empty() {
			continue
		}
		moved := fieldpath.NewSet()
		for path := range set.All() {
			path = path.Copy()
			if path[0].Equals(writeOnly) {
				path[0] = fieldpath.FieldNameElement("data")
			}
			moved.Insert(path)
		}
		if err := writeFields(&entries[i], moved); err != nil {
			return false, err
		}
		found = true
	}
	secret.SetManagedFields(entries)
	return found, nil
}

// NotText returns an error that names a label or annotation whose value is not a string, such as an unquoted true:
// Helm cannot decode such an object.
func NotText(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch values[key].(type) {
			case string, nil:
			default:
				return fmt.Errorf("metadata.%s: the value of %s is not a string: quote it in the chart", field, key)
			}
		}
	}
	return nil
}
