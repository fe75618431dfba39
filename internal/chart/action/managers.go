package action

import (
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

// movingClient is Helm's client, which before an update moves the fields that the release's former
// operator holds to Helm's field manager. A server-side apply removes only what its own manager
// holds: a container that the chart drops would stay in the object for ever. Helm itself moves only
// the fields that a program of its own name holds.
type movingClient struct {
	*kube.Client

	name, namespace string // of the release
	// left is called with each object that is left because it belongs to another release.
	left func(string)
}

// moveFields makes the run's client a movingClient.
func (r *run) moveFields(left func(string)) {
	if client, ok := r.config.KubeClient.(*kube.Client); ok { // Tests have others.
		r.config.KubeClient = movingClient{client, r.Name, r.Namespace, left}
	}
}

// Update implements kube.Interface.
func (c movingClient) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	for _, original := range originals.Intersect(targets) {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.move(original) }); err != nil {
			return &kube.Result{}, fmt.Errorf("take over the fields of %s %q: %w", original.Mapping.GroupVersionKind.Kind, original.Name, err)
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
func (c movingClient) withoutOthers(originals, targets kube.ResourceList) (kube.ResourceList, error) {
	dropped := originals.Difference(targets)
	others := kube.ResourceList{}
	for _, original := range dropped {
		info := *original
		if err := info.Get(); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read %s %q before it is deleted: %w", original.Mapping.GroupVersionKind.Kind, original.Name, err)
		}
		live, err := meta.Accessor(info.Object)
		if err != nil {
			return nil, err
		}
		if other := otherRelease(live, c.namespace, c.name); other != "" {
			others.Append(original)
			c.left(fmt.Sprintf("%s %s, which belongs to the release %s", original.Mapping.GroupVersionKind.Kind, strings.TrimPrefix(original.Namespace+"/"+original.Name, "/"), other))
		}
	}
	return originals.Difference(others), nil
}

// move moves the fields of one object, if it belongs to the release.
func (c movingClient) move(original *resource.Info) error {
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
