package content

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// manifest is a file in the root of a collection that was installed. It has the
// checksum of FILES.json, and that those of all files.
const manifest = "MANIFEST.json"

// Collections is a hexadecimal SHA-256 of the collections in trees, which are
// directories named ansible_collections. Of a collection that is in several, the
// first counts, as for Ansible. One that was installed is told by its manifest, a
// checkout by its files. What can't be read counts as empty: content may not need
// it. With a hundred installed collections it takes some milliseconds.
func Collections(trees ...string) string {
	found := map[string]string{}
	for _, tree := range trees {
		for _, namespace := range packages(tree) {
			for _, name := range packages(filepath.Join(tree, namespace)) {
				collection := namespace + "." + name
				if _, hidden := found[collection]; !hidden {
					found[collection] = digestCollection(filepath.Join(tree, namespace, name))
				}
			}
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		// A hash takes every write.
		_, _ = fmt.Fprintf(sum, "%s %s\n", name, found[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// packages are the directories, or links to such, that Ansible takes for a
// namespace or a collection.
func packages(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if strings.ContainsAny(entry.Name(), ".-") || strings.HasPrefix(entry.Name(), "__") {
			continue // As kubernetes.core-6.6.0.info, which ansible-galaxy leaves.
		}
		if info, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && info.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

func digestCollection(dir string) string {
	if text, err := os.ReadFile(filepath.Join(dir, manifest)); err == nil {
		sum := sha256.Sum256(text)
		return "manifest " + hex.EncodeToString(sum[:])
	}
	files, err := Digest(dir)
	if err != nil {
		return ""
	}
	return "files " + files
}
