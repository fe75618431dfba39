package config

import "cmp"

// LeaseName returns the name of the lease, "" if none is set. The objects in which the manager
// saves data have it too.
func (o Options) LeaseName() string { return cmp.Or(o.LeaderElectionID, o.Env["OPERATOR_NAME"]) }
