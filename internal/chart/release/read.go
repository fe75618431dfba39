package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
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
	// maxRevisions bounds the listed revisions of a release, the newest first.
	maxRevisions = 2000
	// maxOpened bounds the records of other managers that are read when a release is taken over.
	maxOpened = 20
	// pageSize bounds the revisions in one answer of the API server, and maxReferences the owners of each:
	// the metadata of a Secret can have more than 1 MiB.
	pageSize      = 50
	maxReferences = 100
)

// Records are the Secrets in which Helm keeps one release. Tenants may write Secrets in the namespace, so
// only records that the ledger knows count.
type Records struct {
	// Name and Namespace are the release's.
	Name, Namespace string
	// Seal says for which CR the records are sealed, and how.
	Seal order.Seal
	// Known are the revisions of the ledger, the newest last.
	Known []order.Revision

	secrets clientv1.SecretInterface
	meta    metadata.ResourceInterface
	// believed is true after Believe.
	believed bool
}

// Believe makes all listed revisions count as known by the ledger and sealed. It is for callers that have neither
// ledger nor keys and change nothing.
func (r *Records) Believe(listed []Revision) {
	r.believed = true
	for _, one := range slices.Backward(listed) {
		r.Known = append(r.Known, order.Revision{Version: one.Version, Attempt: one.attempt, Status: one.Status})
	}
}

// NewRecords returns the records of a release at the API server of the config.
func NewRecords(config *rest.Config, namespace, name string, s order.Seal, known []order.Revision) (*Records, error) {
	core, err := clientv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read release %q: %w", name, err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read release %q: %w", name, err)
	}
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	return &Records{Name: name, Namespace: namespace, Seal: s, Known: known, secrets: &secrets{SecretInterface: core.Secrets(namespace), annotations: annotationsOf(s.Owner)}, meta: meta.Resource(resource).Namespace(namespace)}, nil
}

// History is the known state of a release: by the ledger, and from the API server.
type History struct {
	// Revisions are all that have a record, the newest first. Known are those of the ledger, the newest
	// last.
	Revisions []Revision
	Known     []order.Revision
	// Last and Deployed are the records of the ledger's last revision, and of the one that is or was
	// deployed; nil if there is none, or if its record is lost.
	Last, Deployed *Release
}

// Read returns the history of the listed revisions. It opens two records at most.
func (r *Records) Read(ctx context.Context, listed []Revision) (h History, err error) {
	h.Revisions, h.Known = listed, r.Known
	if len(r.Known) == 0 {
		return h, nil
	}
	last, deployed := &r.Known[len(r.Known)-1], order.Deployed(r.Known)
	if h.Last, err = r.open(ctx, *last); err != nil {
		return History{}, err
	}
	switch {
	case deployed == last:
		h.Deployed = h.Last
	case deployed != nil:
		if h.Deployed, err = r.open(ctx, *deployed); err != nil {
			return History{}, err
		}
	}
	for i := range h.Revisions {
		of := &h.Revisions[i]
		known := r.known(of.Version)
		of.Counts = known != nil && of.attempt == known.Attempt && (known.Version != last.Version || h.Last != nil) && (deployed == nil || known.Version != deployed.Version || h.Deployed != nil)
	}
	return h, nil
}

// Kept returns the revisions whose objects may exist, the last and the deployed one, each with its record; nil if that
// is lost.
func (h History) Kept() iter.Seq2[order.Revision, *Release] {
	return func(yield func(order.Revision, *Release) bool) {
		if len(h.Known) == 0 {
			return
		}
		last, deployed := &h.Known[len(h.Known)-1], order.Deployed(h.Known)
		if yield(*last, h.Last) && deployed != nil && deployed != last {
			yield(*deployed, h.Deployed)
		}
	}
}

// known returns the ledger's revision with the number; nil if there is none.
func (r *Records) known(version int) *order.Revision { return knownAs(r.Known, version) }

func knownAs(all []order.Revision, version int) *order.Revision {
	i := slices.IndexFunc(all, func(k order.Revision) bool { return k.Version == version })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Sealed returns the states of the attempt's revisions, and of the last one, that chart-exec has sealed.
func (r *Records) Sealed(ctx context.Context, attempt string) (map[int]string, error) {
	states := map[int]string{}
	for i, k := range r.Known {
		if k.Attempt != attempt && i < len(r.Known)-1 {
			continue
		}
		k.Status = "" // The record has it.
		found, err := r.open(ctx, k)
		if err != nil {
			return nil, err
		}
		if found != nil && found.Info.Status != common.StatusUnknown {
			states[k.Version] = found.Info.Status.String()
		}
	}
	return states, nil
}

// Restate corrects the state in the labels of records, which Helm's command reads, where the ledger has
// another state, as after an attempt that was killed.
func (r *Records) Restate(ctx context.Context, revisions []Revision) error {
	for i := range revisions {
		of := &revisions[i]
		if !of.Counts || !r.misstated(of) {
			continue
		}
		found, err := r.open(ctx, *r.known(of.Version))
		if err == nil && found != nil {
			err = NewDriver(r).Update(of.Secret, found)
		}
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("bring the state of revision %d of release %q up to date: %w", of.Version, r.Name, err)
		}
	}
	return nil
}

