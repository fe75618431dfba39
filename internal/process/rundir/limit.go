package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
)

const (
	// crShare is the divisor of the limit that gives the limit of one CR's artifacts. A CR
	// that runs often or has long output must not displace the artifacts of all others.
	crShare = 16
	// blockSize is the unit in which file systems allocate space. A file counts as at least
	// one block, its name included.
	blockSize = 4 << 10
)

// ErrArtifactLimit is returned if an artifact would be larger than the artifacts of a CR may
// be.
var ErrArtifactLimit = errors.New("the artifacts of the resource have reached their size limit")

// usage knows the artifacts of ended runs and their sizes.
type usage struct {
	mu    sync.Mutex
	limit int64 // 0: none
	total int64
	byUID map[string][]artifact // oldest first
}

// artifact is one artifact of a CR.
type artifact struct {
	name string
	size int64
}

// sizeOnDisk returns how much of the limit a file of this size takes.
func sizeOnDisk(size int64) int64 {
	return max(1, (size+blockSize-1)/blockSize) * blockSize
}

// Limit sets the limit of the artifacts of ended runs in bytes; those of one CR may take a
// sixteenth of it. 0 means no limit. In addition, the artifact of a running run may take a
// sixteenth until the run ends. Limit and the end of each run remove the oldest artifacts first.
// The newest artifact of a CR is removed only if it alone exceeds the sixteenth, or if every CR has
// only its newest left. A limit under 1 MiB is of little use. Limit must be called before the first
// Prepare.
func (r *Root) Limit(bytes int64) error {
	r.usage.mu.Lock()
	r.usage.limit = bytes
	r.usage.mu.Unlock()
	uids, err := r.UIDs()
	if err != nil {
		return err
	}
	for _, uid := range uids {
		if err := r.countArtifacts(uid); err != nil {
			return fmt.Errorf("count the artifacts of %q: %w", uid, err)
		}
	}
	return nil
}

// countArtifacts adds the artifacts of a CR to the usage.
func (r *Root) countArtifacts(uid string) error {
	artifacts, err := openPath(r.root, uid, artifactsName)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDirectory) {
		return nil // The next run makes the directory.
	}
	if err != nil {
		return err
	}
	defer artifacts.Close()
	return r.updateArtifacts(uid, artifacts, 0)
}

// Bytes returns the size of the artifacts of ended runs, each file rounded up to 4 KiB.
func (r *Root) Bytes() int64 {
	r.usage.mu.Lock()
	defer r.usage.mu.Unlock()
	return r.usage.total
}

// limitPerCR returns the limit of the artifacts of one CR, and so of a single artifact.
func (s *usage) limitPerCR() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 {
		return math.MaxInt64
	}
	return s.limit / crShare
}

// updateArtifacts keeps the newest artifacts, as many as keep says, of a CR that is not running,
// updates the usage and enforces the limit.
func (r *Root) updateArtifacts(uid string, artifacts *os.Root, keep int) error {
	s := &r.usage
	s.mu.Lock()
	defer s.mu.Unlock()
	err := rotate(artifacts, keep)
	found, measureErr := listArtifacts(artifacts)
	if measureErr != nil {
		found = s.byUID[uid] // The last known sizes.
	}
	s.set(uid, found)
	return errors.Join(err, measureErr, r.enforceLimit(uid))
}

// set replaces the artifacts of a CR. It must be called with mu locked.
func (s *usage) set(uid string, artifacts []artifact) {
	if s.byUID == nil {
		s.byUID = map[string][]artifact{}
	}
	s.total += totalSize(artifacts) - totalSize(s.byUID[uid])
	s.byUID[uid] = artifacts
	if len(artifacts) == 0 {
		delete(s.byUID, uid)
	}
}

// enforceLimit removes artifacts until those of the CR and all together are within their
// limits. It must be called with usage.mu locked.
func (r *Root) enforceLimit(uid string) error {
	s := &r.usage
	if s.limit == 0 {
		return nil
	}
	for totalSize(s.byUID[uid]) > s.limit/crShare {
		if err := r.evict(uid); err != nil {
			return err
		}
	}
	for s.total > s.limit {
		if err := r.evict(s.nextToEvict()); err != nil {
			return err
		}
	}
	return nil
}

// nextToEvict returns the CR with the oldest artifact that is not the newest of its CR. If
// there is none, it returns the CR with the oldest artifact.
func (s *usage) nextToEvict() (uid string) {
	uidHasOthers := false
	for candidate, artifacts := range s.byUID {
		hasOthers := len(artifacts) > 1
		if uidHasOthers && !hasOthers {
			continue
		}
		if uid == "" || hasOthers && !uidHasOthers || artifacts[0].name < s.byUID[uid][0].name {
			uid, uidHasOthers = candidate, hasOthers
		}
	}
	return uid
}

// evict removes the CR's oldest artifact. It must be called with usage.mu locked.
func (r *Root) evict(uid string) error {
	s := &r.usage
	first := s.byUID[uid][0]
	if err := r.removeArtifact(uid, first.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old artifact of %q: %w", uid, err)
	}
	s.set(uid, s.byUID[uid][1:])
	return nil
}

func (r *Root) removeArtifact(uid, name string) error {
	artifacts, err := openPath(r.root, uid, artifactsName)
	if err != nil {
		return err
	}
	defer artifacts.Close()
	return artifacts.RemoveAll(name)
}

// forget removes a CR from the usage.
func (s *usage) forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(uid, nil)
}

func totalSize(artifacts []artifact) int64 {
	var total int64
	for _, a := range artifacts {
		total += a.size
	}
	return total
}
