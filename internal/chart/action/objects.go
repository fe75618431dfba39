package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	chartobjects "github.com/ensign-operator/ensign/internal/chart/objects"
	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// base returns a manifest from which Helm can start where there is no record. It has the identities of the
// objects that the ledger names, or else of the objects of the manifests that are children of the CR. Any
// client may have written the manifests, so base uses nothing else of them. An object belongs to the
// release only if it has Helm's label and annotations.
func (r *run) base(ctx context.Context, manifests []string) (string, error) {
	var named []*unstructured.Unstructured
	for _, one := range r.Base {
		named = append(named, records.Object(one))
	}
	for _, text := range manifests {
		objects, err := manifest.Parse(text)
		if err == nil { // Otherwise it is not one of Helm's.
			named = append(named, objects...)
		}
	}
	var kept strings.Builder
	seen := map[string]bool{}
	for _, object := range named {
		identity := manifest.Identity(object)
		if seen[identity] {
			continue
		}
		seen[identity] = true
		live, _, err := r.cluster.Get(ctx, object)
		if err != nil {
			return "", err
		}
		if live != nil && chartobjects.BelongsTo(live, r.Namespace, r.Name) && (len(r.Base) > 0 || records.Linked(live, r.Seal.Owner)) {
			kept.WriteString(identity)
		}
	}
	return kept.String(), nil
}

// served returns the manifest without the objects of kinds that the API server does not serve any
// more. Where only the object's own version is not served, the object gets a served one. Helm could
// neither upgrade nor uninstall a release with an unserved object. Where nothing is to be changed,
// served returns the text as it is.
func (r *run) served(text string) (string, error) {
	objects, err := manifest.Parse(text)
	if err != nil {
		return "", err
	}
	var kept strings.Builder
	changed := false
	for _, object := range objects {
		before := object.GetAPIVersion()
		_, err := r.cluster.Find(object)
		if meta.IsNoMatchError(err) {
			_, err = r.cluster.FindServed(object)
		}
		switch {
		case errors.Is(err, manifest.ErrNotServed):
			changed = true
			continue
		case err != nil:
			return "", err
		}
		changed = changed || object.GetAPIVersion() != before
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("write %s: %w", manifest.Name(object), err)
		}
		kept.WriteString("---\n" + string(document))
	}
	if !changed {
		return text, nil
	}
	return kept.String(), nil
}

// refuseOthers returns an error if an object that the chart renders belongs to another release or
// owner. Adopt takes over only objects without one. Helm's own take-over does not check that.
func (r *run) refuseOthers(ctx context.Context) error {
	text, err := r.wanted(ctx)
	if err != nil {
		return err
	}
	objects, err := manifest.Parse(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		live, _, err := r.cluster.Get(ctx, object)
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		if other := chartobjects.OtherRelease(live, r.Namespace, r.Name); other != "" {
			return fmt.Errorf("%s belongs to the release %s, and adopt takes over only objects that belong to nobody", manifest.Name(object), other)
		}
		if other := chartobjects.OtherOwner(live, r.Namespace, r.Name, types.UID(r.Seal.Owner.UID)); other != "" {
			return fmt.Errorf("%s belongs to %s, and adopt takes over only objects that belong to nobody", manifest.Name(object), other)
		}
	}
	return nil
}

// wanted returns the manifest that the action will apply.
func (r *run) wanted(ctx context.Context) (string, error) {
	if err := r.fits(); err != nil {
		return "", err
	}
	_, made, err := r.sorted(ctx, r.options(1))
	return manifestOf(made), err
}
