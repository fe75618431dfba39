package ownership

import (
	"maps"
	"strings"
)

const labelsKey = "labels"

// IsRecord reports whether a Secret with the name is one in which Helm stores a release. Helm takes
// its labels for the release's own and copies them to later revisions.
func IsRecord(name string) bool { return strings.HasPrefix(name, "sh.helm.release.v1.") }

// ensure gives desired the link to the owner and the labels that the package comment says, and
// reports whether it has changed desired. live and desired are as for ensureOwner.
func (t Target) ensure(live, desired map[string]any) (bool, error) {
	stamped := t.stamp(desired)
	if t.LabelsOnly {
		return stamped, nil
	}
	linked, err := t.ensureOwner(live, desired)
	return stamped || linked, err
}

// stamp sets the target's labels in metadata, and reports whether that is a change. Labels that are
// no mapping are left: the API server refuses them with its own message.
func (t Target) stamp(metadata map[string]any) (changed bool) {
	name, _ := metadata["name"].(string)
	if len(t.Labels) == 0 || IsRecord(t.Name) || IsRecord(name) {
		return false
	}
	before, err := member(metadata, labelsKey)
	if err != nil {
		return false
	}
	after := maps.Clone(before)
	for label, value := range t.Labels {
		if after[label] != value {
			after[label], changed = value, true
		}
	}
	if changed {
		metadata[labelsKey] = after
	}
	return changed
}

// touchesLabels reports whether a change at the path of a JSON pointer could change the labels.
func (t Target) touchesLabels(path []string) bool {
	if len(t.Labels) == 0 || len(path) < 2 || path[0] != "metadata" || path[1] != labelsKey {
		return false
	}
	return len(path) == 2 || t.Labels[path[2]] != ""
}

// patchesLabels reports whether the metadata of a merge patch could change the labels.
func (t Target) patchesLabels(metadata map[string]any) bool {
	value, given := metadata[labelsKey]
	labels, ok := value.(map[string]any)
	if len(t.Labels) == 0 || !ok {
		return given && len(t.Labels) > 0
	}
	for label := range labels {
		if t.Labels[label] != "" || label == directiveKey || label == retainKey {
			return true
		}
	}
	return false
}

// labelDifference returns the operations for the changes that stamp has made to metadata.
func labelDifference(before, after map[string]any) []map[string]any {
	oldLabels, _ := member(before, labelsKey)
	newLabels, _ := member(after, labelsKey)
	if before[labelsKey] == nil && len(newLabels) > 0 {
		return []map[string]any{{"op": "add", "path": "/metadata/" + labelsKey, "value": newLabels}}
	}
	var added []map[string]any
	for label, value := range newLabels {
		if oldLabels[label] != value {
			added = append(added, map[string]any{"op": "add", "path": "/metadata/" + labelsKey + "/" + strings.ReplaceAll(label, "/", "~1"), "value": value})
		}
	}
	return added
}
