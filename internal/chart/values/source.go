package values

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/ensign-operator/ensign/internal/watches"
)

// Source makes the values of the CRs of one watch. It loads the watch's chart once per change
// of its files. Its methods may be called concurrently.
type Source struct {
	watch     *watches.Chart
	overrides []watches.Override
	now       func() time.Time

	schemas schemas

	mu     sync.Mutex
	loaded *loaded
}

// loaded is a loaded chart, with the results that depend on its files alone. It is immutable.
type loaded struct {
	chart  *chart.Chart
	digest string
	// callsTpl is true if its templates may evaluate text.
	callsTpl bool
	// files is the fingerprint of its files.
	files fingerprint
}

// NewSource returns the source of a watch with evaluated overrides, or an error if the chart cannot be
// loaded.
func NewSource(c *watches.Chart, overrides []watches.Override) (*Source, error) {
	s := &Source{watch: c, overrides: overrides, now: time.Now}
	if _, err := s.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return s, nil
}

// load returns the chart as its files are now.
func (s *Source) load() (*loaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := fingerprintOf(s.watch.Path, s.now())
	if s.loaded != nil && s.loaded.files == files {
		return s.loaded, nil
	}
	s.loaded = nil
	c, err := loader.Load(s.watch.Path)
	if err != nil {
		return nil, invalidChart(fmt.Errorf("load the chart: %w", err))
	}
	l := &loaded{chart: c, callsTpl: callsTpl(c), files: files}
	if l.digest, err = chartDigest(c); err != nil {
		return nil, fmt.Errorf("digest the chart: %w", err)
	}
	if files != unknownFiles && fingerprintOf(s.watch.Path, s.now()) == files { // The files did not change during the load.
		s.loaded = l
	}
	return l, nil
}

// fingerprint changes when files of a chart do.
type fingerprint [sha256.Size]byte

// unknownFiles means that the files may change without a new fingerprint.
var unknownFiles fingerprint //nolint:gochecknoglobals // The zero value.

const (
	// settleTime is how long the newest file must have been left alone: a file that is written twice
	// within one tick of the file system's clock looks the same. The coarsest clocks tick every 2 s.
	settleTime = 3 * time.Second
	// maxFiles bounds the files of a fingerprint: a link may lead to one of its own directories.
	maxFiles = 5_000
)

// fingerprintOf returns the fingerprint of the files at the path, a directory or an archive. Like
// Helm it follows links. It is unknownFiles for files that cannot be read, are too many, or have
// just been written.
//
// It has the change time of each file, which the kernel sets: tools that copy a file with its
// modification time, and editors that replace it by another one of the same size, change that.
func fingerprintOf(path string, now time.Time) fingerprint {
	sum, left := sha256.New(), maxFiles
	var add func(path string) bool
	add = func(path string) bool {
		var st unix.Stat_t
		if left--; left < 0 || unix.Stat(path, &st) != nil {
			return false
		}
		changed := time.Unix(st.Ctim.Unix())
		if changed.Add(settleTime).After(now) {
			return false
		}
		fmt.Fprintf(sum, "%q %d %d %d %d %d\n", path, st.Dev, st.Ino, st.Size, st.Mtim.Nano(), changed.UnixNano())
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return true
		}
		entries, err := os.ReadDir(path)
		return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !add(filepath.Join(path, e.Name())) })
	}
	if !add(path) {
		return unknownFiles
	}
	return fingerprint(sum.Sum(nil))
}

// forHelm returns a copy of a chart for Helm's functions, which change their arguments:
// ProcessDependencies drops and renames subcharts, and imports their values. The bytes of files are
// shared.
func forHelm(c *chart.Chart) *chart.Chart {
	copied, metadata := *c, *c.Metadata
	metadata.Dependencies = nil
	for _, d := range c.Metadata.Dependencies {
		dependency := *d
		dependency.ImportValues = slices.Clone(d.ImportValues)
		metadata.Dependencies = append(metadata.Dependencies, &dependency)
	}
	copied.Metadata = &metadata
	copied.Values, _ = deepCopy(c.Values).(map[string]any)
	copied.SetDependencies()
	for _, subchart := range c.Dependencies() {
		copied.AddDependency(forHelm(subchart))
	}
	return &copied
}

// deepCopy returns a copy of a value from YAML.
func deepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key := range v {
			copied[key] = deepCopy(v[key])
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = deepCopy(v[i])
		}
		return copied
	}
	return value
}
