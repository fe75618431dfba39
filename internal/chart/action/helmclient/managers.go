package helmclient

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// move moves the fields of one object, if it belongs to the release.
func (c *Client) move(original *resource.Info) error {
	live, err := get(original)
	if live == nil || err != nil {
		return err
	}
	managers := formerManagers(live.GetManagedFields())
	annotations := live.GetAnnotations()
	if annotations[releaseName] != c.Name || annotations[releaseNamespace] != c.Namespace || len(managers) == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, FieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = resource.NewHelper(original.Client, original.Mapping).WithFieldManager(FieldManager).Patch(original.Namespace, original.Name, types.JSONPatchType, patch, nil)
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
