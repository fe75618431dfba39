package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// meaning is all of a chart that has an effect on what it renders. What packaging changes is
// not in it: the text of Chart.yaml and of the lock file, the form in which subcharts lie in
// charts/, and the time and mode of files. So a chart's directory has the digest of its archive.
type meaning struct {
	Metadata *chart.Metadata
	Values   map[string]any
	Schema   []byte
	// Templates and Files are sorted by name.
	Templates, Files []fileSum
	// Subcharts are digests, sorted: Helm loads subcharts in the order of a Go map.
	Subcharts []string
}

type fileSum struct {
	Name string
	Sum  [sha256.Size]byte
}

// digests returns the digest of a chart, and that of what a release is made of, fit for a label.
// The chart must be as it was loaded: Helm's ProcessDependencies changes it.
func digests(c *chart.Chart, values map[string]any) (of, release string, err error) {
	if of, err = chartDigest(c); err != nil {
		return "", "", fmt.Errorf("digest the chart: %w", err)
	}
	whole, err := sum(struct {
		Chart  string
		Values map[string]any
	}{of, values})
	if err != nil {
		return "", "", fmt.Errorf("digest the values: %w", err)
	}
	const digits = 32
	return of, whole[:digits], nil
}

func chartDigest(c *chart.Chart) (string, error) {
	m := meaning{Metadata: c.Metadata, Values: c.Values, Schema: c.Schema, Templates: fileSums(c.Templates), Files: fileSums(c.Files)}
	for _, subchart := range c.Dependencies() {
		of, err := chartDigest(subchart)
		if err != nil {
			return "", err
		}
		m.Subcharts = append(m.Subcharts, of)
	}
	slices.Sort(m.Subcharts)
	return sum(m)
}

// fileSums keeps the order of files with one name: the last of them is the one that counts.
func fileSums(files []*common.File) []fileSum {
	var sums []fileSum
	for _, file := range files {
		sums = append(sums, fileSum{file.Name, sha256.Sum256(file.Data)})
	}
	slices.SortStableFunc(sums, func(a, b fileSum) int { return strings.Compare(a.Name, b.Name) })
	return sums
}

// sum returns the digest of a value as JSON, in which the keys of maps are sorted.
func sum(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	of := sha256.Sum256(text)
	return hex.EncodeToString(of[:]), nil
}
