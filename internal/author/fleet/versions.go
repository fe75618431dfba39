package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Version is a version of a kind's content, and the number of CRs for which it ran last.
type Version struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Names are the content's names for people. Content that did not change between two versions of
	// an operator has both names.
	Names []string `json:"names,omitempty"`
	// Digest stands for the content; "" if it is unknown.
	Digest    string `json:"digest,omitempty"`
	Resources int    `json:"resources"`
}

// Versions returns the versions of the content of the rows: kinds in the order of the rows, and within
// a kind the version with most CRs first. An unknown version comes last.
func Versions(rows []Row) []Version {
	all := []Version{}
	type content struct{ apiVersion, kind, name, digest string }
	kinds, index := map[string]int{}, map[content]int{}
	for _, r := range rows {
		kinds[r.APIVersion+r.Kind] = cmp.Or(kinds[r.APIVersion+r.Kind], len(kinds)+1)
		key := content{r.APIVersion, r.Kind, "", r.Digest}
		if r.Digest == "" {
			key.name = r.Version
		}
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, Version{APIVersion: r.APIVersion, Kind: r.Kind, Digest: r.Digest})
		}
		all[i].Resources++
		if r.Version != "" && !slices.Contains(all[i].Names, r.Version) {
			all[i].Names = append(all[i].Names, r.Version)
		}
	}
	for i := range all {
		slices.Sort(all[i].Names)
	}
	unknown := func(v Version) int { return 1 - min(1, len(v.text())) }
	slices.SortStableFunc(all, func(a, b Version) int {
		return cmp.Or(kinds[a.APIVersion+a.Kind]-kinds[b.APIVersion+b.Kind], unknown(a)-unknown(b), b.Resources-a.Resources)
	})
	return all
}

// version names the content that ran last for the CR; "" if it is unknown.
func (r Row) version() string {
	if r.Version == "" {
		return r.Digest
	}
	return Version{Names: []string{r.Version}, Digest: r.Digest}.text()
}

// text names the version for people: "1.4.0 (3f2a9c1d0b12)"; "" if it is unknown.
func (v Version) text() string {
	names := oneLine(strings.Join(v.Names, ", "))
	if names == "" || v.Digest == "" {
		return names + v.Digest
	}
	return fmt.Sprintf("%s (%s)", names, v.Digest)
}

// Summary says of each kind with several CRs which versions of its content ran last for how many
// of them, one line a kind. A kind of which no version is known is left out.
func Summary(versions []Version) string {
	var text strings.Builder
	for len(versions) > 0 {
		first, resources, parts := versions[0], 0, []string(nil)
		for len(versions) > 0 && versions[0].Kind == first.Kind && versions[0].APIVersion == first.APIVersion {
			resources += versions[0].Resources
			parts = append(parts, fmt.Sprintf("%d ran %s", versions[0].Resources, cmp.Or(versions[0].text(), "an unknown version or none")))
			versions = versions[1:]
		}
		if resources > 1 && first.text() != "" {
			fmt.Fprintf(&text, "%s: %s\n", first.Kind, strings.Join(parts, ", "))
		}
	}
	return text.String()
}
