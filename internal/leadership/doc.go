// Package leadership knows which CRs belong to this manager, and when it may run their content. It
// may while it holds its lease (lease.go, election.go), and for the CRs of its shard (shard.go). It
// waits while another manager of the operator runs content for the same CR (runlock.go). One shard
// counts the CRs that none selects (unmatched.go). Package fence says whether the lease is held.
//
// It does not run or end anything: the loss of the lease calls the functions of LossHandlers.
//
// # Gotchas
//
//   - client-go releases a lease after a failed renewal, before it reports the loss: a successor
//     would start beside runs that have not ended. So LeaderElectionReleaseOnCancel is off, and Lease.Release
//     releases the lease at the end of an orderly stop.
//   - client-go goes on trying to renew when it reads another holder in the lease. The fence
//     closes at once.
//   - The lease object holds whole seconds: for a lease of 7.5 s, candidates read 7, and the
//     fence uses 7 too.
package leadership
