package content

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Installed is a collection in a tree.
type Installed struct {
	// Dir is its directory.
	Dir string
	// Version is that of its manifest, "" where it has none, as a checkout.
	Version string
}

// Find returns a collection such as "community.sops" in each of the trees, which are
// directories named ansible_collections, that has it. Ansible takes the first.
func Find(collection string, trees ...string) []Installed {
	var found []Installed
	for _, tree := range trees {
		dir := filepath.Join(tree, strings.Replace(collection, ".", "/", 1))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			found = append(found, Installed{Dir: dir, Version: version(dir)})
		}
	}
	return found
}

func version(dir string) string {
	var read struct {
		Info struct {
			Version string `json:"version"`
		} `json:"collection_info"`
	}
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil || json.Unmarshal(text, &read) != nil {
		return ""
	}
	return read.Info.Version
}
