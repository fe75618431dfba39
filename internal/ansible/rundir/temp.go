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
	// sharedCaches are what Python's Kubernetes client keeps of the API's
	// discovery in the temporary directory, for the next process to read.
	sharedCaches = "k8srcp-*"
)

// ofOneProcess is a name that Python or Ansible makes up for a process, and no
// other one knows.
var ofOneProcess = regexp.MustCompile(`^(ansible_.+_payload_|pymp-|tmp)[a-z0-9_]{8}$`)

// temp is what is known of the temporary directory that runs share.
type temp struct {
	// left were there when the runs of these CRs were live and no other: they belong
	// to one of those or of earlier ones.
	left []string
	runs map[string]bool
}

// clearTemp removes what belongs to no live run after that of a CR has ended: all
// but the caches when there is none. Where there always is one, killed processes
// would fill the disk; so what is surely of one process goes when all runs have
// ended that may have made it. It is called with the lock held.
func (r *Root) clearTemp(ended string) error {
	delete(r.temp.runs, ended)
	if len(r.live) > 0 && len(r.temp.runs) > 0 {
		return nil
	}
	dir, err := openDir(r.root, tempName)
	if err != nil {
		return err
	}
	defer dir.Close()
	if len(r.live) == 0 {
		r.temp = temp{}
		return removeEntries(dir, notCached)
	}
	if err := removeEntries(dir, func(e fs.DirEntry) bool { return slices.Contains(r.temp.left, e.Name()) }); err != nil {
		return err
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	r.temp = temp{runs: maps.Clone(r.live)}
	for _, e := range entries {
		if ofOneProcess.MatchString(e.Name()) {
			r.temp.left = append(r.temp.left, e.Name())
		}
	}
	return err
}

func notCached(e fs.DirEntry) bool {
	cache, err := path.Match(sharedCaches, e.Name())
	return err == nil && !(cache && e.Type().IsRegular())
}
