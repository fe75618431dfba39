package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// meaning is the part of a chart that has an effect on its output. Changes by packaging are not in
// it: the text of Chart.yaml and of the lock file, the form in which subcharts lie in charts/, and
// the time and mode of files. So a chart's directory has the digest of its archive.
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

// releaseDigest returns the digest of the inputs of a release: a chart with a digest, and values.
// It is fit for a label.
func releaseDigest(chart string, values map[string]any) (string, error) {
	const digits = 32
	whole, err := sum(struct {
		Chart  string
		Values map[string]any
	}{chart, values})
	if err != nil {
		return "", err
	}
	return whole[:digits], nil
}

// chartDigest returns the digest of a chart as it was loaded.
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
