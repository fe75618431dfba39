package reduce

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"

	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Digest stands for what an object says.
type Digest [16]byte

// Object is what is kept of an object: namespace, name, UID, resource version,
// generation, deletion, owner references, the annotations that name an owner, and
// the digest.
type Object struct {
	metav1.ObjectMeta

	Digest Digest
}

// Reducer reduces objects. It may be used by several goroutines.
type Reducer struct {
	key        []byte
	everywhere written
	kinds      map[schema.GroupKind]written
}

// New returns a reducer with a key of its own. The finalizers are no part of what an
// object says, beside Kubernetes' own.
func New(finalizers ...string) (*Reducer, error) {
	key := make([]byte, sha256.Size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key for digests: %w", err)
	}
	everywhere := writtenEverywhere()
	everywhere.finalizers = append(everywhere.finalizers, finalizers...)
	return &Reducer{key: key, everywhere: everywhere, kinds: writtenByKind()}, nil
}

// Transform is the transform of an informer. What is no unstructured object stays
// as it is.
func (r *Reducer) Transform(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	return r.Object(full)
}

// Object reduces an object, which stays as it is.
func (r *Reducer) Object(full *unstructured.Unstructured) (*Object, error) {
	digest, err := r.digest(full)
	if err != nil {
		return nil, fmt.Errorf("digest %s %s/%s: %w", full.GroupVersionKind().Kind, full.GetNamespace(), full.GetName(), err)
	}
	return &Object{Digest: digest, ObjectMeta: metav1.ObjectMeta{
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

// ownerAnnotations are the two by which operator-lib names an owner.
func ownerAnnotations(full *unstructured.Unstructured) map[string]string {
	all := full.GetAnnotations()
	kind, ok := all[libhandler.TypeAnnotation]
	if !ok {
		return nil
	}
	return map[string]string{libhandler.TypeAnnotation: kind, libhandler.NamespacedNameAnnotation: all[libhandler.NamespacedNameAnnotation]}
}

func (r *Reducer) digest(full *unstructured.Unstructured) (Digest, error) {
	sum := hmac.New(sha256.New, r.key)
	if err := r.write(sum, full); err != nil {
		return Digest{}, err
	}
	return Digest(sum.Sum(nil)), nil
}

// write writes what the object says. JSON has its keys in order.
func (r *Reducer) write(to hash.Hash, full *unstructured.Unstructured) error {
	content := maps.Clone(full.Object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, field)
	}
	kind := r.kinds[full.GroupVersionKind().GroupKind()]
	if kind.unless == nil || !kind.unless(full.Object) {
		for _, path := range kind.fields {
			remove(content, path)
		}
	}
	finalizers := append([]string{}, full.GetFinalizers()...) // Never nil, which JSON writes otherwise.
	encoder := json.NewEncoder(to)
	if err := encoder.Encode(content); err != nil {
		return err
	}
	return encoder.Encode([]any{
		without(full.GetLabels(), r.everywhere.labels, kind.labels),
		without(full.GetAnnotations(), r.everywhere.annotations, kind.annotations),
		slices.DeleteFunc(finalizers, func(name string) bool {
			return slices.Contains(r.everywhere.finalizers, name) || slices.Contains(kind.finalizers, name)
		}),
	})
}

// without returns a copy of the texts that lacks the names. Empty is the same as
// absent.
func without(texts map[string]string, names ...[]string) map[string]string {
	left := map[string]string{}
	maps.Copy(left, texts)
	for _, name := range slices.Concat(names...) {
		delete(left, name)
	}
	return left
}

// remove removes a field from an object of which only the top level may be
// changed: what lies on the path is copied. A parent that is left empty goes too.
func remove(object map[string]any, path []string) {
	if len(path) == 1 {
		delete(object, path[0])
		return
	}
	below, ok := object[path[0]].(map[string]any)
	if !ok {
		return
	}
	below = maps.Clone(below)
	remove(below, path[1:])
	if object[path[0]] = below; len(below) == 0 {
		delete(object, path[0])
	}
}
