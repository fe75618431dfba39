package pyenv

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// versions are the versions of the installed packages, by name. A collection without a manifest,
// such as a checkout, has the version "".
type versions struct {
	Distributions map[string]string `json:"distributions"`
	Collections   map[string]string `json:"collection_versions"`
}

// digest returns a hexadecimal digest that does not depend on any order.
func (v versions) digest(python string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "python %q\n", python)
	for _, kind := range []struct {
		name     string
		versions map[string]string
	}{{"distribution", v.Distributions}, {"collection", v.Collections}} {
		for _, name := range slices.Sorted(maps.Keys(kind.versions)) {
			fmt.Fprintf(&text, "%s %q %q\n", kind.name, name, kind.versions[name])
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}
