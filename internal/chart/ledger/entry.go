// Package ledger keeps the operator's knowledge about the releases of its CRs, an entry for each
// CR, in the operator's namespace, where tenants may not write.
//
// A tenant can delete, restore and relabel the Secrets in which Helm keeps a release. So a record of
// Helm's counts only if the entry of its CR names its revision with its attempt, and its state is the
// entry's. An attempt has a random id, which the entry has before the attempt begins, and which the
// seal of a record covers. Numbers of revisions only order those of one entry: they begin at 1 again
// after a deletion.
//
// The rules (Entry) are pure; Store reads and writes entries. The package does not know Helm, and does
// not decide what a release needs.
package ledger

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Entry is the knowledge about the release of a CR. Release has the place of the release.
type Entry struct {
	Owner     order.Owner `json:"owner"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	// Attempt is the id of the attempt that has begun and may not have ended; "" if there is none. Action
	// is its action.
	Attempt string       `json:"attempt,omitempty"`
	Action  order.Action `json:"action,omitempty"`
	// Revisions are the kept ones, the newest last. Only the last one, and the one that is deployed, have
	// the names of their objects.
	Revisions []order.Revision `json:"revisions,omitempty"`

	// version is the resourceVersion of the entry's object; "" if there is none.
	version string
	exists  bool
}

// Begin notes the begin of an attempt. A pending revision has failed: no other attempt is running.
func (e *Entry) Begin(action order.Action) {
	e.Attempt, e.Action = rand.Text(), action
	for i := range e.Revisions {
		if order.IsPending(e.Revisions[i].Status) {
			e.Revisions[i].Status = order.StatusFailed
		}
	}
}

// Add notes a revision that the attempt is about to write. It drops revisions with its number and later
// ones: the attempt has deleted their records.
func (e *Entry) Add(r order.Revision) error {
	if e.Attempt == "" || r.Attempt != e.Attempt {
		return fmt.Errorf("attempt %q is not the one that has begun", r.Attempt)
	}
	r.Status = ""
	e.Revisions = append(slices.DeleteFunc(e.Revisions, func(old order.Revision) bool { return old.Version >= r.Version }), r)
	return nil
}

// Conclude notes the end of the attempt. sealed has the states of records whose state chart-exec has
// sealed, during the attempt or before, by their revision. there reports whether a revision has a record.
func (e *Entry) Conclude(sealed map[int]string, there func(version int) bool) {
	pending := order.StatusPendingInstall
	if e.Deployed() != nil {
		pending = order.StatusPendingUpgrade
	}
	for i := range e.Revisions {
		r := &e.Revisions[i]
		state := sealed[r.Version]
		removes := (e.Action == order.Uninstall || e.Action == order.Reinstall) && (state == order.StatusUninstalling || state == order.StatusUninstalled)
		switch {
		case r.Attempt == e.Attempt && state != "":
			r.Status = state
		case r.Attempt == e.Attempt:
			r.Status = pending
		case removes && i == len(e.Revisions)-1:
			r.Status = state
		}
	}
	e.Attempt, e.Action = "", ""
	e.prune(there)
}

// prune keeps one revision deployed, and forgets those without a record, and the names of objects of
// those that are neither the last nor deployed.
func (e *Entry) prune(there func(version int) bool) {
	newest := false
	for i := range slices.Backward(e.Revisions) {
		r := &e.Revisions[i]
		switch {
		case r.Status == order.StatusDeployed && newest:
			r.Status = order.StatusSuperseded
		case r.Status == order.StatusDeployed:
			newest = true
		}
	}
	last, deployed := e.Last(), e.Deployed()
	var kept []order.Revision
	for i := range e.Revisions {
		r := &e.Revisions[i]
		matters := r == last || r == deployed
		if !matters {
			r.Names = order.Names{}
		}
		if matters || there(r.Version) {
			kept = append(kept, *r)
		}
	}
	e.Revisions = kept
}

// Last returns the newest revision; nil if there is none.
func (e *Entry) Last() *order.Revision {
	if e == nil || len(e.Revisions) == 0 {
		return nil
	}
	return &e.Revisions[len(e.Revisions)-1]
}

// Deployed returns the revision that is deployed, or else the newest one that was; nil if none was.
func (e *Entry) Deployed() *order.Revision {
	if e == nil {
		return nil
	}
	return order.Deployed(e.Revisions)
}

// Release returns the release's namespace and name.
func (e *Entry) Release() string { return e.Namespace + "/" + e.Name }
