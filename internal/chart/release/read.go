package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"helm.sh/helm/v4/pkg/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

const (
	// maxRevisions bounds the revisions of a release that are looked at, the newest first.
	maxRevisions = 2000
	// maxOpened bounds the records that are read to find one that the manager has sealed.
	maxOpened = 20
	pageSize  = 500
)

// Records are the Secrets in which Helm keeps one release. Everybody who may write Secrets
// in the namespace can write them, so a record that the manager has not sealed does not count.
type Records struct {
	// Name and Namespace are the release's.
	Name, Namespace string
	// Seal says for which CR the records are sealed, and how.
	Seal order.Seal

	secrets clientv1.SecretInterface
	meta    metadata.ResourceInterface
	mu      sync.Mutex
	seen    map[int]*corev1.Secret // by their revisions, as they were read last
}

// NewRecords returns the records of a release at the API server of the config.
func NewRecords(config *rest.Config, namespace, name string, s order.Seal) (*Records, error) {
	core, err := clientv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read release %q: %w", name, err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read release %q: %w", name, err)
	}
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	return &Records{Name: name, Namespace: namespace, Seal: s, secrets: core.Secrets(namespace), meta: meta.Resource(resource).Namespace(namespace)}, nil
}

// History is what is known of a release, live from the API server.
type History struct {
	// Revisions are all revisions, the newest first.
	Revisions []Revision
	// Last is the newest sealed revision; nil if there is none. Deployed is the newest sealed
	// one that was deployed at some time.
	Last, Deployed *Release
}

// Read returns the history. It opens records, the newest first, until it has found what History
// has of them.
func (r *Records) Read(ctx context.Context) (h History, err error) {
	if h.Revisions, err = r.list(ctx); err != nil {
		return History{}, err
	}
	opened := 0
	for i := range h.Revisions {
		revision := &h.Revisions[i]
		// Attempts that failed say nothing about the deployed revision, however many there are.
		wanted := h.Last == nil || h.Deployed == nil && revision.wasDeployed() || revision.Status == deployed
		if !revision.claimsSeal || !wanted || opened == maxOpened {
			continue
		}
		opened++
		found, err := r.open(ctx, revision)
		if err != nil {
			return History{}, err
		}
		if found != nil && h.Last == nil {
			h.Last = found
		}
		if found != nil && h.Deployed == nil && revision.wasDeployed() {
			h.Deployed = found
		}
	}
	return h, nil
}

// list returns the revisions without their content.
func (r *Records) list(ctx context.Context) ([]Revision, error) {
	var all []Revision
	selector := labels.Set{"owner": "helm", "name": r.Name}.AsSelector().String()
	for next := ""; ; {
		page, err := r.meta.List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: pageSize, Continue: next})
		if err != nil {
			return nil, fmt.Errorf("list the revisions of release %q: %w", r.Name, err)
		}
		for i := range page.Items {
			if revision, ok := r.revision(&page.Items[i]); ok {
				all = append(all, revision)
			}
		}
		if next = page.Continue; next == "" {
			break
		}
		if len(all) > maxRevisions {
			return nil, fmt.Errorf("release %q has more than %d revisions: delete Secrets with the labels %s", r.Name, maxRevisions, selector)
		}
	}
	slices.SortFunc(all, func(a, b Revision) int { return b.Version - a.Version })
	return all, nil
}

// revision reads the metadata of a Secret. One that Helm would not find by its name is no
// revision.
func (r *Records) revision(object *metav1.PartialObjectMetadata) (Revision, bool) {
	version, err := strconv.Atoi(object.Labels["version"])
	if err != nil || version < 1 || object.Name != key(r.Name, version) {
		return Revision{}, false
	}
	return Revision{
		Version: version, Status: object.Labels["status"], Digest: object.Labels[order.DigestLabel],
		Mine:       object.Labels[order.OwnerLabel] == r.Seal.Owner.UID,
		claimsSeal: object.Labels[order.SealLabel] != "",
		Links:      linksOf(object), Secret: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		references: object.OwnerReferences,
	}, true
}

func key(name string, version int) string { return fmt.Sprintf("%s.v%d", Series(name), version) }

// Series returns the name of the records of a release without the ".v" and number of each.
func Series(release string) string { return storage.HelmStorageType + "." + release }

// open reads the record of a revision and sets Sealed. It returns nil for a record that is not
// sealed, which is another's, whatever it holds.
func (r *Records) open(ctx context.Context, revision *Revision) (*Release, error) {
	found, err := r.read(ctx, *revision)
	if errors.Is(err, errUnreadable) || apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // See above.
	}
	if err != nil || !verify(found, r.Seal) {
		return nil, err
	}
	revision.Sealed = true
	return found, nil
}

// errUnreadable is the error of a Secret that holds no record.
var errUnreadable = errors.New("no record of a release")

// read returns a record that may be anybody's. One that has not changed since it was read is not read again.
func (r *Records) read(ctx context.Context, revision Revision) (*Release, error) {
	version := revision.Version
	r.mu.Lock()
	secret := r.seen[version]
	r.mu.Unlock()
	if secret == nil || secret.UID != revision.UID || secret.ResourceVersion != revision.ResourceVersion {
		var err error
		if secret, err = r.secrets.Get(ctx, key(r.Name, version), metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("read revision %d of release %q: %w", version, r.Name, err)
		}
		r.mu.Lock()
		if r.seen == nil {
			r.seen = map[int]*corev1.Secret{}
		}
		r.seen[version] = secret
		r.mu.Unlock()
	}
	found, err := decode(secret.Data["release"])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	case found.Name != r.Name || found.Namespace != r.Namespace || found.Version != version:
		return nil, fmt.Errorf("%w: it is that of revision %d of %s/%s", errUnreadable, found.Version, found.Namespace, found.Name)
	}
	found.Labels = maps.Clone(secret.Labels)
	return found, nil
}

// Unlink has the records name the CR by annotations that refer to it as their owner: in a deletion in
// the foreground the garbage collector deletes what refers to the owner, before any hook runs.
func (r *Records) Unlink(ctx context.Context, revisions []Revision) error {
	owner, annotations := r.Seal.Owner, annotationsOf(r.Seal.Owner)
	for _, revision := range revisions {
		others := slices.DeleteFunc(slices.Clone(revision.references), func(o metav1.OwnerReference) bool { return o.UID == types.UID(owner.UID) })
		if len(others) == len(revision.references) {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": revision.UID, "ownerReferences": others, "annotations": annotations}})
		if err == nil {
			_, err = r.meta.Patch(ctx, revision.Secret, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove the owner reference of revision %d of release %q: %w", revision.Version, r.Name, err)
		}
	}
	return nil
}

// Purge deletes all revisions, sealed or not. It is the last step of a deletion.
func (r *Records) Purge(ctx context.Context) error {
	all, err := r.list(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(all) // The newest one says what is to be removed, so it goes last.
	return r.delete(ctx, all, func(Revision) bool { return true })
}

// delete deletes the Secrets of revisions, each as it was seen.
func (r *Records) delete(ctx context.Context, revisions []Revision, which func(Revision) bool) error {
	for _, revision := range revisions {
		if !which(revision) {
			continue
		}
		err := r.secrets.Delete(ctx, key(r.Name, revision.Version), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &revision.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete revision %d of release %q: %w", revision.Version, r.Name, err)
		}
	}
	return nil
}
