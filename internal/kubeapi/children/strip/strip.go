package strip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
)

// Digest is a digest of an object's content.
type Digest [16]byte

// Object is the stripped form of an object. Its metadata has only namespace, name, UID, resource
// version, generation, deletion timestamp, owner references, and the annotations that name an
// owner.
type Object struct {
	metav1.ObjectMeta

	Digest Digest
	// Health is nil for an object that is Current for kstatus.
	Health *Health
	// Writers are the clients that wrote the object last, for people. Clients choose their names.
	Writers []Writer
	// Written is when they did, in seconds.
	Written int64
	// Fields are those that Keep names, by their path; one that is not a scalar, or is too long, is left out.
	Fields map[string]any
	// Status has a digest of each field of the status that Transformer was told to keep. They have
	// no key: State compares them with those of an earlier manager.
	Status map[string]Digest
}

// Health is the status by kstatus of an object that is not Current.
type Health struct {
	Failed  bool
	Message string
}

// StatusFields are names of fields at the top of the status, by kind.
type StatusFields = map[schema.GroupKind][]string

// Transformer strips objects. It is safe for concurrent use.
type Transformer struct {
	key      []byte
	status   StatusFields
	allKinds ignoredParts
	byKind   map[schema.GroupKind]ignoredParts
	fields   map[string][]string
}

// New returns a Transformer with a random key. It keeps the status fields. Its digests leave out the
// finalizers, and those of Kubernetes.
func New(status StatusFields, finalizers ...string) (*Transformer, error) {
	key := make([]byte, sha256.Size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key for digests: %w", err)
	}
	everywhere := ignoredInAllKinds()
	everywhere.finalizers = append(everywhere.finalizers, finalizers...)
	return &Transformer{key: key, status: status, allKinds: everywhere, byKind: ignoredByKind()}, nil
}

// Keep makes the Transformer keep fields of objects: JSONPaths in braces, by kind. It is called before the
// first object.
func (r *Transformer) Keep(fields map[string][]string) { r.fields = fields }

// fieldsOf returns the fields of an object that are to be kept.
func (r *Transformer) fieldsOf(full *unstructured.Unstructured) map[string]any {
	const limit = 256
	var kept map[string]any
	for _, path := range r.fields[full.GetKind()] {
		parsed := jsonpath.New("").AllowMissingKeys(true) // One for each object: it is not safe for concurrent use.
		if parsed.Parse(path) != nil {
			continue
		}
		found, err := parsed.FindResults(full.Object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].CanInterface() {
			continue
		}
		value := found[0][0].Interface()
		if text, is := value.(string); is && len(text) > limit || !isScalar(value) {
			continue
		}
		if kept == nil {
			kept = map[string]any{}
		}
		kept[path] = value
	}
	return kept
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, bool, int64, float64:
		return true
	}
	return false
}

// healthOf returns the health of an object by kstatus. It sees the whole object, and its message is short.
func healthOf(full *unstructured.Unstructured) *Health {
	result, err := kstatus.Compute(full)
	if err != nil || result.Status == kstatus.CurrentStatus {
		return nil // An object that kstatus cannot read counts as healthy.
	}
	const limit = 256
	message := result.Message + cause(full)
	message = strings.ToValidUTF8(message[:min(len(message), limit)], "")
	return &Health{Failed: result.Status == kstatus.FailedStatus, Message: message}
}

// cause returns why a workload has too few replicas, where kstatus does not say it; "" if that is not known.
func cause(full *unstructured.Unstructured) string {
	if full.GroupVersionKind().Group != "apps" {
		return ""
	}
	if paused, _, _ := unstructured.NestedBool(full.Object, "spec", "paused"); paused {
		return " (it is paused)"
	}
	conditions, _, _ := unstructured.NestedSlice(full.Object, "status", "conditions")
	for _, item := range conditions {
		if c, _ := item.(map[string]any); c["type"] == "ReplicaFailure" && c["status"] == "True" {
			return fmt.Sprintf(" (%v)", c["message"])
		}
	}
	return ""
}

// Transform is an informer's transform. It returns everything but an unstructured object
// unchanged.
func (r *Transformer) Transform(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	return r.Object(full)
}

