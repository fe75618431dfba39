// Package release reads the records of a CR's release, and decides the action for it. Driver is Helm's
// storage for chart-exec.
//
// Helm keeps a release in Secrets of the CR's namespace, which tenants may write. So a record counts
// only if the manager's ledger names its revision with its attempt, and if it has a seal. The seal is
// an HMAC over the CR, the attempt, the digest of the revision's inputs, and all of the record except
// its state. The state is the ledger's. Nothing of other records is used. Driver seals Helm's
// records, and shows Helm only sealed ones.
//
// Decide is a pure function of the release's history and a digest. It never compares manifests:
// a chart that draws random text or looks objects up renders another manifest each time.
//
// The package changes no objects of a release: Helm does, in chart-exec. Purge deletes a history.
package release

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// State is the state of the release of a CR.
type State string

// The states, and the manager's action in each:
//
//   - Absent: there is no release. Install it.
//   - Failed: upgrade it, or install it if no revision was ever deployed. The last attempt failed, or was
//     killed. Its objects stay.
//   - OutOfSync: upgrade it. The desired content differs, or another client has written a record.
//   - Lost: the record from which Helm would start was deleted. Make a base of the names in the ledger,
//     then do as for Failed.
//   - Unsealed: take it over, then upgrade it.
//   - Drifted: repair its objects.
//   - InSync: nothing.
//   - Foreign: the release belongs to another owner. Refuse the CR.
const (
	Absent    State = "Absent"
	Failed    State = "Failed"
	OutOfSync State = "OutOfSync"
	Lost      State = "Lost"
	Unsealed  State = "Unsealed"
	Drifted   State = "Drifted"
	InSync    State = "InSync"
	Foreign   State = "Foreign"
)

// Revision has the facts about a record from its Secret's metadata.
type Revision struct {
	// Version counts from 1.
	Version int
	// Status is the label of the Secret, such as "deployed".
	Status string
	// Counts is true if the ledger knows the revision, and its record is authentic, as far as it was opened.
	Counts bool
	// Links are the owners that the Secret names. The others are the Secret's, too.
	Links           []Link
	Secret          string
	UID             types.UID
	ResourceVersion string

	// attempt is the id in the Secret's label.
	attempt string
	// references are the Secret's owner references.
	references []metav1.OwnerReference
}

// wasDeployed reports whether a revision in this state is or was deployed.
func wasDeployed(status string) bool {
	return status == order.StatusDeployed || status == order.StatusSuperseded
}

// Links returns the owners of the newest revision that has any: revisions by Helm's command have none.
func (h History) Links() []Link {
	for _, revision := range h.Revisions {
		if len(revision.Links) > 0 {
			return revision.Links
		}
	}
	return nil
}

// Owners returns the owners of the release, for people.
func (h History) Owners() string {
	if len(h.Revisions) == 0 {
		return "nobody"
	}
	return owners(h.Links())
}

// Claimed reports whether an earlier operator has made the release for the CR, or for a predecessor of
// its kind and name.
func (h History) Claimed(owner order.Owner) bool {
	return slices.ContainsFunc(h.Links(), func(l Link) bool { return l.names(owner) })
}

// Decision is the action that a release needs.
type Decision struct {
	State State
	// Action is Helm's; "" if it needs none.
	Action order.Action
	// TakeOver is true if records that do not count must be replaced.
	TakeOver bool
}

// Decide returns the state of a release and the action that it needs. mayTake is true if the manager may
// take over a release that the ledger does not know. Decide does not consider drift.
func Decide(h History, digest string, mayTake bool) Decision {
	switch {
	case len(h.Known) > 0:
	case len(h.Revisions) == 0:
		return Decision{State: Absent, Action: order.Install}
	case !mayTake:
		return Decision{State: Foreign}
	default:
		return Decision{State: Unsealed, Action: order.Upgrade, TakeOver: true}
	}
	last := h.Known[len(h.Known)-1]
	d := decide(h, last, digest)
	if h.others(last.Version) {
		d.TakeOver = true
		if d.State == InSync {
			d.State, d.Action = OutOfSync, order.Upgrade
		}
	}
	return d
}

// others reports whether another client has written the last record or a later one.
func (h History) others(last int) bool {
	return slices.ContainsFunc(h.Revisions, func(r Revision) bool { return !r.Counts && r.Version >= last })
}

// decide decides by the ledger's revisions alone, of which last is the newest.
func decide(h History, last order.Revision, digest string) Decision {
	ever := order.Deployed(h.Known) != nil
	again, base := order.Install, h.Last
	if ever {
		again, base = order.Upgrade, h.Deployed
	}
	switch {
	case last.Status == order.StatusUninstalled:
		return Decision{State: Absent, Action: order.Install}
	case base == nil:
		return Decision{State: Lost, Action: again, TakeOver: true}
	case last.Status == order.StatusUninstalling:
		return Decision{State: Failed, Action: order.Reinstall}
	case last.Status != order.StatusDeployed:
		return Decision{State: Failed, Action: again}
	case h.Last.Labels[order.DigestLabel] != digest:
		return Decision{State: OutOfSync, Action: order.Upgrade}
	default:
		return Decision{State: InSync}
	}
}
