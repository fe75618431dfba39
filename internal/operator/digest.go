package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/content"
	"github.com/ensign-operator/ensign/internal/watches"
)

// digestLength is long enough that no two digests of a watch are ever equal by
// chance, and short enough to be read in a status.
const digestLength = 32

// digestWatches returns for each watch a digest of its entry, its content, the
// collections that any content may name, and the Python environment. A CR whose
// status has it needs no run after a restart.
func (a ansible) digestWatches(roles, collections []string) (map[schema.GroupVersionKind]string, error) {
	trees := collectionTrees(collections)
	installed := content.DigestCollections(trees...)
	digests := map[schema.GroupVersionKind]string{}
	for _, watch := range a.watches {
		files, err := content.Digest(contentPaths(watch, roles, trees)...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", watch.GVK.GroupKind(), err)
		}
		entry, err := json.Marshal(entryOf(watch))
		if err != nil {
			return nil, fmt.Errorf("digest the watch of %s: %w", watch.GVK.GroupKind(), err)
		}
		sum := sha256.Sum256([]byte(strings.Join([]string{string(entry), files, installed, a.info.Digest}, "\n")))
		digests[watch.GVK] = hex.EncodeToString(sum[:])[:digestLength]
	}
	return digests, nil
}

// entryOf is the watch without what says nothing about its runs: the line where
// it stands. Its selector has no form of its own in JSON.
func entryOf(watch watches.Watch) any {
	selector := watch.Selector.String()
	watch.Line, watch.Selector = 0, nil
	return struct {
		watches.Watch
		Selector string
	}{watch, selector}
}

// contentPaths are the files and directories that a watch's runs may read: with
// its role those beside it, with its playbook all in the playbook's directory, the
// collection of a role that has one, and the roles that any content may name.
func contentPaths(watch watches.Watch, roles, trees []string) []string {
	paths := slices.Clone(roles)
	contents := []watches.Content{watch.Content}
	if watch.Finalizer != nil {
		contents = append(contents, watch.Finalizer.Content)
	}
	for _, c := range contents {
		switch {
		case c.Playbook != "":
			paths = append(paths, filepath.Dir(c.Playbook))
		case c.RolesPath != "":
			paths = append(paths, c.RolesPath)
		default:
			paths = append(paths, collectionDirs(c.Role, trees)...)
		}
	}
	return paths
}

// collectionTrees are the directories with collections of a search path.
func collectionTrees(path []string) []string {
	var trees []string
	for _, dir := range path {
		if filepath.Base(dir) != "ansible_collections" {
			dir = filepath.Join(dir, "ansible_collections")
		}
		trees = append(trees, dir)
	}
	return trees
}

// collectionDirs are the places of a role's collection.
func collectionDirs(role string, trees []string) []string {
	parts := strings.SplitN(role, ".", 3)
	var dirs []string
	for _, tree := range trees {
		dirs = append(dirs, filepath.Join(tree, parts[0], parts[1]))
	}
	return dirs
}
