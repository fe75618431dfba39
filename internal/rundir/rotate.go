package rundir

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"
)

// timeLayout sorts as text the way it sorts as time.
const timeLayout = "20060102T150405.000000000Z"

// artifactPattern is what artifactName makes. Only such directories are ever
// rotated away.
var artifactPattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func artifactName(now time.Time, id string) string {
	return now.UTC().Format(timeLayout) + "-" + id
}

// rotate removes the oldest artifacts until keep are left; 0 keeps all.
func rotate(artifacts *os.Root, keep int) error {
	if keep <= 0 {
		return nil
	}
	entries, err := fs.ReadDir(artifacts.FS(), ".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && artifactPattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names[:max(0, len(names)-keep)] {
		errs = append(errs, artifacts.RemoveAll(name))
	}
	return errors.Join(errs...)
}
