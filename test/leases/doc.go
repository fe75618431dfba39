// Package leases takes the lease from leaders, again and again, in every way that
// there is: the API server out of reach, another holder in the lease, the manager
// stopped with all of its processes. Two real managers at a time, an API
// server that writes an audit log, and a stub in place of ansible-runner, whose
// runs journal that they live and write to the API as fast as roles do.
//
// What must hold: no two runs of one custom resource live at once, whoever started
// them, and no request of a former leader that would write reaches the API server
// once its successor has acquired the lease. So it is too where a leader releases
// its lease at the end of an orderly stop.
//
// `make test` loses the lease in each way once. The build tag long makes it 102 losses
// and 20 freezes.
package leases
