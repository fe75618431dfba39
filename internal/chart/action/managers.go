package action

import (
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The annotations by which Helm knows the objects of a release.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// releaseClient is Helm's client for the objects of one release.
//
//   - Before an update it moves the fields that the release's former operator holds to Helm's field
//     manager. A server-side apply removes only what its own manager holds: a container that the
//     chart drops would stay in the object for ever. Helm itself moves only the fields that a
//     program of its own name holds.
//   - An update leaves objects that belong to another release by now.
//   - It keeps why objects could not be deleted: Helm's uninstallation only says that it failed.
type releaseClient struct {
	*kube.Client

	name, namespace string // of the release
	// left is called with each object that is left because it belongs to another release.
	left func(string)
	// undeleted gets an error for each object that could not be deleted.
	undeleted *[]error
}

// guardClient makes the run's client a releaseClient.
func (r *run) guardClient(left func(string)) {
	if client, ok := r.config.KubeClient.(*kube.Client); ok { // Tests have others.
		r.config.KubeClient = releaseClient{client, r.Name, r.Namespace, left, &r.undeleted}
	}
}

// Delete implements kube.Interface. It deletes one object after the other, in their order.
func (c releaseClient) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	all, errs := &kube.Result{}, []error(nil)
	for _, one := range resources {
		result, failed := c.Client.Delete(kube.ResourceList{one}, policy)
		if len(failed) > 0 {
			errs = append(errs, fmt.Errorf("%s: %w", nameOf(one), errors.Join(failed...)))
			continue
		}
		all.Deleted = append(all.Deleted, result.Deleted...)
	}
	if errs != nil {
		*c.undeleted = append(*c.undeleted, errs...)
		return nil, errs
	}
	return all, nil
}

// nameOf returns the kind, the namespace and the name of an object, for people.
func nameOf(info *resource.Info) string {
	return info.Mapping.GroupVersionKind.Kind + " " + strings.TrimPrefix(info.Namespace+"/"+info.Name, "/")
}

// Update implements kube.Interface.
func (c releaseClient) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	for _, original := range originals.Intersect(targets) {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.move(original) }); err != nil {
			return &kube.Result{}, fmt.Errorf("take over the fields of %s: %w", nameOf(original), err)
		}
	}
	originals, err := c.withoutOthers(originals, targets)
	if err != nil {
		return &kube.Result{}, err
	}
	return c.Client.Update(originals, targets, options...)
}

// withoutOthers returns the originals without those that are to be deleted, because the chart
// renders them no more, and belong to another release by now. Helm asks nobody before it deletes
// these.
func (c releaseClient) withoutOthers(originals, targets kube.ResourceList) (kube.ResourceList, error) {
	dropped := originals.Difference(targets)
	others := kube.ResourceList{}
	for _, original := range dropped {
		info := *original
		if err := info.Get(); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read %s before it is deleted: %w", nameOf(original), err)
		}
		live, err := meta.Accessor(info.Object)
		if err != nil {
			return nil, err
		}
		if other := otherRelease(live, c.namespace, c.name); other != "" {
			others.Append(original)
			c.left(nameOf(original) + ", which belongs to the release " + other)
		}
	}
	return originals.Difference(others), nil
}

// move moves the fields of one object, if it belongs to the release.
func (c releaseClient) move(original *resource.Info) error {
	info := *original
	if err := info.Get(); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	live, err := meta.Accessor(info.Object)
	if err != nil {
		return err
	}
	managers := formerManagers(live.GetManagedFields())
	annotations := live.GetAnnotations()
	if annotations[releaseName] != c.name || annotations[releaseNamespace] != c.namespace || len(managers) == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(info.Object, managers, FieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = resource.NewHelper(info.Client, info.Mapping).WithFieldManager(FieldManager).Patch(info.Namespace, info.Name, types.JSONPatchType, patch, nil)
	return err
}

// formerManagers returns the managers that have written the object, with Helm's annotation, as a
// whole: an operator is called like its program, helm-operator or manager or whatever its author
// chose, and helm 3 is called helm. Others that only changed some fields of the object, such as an
// autoscaler or another program called manager, have not written that annotation and keep theirs.
func formerManagers(entries []metav1.ManagedFieldsEntry) sets.Set[string] {
	managers := sets.New[string]()
	annotation := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", releaseName))
	for _, entry := range csaupgrade.FindFieldsOwners(entries, metav1.ManagedFieldsOperationUpdate, annotation) {
		if entry.Subresource == "" {
			managers.Insert(entry.Manager)
		}
	}
	return managers
}
