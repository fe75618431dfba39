// Package operator builds a manager from config.Options and runs it.
//
// Start with Run in operator.go. prepareAnsible reads the watches and checks the Python
// environment (ansible.go). setUp makes the API proxy, the informers for children, leader
// election and the controller-runtime manager. components.addToManager adds to the manager
// everything that lives as long as it: the proxy, the sweeper, the observers and one
// Supervisor for each watch. stopper (stop.go) ends the manager in two phases: first the
// runs and their statuses, then everything that they need.
//
// It is the only package that imports all others, and it holds none of their logic.
//
// # Gotchas
//
//   - client-go releases a lease after a failed renewal, before it reports the loss: a successor
//     would start beside live runs. So LeaderElectionReleaseOnCancel is off, and lease.release
//     releases the lease at the end of an orderly stop.
//   - client-go goes on trying to renew when it reads another holder in the lease. The fence
//     closes at once.
//   - controller-runtime reports the end of each election as an error. libraryLog leaves it out
//     during an orderly stop.
//   - The lease object holds whole seconds: for a lease of 7.5 s, candidates read 7, and the
//     fence uses 7 too.
package operator
