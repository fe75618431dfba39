package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

const (
	// Label is on the objects of entries; its value is the Prefix of their names.
	Label = "ensign-ledger"

	textKey, packedKey = "entry", "entry.gz"
	// maxText is less than the size of a ConfigMap, in bytes. maxUnpacked bounds its unpacked text.
	maxText     = 1000 << 10
	maxUnpacked = 8 << 20
	// pageSize is the number of entries in an answer of the API server to CRs.
	pageSize = 50
)

// Store keeps entries in ConfigMaps. Only the manager writes them, with the version that it has read.
type Store struct {
	// ConfigMaps are those of the operator's namespace. nil keeps the entries in memory: they are lost
	// at the end of the manager, which does not know its namespace.
	ConfigMaps clientv1.ConfigMapInterface
	// Namespace is the ConfigMaps', for messages. Prefix begins their names: operators that share a
	// namespace have different prefixes.
	Namespace, Prefix string

	mu sync.Mutex
	// memory has the entries of running attempts by the UIDs of their CRs, so that these are not read
	// again. Without ConfigMaps it has all.
	memory map[string]*Entry
}

// name returns the name of the object with the entry of a CR.
func (s *Store) name(owner order.Owner) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{owner.Group, owner.Kind, owner.Namespace, owner.Name}, "\n")))
	return s.Prefix + "-" + hex.EncodeToString(sum[:16])
}

// Get returns the entry of a CR. It is empty if there is none, or if it is that of a predecessor: the
// predecessor's records prove nothing about the CR.
func (s *Store) Get(ctx context.Context, owner order.Owner) (*Entry, error) {
	empty := &Entry{Owner: owner}
	if kept := s.kept(owner.UID); kept != nil {
		return kept.clone()
	}
	if s.ConfigMaps == nil {
		return empty, nil
	}
	object, err := s.ConfigMaps.Get(ctx, s.name(owner), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return empty, nil
	}
	if err != nil {
		return nil, s.fault("read", "get", err)
	}
	e, err := decode(object)
	if err != nil {
		return nil, err
	}
	if e.Owner != owner {
		empty.version, empty.exists = e.version, true
		return empty, nil
	}
	return e, nil
}

// CRs returns the CRs of a kind that have an entry, with their UIDs. An object without a readable entry
// is left out: Get reports it.
func (s *Store) CRs(ctx context.Context, kind schema.GroupKind) (map[types.NamespacedName]types.UID, error) {
	if s.ConfigMaps == nil {
		return nil, nil //nolint:nilnil // No CR has one.
	}
	all := map[types.NamespacedName]types.UID{}
	options := metav1.ListOptions{LabelSelector: Label + "=" + s.Prefix, Limit: pageSize}
	for {
		page, err := s.ConfigMaps.List(ctx, options)
		if err != nil {
			return nil, s.fault("list", "list", err)
		}
		for i := range page.Items {
			if e, err := decode(&page.Items[i]); err == nil && e.Owner.Group == kind.Group && e.Owner.Kind == kind.Kind {
				all[types.NamespacedName{Namespace: e.Owner.Namespace, Name: e.Owner.Name}] = types.UID(e.Owner.UID)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// Put writes an entry as the successor of the version that was read.
func (s *Store) Put(ctx context.Context, e *Entry) error {
	s.Forget(e.Owner.UID)
	if err := s.write(ctx, e); err != nil {
		return err
	}
	if s.ConfigMaps != nil && e.Attempt == "" {
		return nil
	}
	kept, err := e.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = map[string]*Entry{}
	}
	s.memory[e.Owner.UID] = kept
	return err
}

func (s *Store) write(ctx context.Context, e *Entry) error {
	if s.ConfigMaps == nil {
		return nil
	}
	object, err := encode(e)
	if err != nil {
		return err
	}
	object.Name, object.ResourceVersion, object.Labels = s.name(e.Owner), e.version, map[string]string{Label: s.Prefix}
	if !e.exists {
		object, err = s.ConfigMaps.Create(ctx, object, metav1.CreateOptions{})
	} else {
		object, err = s.ConfigMaps.Patch(ctx, object.Name, types.MergePatchType, patch(object), metav1.PatchOptions{})
	}
	if err != nil {
		return s.fault("write", "create and patch", err)
	}
	e.version, e.exists = object.ResourceVersion, true
	return nil
}

func (s *Store) kept(uid string) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory[uid]
}

// Forget drops the entry of a CR from memory.
func (s *Store) Forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memory, uid)
}

// patch returns the merge patch that turns the stored object into this one, if it has the version.
func patch(object *corev1.ConfigMap) []byte {
	text, _ := json.Marshal(map[string]any{ // A nil value removes the stored one.
		"metadata": map[string]any{"resourceVersion": object.ResourceVersion, "labels": object.Labels}, "data": object.Data, "binaryData": object.BinaryData,
	})
	return text
}

// Delete deletes an entry as it was read.
func (s *Store) Delete(ctx context.Context, e *Entry) error {
	s.Forget(e.Owner.UID)
	if !e.exists {
		return nil
	}
	err := s.ConfigMaps.Delete(ctx, s.name(e.Owner), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &e.version}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return s.fault("delete", "delete", err)
	}
	return nil
}

// Report adds a revision to the entry of a CR, before its record is written.
func (s *Store) Report(ctx context.Context, owner order.Owner, r order.Revision) error {
	e, err := s.Get(ctx, owner)
	if err == nil {
		err = e.Add(r)
	}
	if err != nil {
		return err
	}
	return s.Put(ctx, e)
}

// fault names the rule that the account lacks, if it lacks one.
func (s *Store) fault(does, verbs string, err error) error {
	err = fmt.Errorf("%s the entry of the release in the ledger of the operator's namespace %q: %w", does, s.Namespace, err)
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("%w. Give the operator's account the verbs %s for configmaps in this namespace", err, verbs)
	}
	return err
}

func (e *Entry) clone() (*Entry, error) {
	text, err := json.Marshal(e)
	copied := &Entry{version: e.version, exists: e.exists}
	return copied, errors.Join(err, json.Unmarshal(text, copied))
}

// encode returns an object with the entry, packed if it is large.
func encode(e *Entry) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{}
	if len(text) <= maxText {
		object.Data = map[string]string{textKey: string(text)}
		return object, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	if packed.Len() > maxText || len(text) > maxUnpacked {
		return nil, fmt.Errorf("the list of objects of release %q is too large for the ledger: it has %d bytes, %d packed; allowed are %d, %d packed. Split the chart, or set a smaller maxHistory", e.Release(), len(text), packed.Len(), maxUnpacked, maxText)
	}
	object.BinaryData = map[string][]byte{packedKey: packed.Bytes()}
	return object, nil
}

func decode(object *corev1.ConfigMap) (*Entry, error) {
	text := []byte(object.Data[textKey])
	var err error
	if packed := object.BinaryData[packedKey]; packed != nil {
		var unpacked *gzip.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			text, err = io.ReadAll(io.LimitReader(unpacked, maxUnpacked)) // The rest of a longer one is missed.
		}
	}
	e := &Entry{}
	if err == nil {
		err = json.Unmarshal(text, e)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the entry of the ledger of releases in the ConfigMap %s/%s: %w. If you delete the ConfigMap, the release is taken over as one of an earlier operator", object.Namespace, object.Name, err)
	}
	e.version, e.exists = object.ResourceVersion, true
	return e, nil
}
