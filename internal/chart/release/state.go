// Package release reads the releases of CRs from where Helm keeps them, and decides what is
// to be done with one.
//
// Decide is a pure function of the release's history, the chart and a digest. It never
// compares manifests: a chart that draws random text or looks objects up renders another
// manifest each time.
//
// The package does not change releases: chart-exec does.
package release

import (
	"slices"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// State is how the release of a CR stands.
type State string

// The states, and what is done: nothing stands for Absent (install), Pending for an attempt
// that was killed (unlock, then as Failed), Failed (upgrade, or reinstall where nothing was
// ever deployed), OutOfSync (upgrade: what is
// to be differs, or Helm could not mark an older revision as superseded), Drifted (repair the objects), InSync (nothing), and
// Foreign for a release of another chart (refuse).
const (
	Absent    State = "Absent"
	Pending   State = "Pending"
	Failed    State = "Failed"
	OutOfSync State = "OutOfSync"
	Drifted   State = "Drifted"
	InSync    State = "InSync"
	Foreign   State = "Foreign"
)

// Revision is what Decide needs to know of a revision.
type Revision struct {
	// Version counts from 1.
	Version int
	// Status is Helm's, such as "deployed".
	Status string
	// Chart is the name of the chart.
	Chart string
	// Digest is that of what the revision was made of; "" if another program made it.
	Digest string
}

// Decide returns the state of a release, from its revisions in any order, and the action that
// it needs; "" if it needs none of Helm's. unlock is true if the attempt at the last revision
// was killed. It does not know of drift.
func Decide(history []Revision, chart, digest string) (state State, action order.Action, unlock bool) {
	if len(history) == 0 {
		return Absent, order.Install, false
	}
	last := slices.MaxFunc(history, func(a, b Revision) int { return a.Version - b.Version })
	again := order.Reinstall
	if slices.ContainsFunc(history, func(r Revision) bool { return r.Status == "deployed" || r.Status == "superseded" }) {
		again = order.Upgrade
	}
	switch {
	case last.Status == "uninstalled":
		return Absent, order.Install, false
	case last.Chart != chart:
		return Foreign, "", false
	case last.Status == "uninstalling":
		return Failed, order.Reinstall, false
	case last.Status == "pending-install" || last.Status == "pending-upgrade" || last.Status == "pending-rollback":
		return Pending, again, true
	case last.Status != "deployed":
		return Failed, again, false
	case last.Digest != digest || deployed(history) > 1:
		return OutOfSync, order.Upgrade, false
	default:
		return InSync, "", false
	}
}

// deployed counts the revisions with that status, of which Helm means to keep one.
func deployed(history []Revision) (count int) {
	for _, r := range history {
		if r.Status == "deployed" {
			count++
		}
	}
	return count
}
