package helmclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"
)

// unservedVersion matches what the API server answers to each server-side apply of an object of which
// somebody wrote fields in a version that its definition has no more, and has that version:
// kubernetes/kubernetes#111937.
var unservedVersion = regexp.MustCompile(`to an invalid group/version: ([a-z0-9./-]+)`)

// unservedVersions returns the versions that a refusal names.
func unservedVersions(refusal error) (found []string) {
	for _, match := range unservedVersion.FindAllStringSubmatch(refusal.Error(), -1) {
		found = append(found, strings.TrimRight(match[1], "."))
	}
	return found
}

// renewVersions gives the entries of managedFields that are in an unserved version the version in
// which the chart applies the object. Whose the fields are does not change, so that what the chart
// drops still goes. It reports whether there are any such entries.
func renewVersions(targets kube.ResourceList, unserved []string) (found bool, err error) {
	var errs []error
	for _, target := range targets {
		errs = append(errs, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			renewed, err := renewVersion(target, unserved)
			found = found || renewed
			return err
		}))
	}
	return found, errors.Join(errs...)
}

func renewVersion(target *resource.Info, unserved []string) (bool, error) {
	live, err := get(target)
	if live == nil || err != nil {
		return false, err
	}
	entries, version, found := live.GetManagedFields(), target.Mapping.GroupVersionKind.GroupVersion().String(), false
	for i := range entries {
		if slices.Contains(unserved, entries[i].APIVersion) {
			entries[i].APIVersion, found = version, true
		}
	}
	if !found {
		return false, nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return false, fmt.Errorf("write the owners of the fields of %s: %w", nameOf(target), err)
	}
	_, err = resource.NewHelper(target.Client, target.Mapping).WithFieldManager(FieldManager).Patch(target.Namespace, target.Name, types.JSONPatchType, patch, nil)
	if err != nil && !apierrors.IsConflict(err) {
		err = fmt.Errorf("write the owners of the fields of %s: %w", nameOf(target), err)
	}
	return err == nil, err
}
