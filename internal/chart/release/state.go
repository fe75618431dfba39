// Package release reads the releases of CRs from where Helm keeps them, and decides what is to be
// done with one. Driver is Helm's storage for chart-exec.
//
// A release is kept in Secrets of the CR's namespace, which tenants may write. So a revision
// counts only with a seal: an HMAC over the CR, the digest of what the revision was made of, and
// all of its record but its state. Nothing of another revision is used. Driver seals what Helm
// writes and shows Helm sealed revisions alone.
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

// State is how the release of a CR stands.
type State string

// The states, and what the manager does in each:
//
//   - Absent: there is no release. Install it.
//   - Pending: an attempt was killed. Unlock the release, then do as for Failed.
//   - Failed: upgrade it, or install it if no revision was ever deployed. The objects of the attempt
//     stay.
//   - OutOfSync: upgrade it. The desired content differs, or a predecessor of the CR has made the
//     release, or somebody else has written a later revision, or Helm could not set an older
//     revision to superseded.
//   - Unsealed: take it over, then upgrade it.
//   - Drifted: repair its objects.
//   - InSync: nothing.
//   - Foreign: the release is somebody else's. Refuse the CR.
const (
	Absent    State = "Absent"
	Pending   State = "Pending"
	Failed    State = "Failed"
	OutOfSync State = "OutOfSync"
	Unsealed  State = "Unsealed"
	Drifted   State = "Drifted"
	InSync    State = "InSync"
	Foreign   State = "Foreign"
)

// deployed and Uninstalled are states in which Helm keeps a revision.
const (
	deployed    = "deployed"
	Uninstalled = "uninstalled"
)

// Revision is what is known of a revision without its content. Only for a sealed one it is
// certain, and then except for Status, which Helm's command changes too.
type Revision struct {
	// Version counts from 1.
	Version int
	// Status is Helm's, such as "deployed".
	Status string
	// Digest is that of what the revision was made of.
	Digest string
	// Sealed is true if the manager has made the revision for the CR, or for a predecessor of its
	// kind and name.
	Sealed bool
	// Mine is true if the CR itself has made it.
	Mine bool
	// Links are the owners that the Secret names. The others are the Secret's, too.
	Links           []Link
	Secret          string
	UID             types.UID
	ResourceVersion string

	// claimsSeal is true if the Secret has a seal, valid or not.
	claimsSeal bool
	// references are the Secret's owner references.
	references []metav1.OwnerReference
}

func (r Revision) wasDeployed() bool { return r.Status == deployed || r.Status == "superseded" }

// Links returns the owners that the release's newest revision names which names any: those that
// somebody makes of it by Helm's command name none.
func (h History) Links() []Link {
	for _, revision := range h.Revisions {
		if len(revision.Links) > 0 {
			return revision.Links
		}
	}
	return nil
}

// Owners says for people to whom the release belongs.
func (h History) Owners() string {
	if len(h.Revisions) == 0 {
		return "nobody"
	}
	return owners(h.Links())
}

// Claimed reports whether the release is the CR's although the manager has not sealed it: an
// earlier operator has made it for the CR, or for a predecessor of its kind and name.
func (h History) Claimed(owner order.Owner) bool {
	return slices.ContainsFunc(h.Links(), func(l Link) bool { return l.names(owner) })
}

// Decision is what a release needs.
type Decision struct {
	State State
	// Action is Helm's; "" if it needs none.
	Action order.Action
	// Unlock is true if the attempt at the last revision was killed.
	Unlock bool
	// TakeOver is true if revisions are to be replaced that are not sealed.
	TakeOver bool
}

// Decide returns the state of a release and what it needs. mayTake is true if a release that is
// not sealed may be taken over. Decide does not know of drift.
func Decide(h History, digest string, mayTake bool) Decision {
	if len(h.Revisions) == 0 {
		return Decision{State: Absent, Action: order.Install}
	}
	i := slices.IndexFunc(h.Revisions, func(r Revision) bool { return r.Sealed })
	switch {
	case i < 0 && !mayTake:
		return Decision{State: Foreign}
	case i < 0:
		return Decision{State: Unsealed, Action: order.Upgrade, TakeOver: true}
	}
	d := decide(h, h.Revisions[i], digest)
	if i > 0 { // Somebody else has written a later revision.
		d.TakeOver = true
		if d.State == InSync {
			d.State, d.Action = OutOfSync, order.Upgrade
		}
	}
	return d
}

// decide decides by the sealed revisions alone, of which last is the newest.
func decide(h History, last Revision, digest string) Decision {
	again := order.Install
	if h.Deployed != nil {
		again = order.Upgrade
	}
	switch {
	case last.Status == Uninstalled:
		return Decision{State: Absent, Action: order.Install}
	case last.Status == "uninstalling":
		return Decision{State: Failed, Action: order.Reinstall}
	case last.Status == "pending-install" || last.Status == "pending-upgrade" || last.Status == "pending-rollback":
		return Decision{State: Pending, Action: again, Unlock: true}
	case last.Status != deployed && last.Status != "failed" && h.Deployed == nil:
		return Decision{State: Failed, Action: order.Reinstall} // Helm installs over failed ones alone.
	case last.Status != deployed:
		return Decision{State: Failed, Action: again}
	case last.Digest != digest || !last.Mine || h.deployed() > 1:
		return Decision{State: OutOfSync, Action: order.Upgrade}
	default:
		return Decision{State: InSync}
	}
}

// deployed counts the sealed revisions with that status, of which Helm means to keep one.
func (h History) deployed() (count int) {
	for _, r := range h.Revisions {
		if r.Sealed && r.Status == deployed {
			count++
		}
	}
	return count
}