func (r *Records) misstated(of *Revision) bool { return of.Status != r.known(of.Version).Status }

// Misstated reports whether Restate would change a record.
func (r *Records) Misstated(revisions []Revision) bool {
	return slices.ContainsFunc(revisions, func(of Revision) bool { return of.Counts && r.misstated(&of) })
}

// List returns the revisions without their content, the newest first. If there are too many, it returns the
// first ones, and those of the ledger.
func (r *Records) List(ctx context.Context) ([]Revision, error) {
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
		if len(all) <= maxRevisions {
			continue
		}
		if len(r.Known) == 0 {
			return nil, fmt.Errorf("release %q has more than %d revisions: delete Secrets with the labels %s", r.Name, maxRevisions, selector)
		}
		if all, err = r.withKnown(ctx, all); err != nil {
			return nil, err
		}
		break
	}
	slices.SortFunc(all, func(a, b Revision) int { return b.Version - a.Version })
	return all, nil
}

// withKnown adds the revisions of the ledger that were not listed.
func (r *Records) withKnown(ctx context.Context, all []Revision) ([]Revision, error) {
	for _, k := range r.Known {
		if slices.ContainsFunc(all, func(listed Revision) bool { return listed.Version == k.Version }) {
			continue
		}
		object, err := r.meta.Get(ctx, key(r.Name, k.Version), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read revision %d of release %q: %w", k.Version, r.Name, err)
		}
		if revision, ok := r.revision(object); ok {
			all = append(all, revision)
		}
	}
	return all, nil
}

// revision reads the metadata of a Secret; false if Helm would not find it by its name. A Secret with
// too many owners counts as one without owners.
func (r *Records) revision(object *metav1.PartialObjectMetadata) (Revision, bool) {
	version, err := strconv.Atoi(object.Labels["version"])
	if err != nil || version < 1 || object.Name != key(r.Name, version) {
		return Revision{}, false
	}
	if len(object.OwnerReferences) > maxReferences {
		object.OwnerReferences = nil
	}
	links := linksOf(object)
	for i := range links {
		links[i].UID = cmp.Or(links[i].UID, types.UID(object.Labels[order.OwnerLabel])) // Annotations have none.
	}
	return Revision{
		Version: version, Status: object.Labels["status"], Links: links,
		Secret: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		attempt: object.Labels[order.AttemptLabel], references: object.OwnerReferences,
	}, true
}

func key(name string, version int) string { return fmt.Sprintf("%s.v%d", Series(name), version) }

// Series returns the name of the records of a release without the ".v" and number of each.
func Series(release string) string { return storage.HelmStorageType + "." + release }

// open reads the record of a revision that the ledger knows. It returns nil if the record is lost or not
// authentic.
func (r *Records) open(ctx context.Context, known order.Revision) (*Release, error) {
	found, err := r.read(ctx, known.Version)
	if errors.Is(err, errUnreadable) || apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // See above.
	}
	if err != nil {
		return nil, err
	}
	if r.believed {
		return found, nil
	}
	return verify(found, r.Seal, known)
}

// errUnreadable is the error of a Secret that holds no record.
var errUnreadable = errors.New("no record of a release")

// read returns a record without a check of its seal.
func (r *Records) read(ctx context.Context, version int) (*Release, error) {
	secret, err := r.secrets.Get(ctx, key(r.Name, version), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read revision %d of release %q: %w", version, r.Name, err)
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

// Unlink replaces the records' owner references to the CR by annotations: in a foreground deletion the
// garbage collector deletes objects with such references before any hook runs.
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
	for {
		all, err := r.List(ctx)
		if err != nil {
			return err
		}
		slices.Reverse(all) // The newest one names the objects to remove, so it goes last.
		if err := r.delete(ctx, all, func(Revision) bool { return true }); err != nil || len(all) <= maxRevisions {
			return err
		}
	}
}

// delete deletes the Secrets of revisions, each if it has not changed.
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
