package config

import "cmp"

// LeaseName returns the name of the lease, "" if nobody gives one. Objects in which the manager
// keeps something have it too.
func (o Options) LeaseName() string { return cmp.Or(o.LeaderElectionID, o.Env["OPERATOR_NAME"]) }
