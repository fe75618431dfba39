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
	// share is the part of the limit that the artifacts of one CR may take, so that
	// one that runs often or says much does not displace those of all others.
	share = 16
	// block is what file systems give out: a file takes whole blocks, and at least
	// one together with its name.
	block = 4 << 10
)

// ErrNoRoom says that an artifact would exceed what a CR's may take.
var ErrNoRoom = errors.New("no room is left within the limit of artifacts; a higher --artifacts-max-bytes gives more")

// usage knows what artifacts of ended runs there are and what they take.
type usage struct {
	mu    sync.Mutex
	limit int64 // 0: none
	total int64
	byUID map[string][]artifact // oldest first
}

// artifact is one of a CR.
type artifact struct {
	name string
	size int64
}

// charge is what a file of so many bytes counts.
func charge(size int64) int64 {
	return max(1, (size+block-1)/block) * block
}

// Limit counts the artifacts that are there, and keeps those of ended runs within so
// many bytes from now on, those of one CR within a sixteenth of it; 0 is no limit.
// That of a live run may take a sixteenth beside them until it ends.
// The oldest go first. The newest of a CR goes when it alone exceeds the
// sixteenth, or when only the newest are left of all. Under 1 MiB little of use
// fits in. It is to be called before the first Prepare.
func (r *Root) Limit(bytes int64) error {
	r.usage.mu.Lock()
	r.usage.limit = bytes
	r.usage.mu.Unlock()
	uids, err := r.UIDs()
	if err != nil {
		return err
	}
	for _, uid := range uids {
		if err := r.count(uid); err != nil {
			return fmt.Errorf("count the artifacts of %q: %w", uid, err)
		}
	}
	return nil
}

// count takes up what there is of a CR.
func (r *Root) count(uid string) error {
	artifacts, err := openPath(r.root, uid, artifactsName)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDirectory) {
		return nil // The next run makes the directory, whatever is in its place.
	}
	if err != nil {
		return err
	}
	defer artifacts.Close()
	return r.settle(uid, artifacts, 0)
}

// Bytes is what the artifacts of ended runs take, in whole blocks of 4 KiB.
func (r *Root) Bytes() int64 {
	r.usage.mu.Lock()
	defer r.usage.mu.Unlock()
	return r.usage.total
}

// perCR is what the artifacts of a CR may take, and so each single one.
func (s *usage) perCR() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 {
		return math.MaxInt64
	}
	return s.limit / share
}

// settle removes the oldest artifacts of a CR without a live run until keep are
// left, or none when keep is 0, and takes up what there is then.
func (r *Root) settle(uid string, artifacts *os.Root, keep int) error {
	s := &r.usage
	s.mu.Lock()
	defer s.mu.Unlock()
	err := rotate(artifacts, keep)
	found, measureErr := measure(artifacts)
	if measureErr != nil {
		found = s.byUID[uid] // What was known is nearest to the truth.
	}
	s.set(uid, found)
	return errors.Join(err, measureErr, r.makeRoom(uid))
}

// set replaces what is known of a CR. It is called with the lock held.
func (s *usage) set(uid string, kept []artifact) {
	if s.byUID == nil {
		s.byUID = map[string][]artifact{}
	}
	s.total += sum(kept) - sum(s.byUID[uid])
	s.byUID[uid] = kept
	if len(kept) == 0 {
		delete(s.byUID, uid)
	}
}

// makeRoom removes artifacts until the limit holds for the CR and for all. It is
// called with the lock held.
func (r *Root) makeRoom(uid string) error {
	s := &r.usage
	if s.limit == 0 {
		return nil
	}
	for sum(s.byUID[uid]) > s.limit/share {
		if err := r.evict(uid); err != nil {
			return err
		}
	}
	for s.total > s.limit {
		if err := r.evict(s.oldest()); err != nil {
			return err
		}
	}
	return nil
}

// oldest is the CR with the oldest artifact that is not its newest, or else with
// the oldest of all.
func (s *usage) oldest() (uid string) {
	spare := false
	for candidate, kept := range s.byUID {
		more := len(kept) > 1
		if spare && !more {
			continue
		}
		if uid == "" || more && !spare || kept[0].name < s.byUID[uid][0].name {
			uid, spare = candidate, more
		}
	}
	return uid
}

// evict removes the CR's oldest artifact. It is called with the lock held.
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

// drop forgets a CR whose directory is gone.
func (s *usage) drop(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(uid, nil)
}

func sum(kept []artifact) int64 {
	var total int64
	for _, a := range kept {
		total += a.size
	}
	return total
}
