package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// InstalledCollection is a collection in a tree.
type InstalledCollection struct {
	Dir string
	// Version is the version in the manifest; "" if there is none, as in a checkout.
	Version string
}

// FindCollection returns a collection such as "community.sops" from each of the trees that
// has it, in order. The trees are directories named ansible_collections. Ansible uses the
// first one.
func FindCollection(collection string, trees ...string) []InstalledCollection {
	var found []InstalledCollection
	for _, tree := range trees {
		dir := filepath.Join(tree, strings.Replace(collection, ".", "/", 1))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			found = append(found, InstalledCollection{Dir: dir, Version: readVersion(dir)})
		}
	}
	return found
}

func readVersion(dir string) string {
	var read struct {
		Info struct {
			Version string `json:"version"`
		} `json:"collection_info"`
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil || json.Unmarshal(text, &read) != nil {
		return ""
	}
	return read.Info.Version
}