// Object returns the stripped form of an object. It does not change the object.
func (r *Transformer) Object(full *unstructured.Unstructured) (*Object, error) {
	digest, err := r.digest(full)
	if err != nil {
		return nil, fmt.Errorf("digest %s %s/%s: %w", full.GroupVersionKind().Kind, full.GetNamespace(), full.GetName(), err)
	}
	status, err := r.statusOf(full)
	if err != nil {
		return nil, fmt.Errorf("digest the status of %s %s/%s: %w", full.GroupVersionKind().Kind, full.GetNamespace(), full.GetName(), err)
	}
	writers, written := writersOf(full.GetManagedFields())
	return &Object{Digest: digest, Status: status, Health: healthOf(full), Fields: r.fieldsOf(full), Writers: writers, Written: written, ObjectMeta: metav1.ObjectMeta{
		Namespace:         full.GetNamespace(),
		Name:              full.GetName(),
		UID:               full.GetUID(),
		ResourceVersion:   full.GetResourceVersion(),
		Generation:        full.GetGeneration(),
		DeletionTimestamp: full.GetDeletionTimestamp(),
		OwnerReferences:   full.GetOwnerReferences(),
		Annotations:       ownerAnnotations(full),
	}}, nil
}

// statusOf returns a digest of each field of the status that is to be kept and exists.
func (r *Transformer) statusOf(full *unstructured.Unstructured) (map[string]Digest, error) {
	var found map[string]Digest
	status, _ := full.Object["status"].(map[string]any)
	for _, field := range r.status[full.GroupVersionKind().GroupKind()] {
		value, exists := status[field]
		if !exists {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if found == nil {
			found = map[string]Digest{}
		}
		sum := sha256.Sum256(text)
		found[field] = Digest(sum[:len(Digest{})])
	}
	return found, nil
}

// ownerAnnotations returns the two annotations by which operator-lib names an owner.
func ownerAnnotations(full *unstructured.Unstructured) map[string]string {
	all := full.GetAnnotations()
	kind, ok := all[libhandler.TypeAnnotation]
	if !ok {
		return nil
	}
	return map[string]string{libhandler.TypeAnnotation: kind, libhandler.NamespacedNameAnnotation: all[libhandler.NamespacedNameAnnotation]}
}

func (r *Transformer) digest(full *unstructured.Unstructured) (Digest, error) {
	sum := hmac.New(sha256.New, r.key)
	if err := r.hashContent(sum, full); err != nil {
		return Digest{}, err
	}
	return Digest(sum.Sum(nil)), nil
}

// hashContent writes the object's content to the hash, as JSON with sorted keys.
func (r *Transformer) hashContent(to hash.Hash, full *unstructured.Unstructured) error {
	content := maps.Clone(full.Object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, field)
	}
	ignored := r.byKind[full.GroupVersionKind().GroupKind()]
	if ignored.unless == nil || !ignored.unless(full.Object) {
		for _, path := range ignored.fields {
			remove(content, path)
		}
	}
	finalizers := append([]string{}, full.GetFinalizers()...) // Never nil: JSON has null for nil and [] for none.
	encoder := json.NewEncoder(to)
	if err := encoder.Encode(content); err != nil {
		return err
	}
	return encoder.Encode([]any{
		without(full.GetLabels(), r.allKinds.labels, ignored.labels),
		without(full.GetAnnotations(), r.allKinds.annotations, ignored.annotations),
		slices.DeleteFunc(finalizers, func(name string) bool {
			return slices.Contains(r.allKinds.finalizers, name) || slices.Contains(ignored.finalizers, name)
		}),
	})
}

// without returns a copy of all without the names. It is never nil, so that a missing map and
// an empty one have the same digest.
func without(all map[string]string, names ...[]string) map[string]string {
	rest := map[string]string{}
	maps.Copy(rest, all)
	for _, name := range slices.Concat(names...) {
		delete(rest, name)
	}
	return rest
}

// remove removes the field at path, and each parent that is empty then. It changes only the
// top level of the object and copies the levels below it.
func remove(object map[string]any, path []string) {
	if len(path) == 1 {
		delete(object, path[0])
		return
	}
	child, ok := object[path[0]].(map[string]any)
	if !ok {
		return
	}
	child = maps.Clone(child)
	remove(child, path[1:])
	if object[path[0]] = child; len(child) == 0 {
		delete(object, path[0])
	}
}
