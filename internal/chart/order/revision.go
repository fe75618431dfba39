package order

import "slices"

// The states in which Helm keeps a revision.
const (
	StatusDeployed        = "deployed"
	StatusSuperseded      = "superseded"
	StatusFailed          = "failed"
	StatusUninstalling    = "uninstalling"
	StatusUninstalled     = "uninstalled"
	StatusPendingInstall  = "pending-install"
	StatusPendingUpgrade  = "pending-upgrade"
	StatusPendingRollback = "pending-rollback"
)

// ReportPath is the path at which the API proxy takes a Revision from chart-exec before its record is
// written. It answers when the ledger has it.
const ReportPath = "/ensign/revision"

// Revision is the manager's ledger entry for a revision.
type Revision struct {
	Version int `json:"version"`
	// Attempt is the id of the attempt that has made it. The seal of its record covers the id.
	Attempt string `json:"attempt"`
	// Status is Helm's; "" while no end of the attempt is known.
	Status string `json:"status,omitempty"`
	Names  `json:"names,omitzero"`
}

// Names are those of the objects of a revision.
type Names struct {
	Objects []Object `json:"objects,omitempty"`
	Hooks   []Object `json:"hooks,omitempty"`
	// DeletionHooks is true if a hook runs at a deletion.
	DeletionHooks bool `json:"deletionHooks,omitempty"`
}

// Object names an object. Namespace is "" for a cluster-scoped object, and for one in the namespace of
// the release whose manifest does not set it.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// IsPending reports whether the attempt of a revision in this state is running, or was killed.
func IsPending(status string) bool {
	return status == "" || status == StatusPendingInstall || status == StatusPendingUpgrade || status == StatusPendingRollback
}

// Deployed returns the deployed revision, or else the newest one that was deployed; nil if none was. The
// newest revision is the last.
func Deployed(revisions []Revision) *Revision {
	for _, status := range []string{StatusDeployed, StatusSuperseded} {
		for i := range slices.Backward(revisions) {
			if revisions[i].Status == status {
				return &revisions[i]
			}
		}
	}
	return nil
}
