package files

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

// manifestName is a file in the root of an installed collection. It has the checksum of
// FILES.json, which has the checksums of all files.
const manifestName = "MANIFEST.json"

// DigestCollections returns a hexadecimal SHA-256 of the collections in trees, which are
// directories named ansible_collections. If several trees have a collection, the first one
// counts, as for Ansible. An installed collection is represented by its manifest, a checkout
// by its files. A collection that cannot be read counts as empty, because content may not
// need it. For a hundred installed collections it takes some milliseconds.
func DigestCollections(trees ...string) string {
	found := map[string]string{}
	for _, tree := range trees {
		for _, namespace := range packageDirs(tree) {
			for _, name := range packageDirs(filepath.Join(tree, namespace)) {
				collection := namespace + "." + name
				if _, known := found[collection]; !known {
					found[collection] = digestCollection(filepath.Join(tree, namespace, name))
				}
			}
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		// Writing to a hash never fails.
		_, _ = fmt.Fprintf(sum, "%s %s\n", name, found[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// packageDirs returns the names of the directories, or links to directories, that Ansible
// takes for a namespace or a collection.
func packageDirs(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if strings.ContainsAny(entry.Name(), ".-") || strings.HasPrefix(entry.Name(), "__") {
			continue // Such as kubernetes.core-6.6.0.info, which ansible-galaxy makes.
		}
		if info, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && info.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

func digestCollection(dir string) string {
	if text, err := os.ReadFile(filepath.Join(dir, manifestName)); err == nil {
		sum := sha256.Sum256(text)
		return "manifest " + hex.EncodeToString(sum[:])
	}
	files, err := Digest(dir)
	if err != nil {
		return ""
	}
	return "files " + files
}
