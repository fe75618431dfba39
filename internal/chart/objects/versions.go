package objects

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unservedVersion matches the version in the API server's answer to each server-side apply of an
// object with managed fields in a version that the CRD no longer has: kubernetes/kubernetes#111937.
var unservedVersion = regexp.MustCompile(`to an invalid group/version: ([a-z0-9./-]+)`)

// unservedVersions returns the versions that a refusal names.
func unservedVersions(refusal error) (found []string) {
	for _, match := range unservedVersion.FindAllStringSubmatch(refusal.Error(), -1) {
		found = append(found, strings.TrimRight(match[1], "."))
	}
	return found
}

// renewVersions sets the version of entries of managedFields in an unserved version to the one in which
// the chart applies the object. The managers of the fields do not change, so that fields that the
// chart drops are still removed. It returns nil if there are no such entries.
func renewVersions(live *unstructured.Unstructured, unserved []string, version string) (entries []metav1.ManagedFieldsEntry) {
	entries = live.GetManagedFields()
	found := false
	for i := range entries {
		if slices.Contains(unserved, entries[i].APIVersion) {
			entries[i].APIVersion, found = version, true
		}
	}
	if !found {
		return nil
	}
	return entries
}
