package rundir

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
)

const (
	tempName = ".tmp"
	// discoveryCaches matches the files in which Python's Kubernetes client caches the API's
	// discovery for other processes.
	discoveryCaches = "k8srcp-*"
)

// processTempName matches the random names of temporary files that Python or Ansible makes
// for one process.
var processTempName = regexp.MustCompile(`^(ansible_.+_payload_|pymp-|tmp)[a-z0-9_]{8}$`)

// temp describes the temporary directory that runs share.
type temp struct {
	// candidates were in the directory when the runs in waitFor, and no others, were live. So
	// these runs or earlier ones made them.
	candidates []string
	waitFor    map[string]bool
}

// clearTemp is called with mu locked when a run of the CR has ended. If no run is live, it
// removes everything but the caches. If there always is a live run, files of killed
// processes would fill the disk; so files of one process are removed when all runs have
// ended that may have made them.
func (r *Root) clearTemp(ended string) error {
	delete(r.temp.waitFor, ended)
	if len(r.running) > 0 && len(r.temp.waitFor) > 0 {
		return nil
	}
	dir, err := openDir(r.root, tempName)
	if err != nil {
		return err
	}
	defer dir.Close()
	if len(r.running) == 0 {
		r.temp = temp{}
		return removeEntries(dir, isNotCache)
	}
	if err := removeEntries(dir, func(e fs.DirEntry) bool { return slices.Contains(r.temp.candidates, e.Name()) }); err != nil {
		return err
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	r.temp = temp{waitFor: maps.Clone(r.running)}
	for _, e := range entries {
		if processTempName.MatchString(e.Name()) {
			r.temp.candidates = append(r.temp.candidates, e.Name())
		}
	}
	return err
}

func isNotCache(e fs.DirEntry) bool {
	cache, err := path.Match(discoveryCaches, e.Name())
	return err == nil && !(cache && e.Type().IsRegular())
}
