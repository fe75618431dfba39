// Package operator puts a manager together: options become watches, a proved
// Python environment, an API proxy, observers and one supervised controller per
// watch, all of them Runnables of one controller-runtime manager. It also owns
// the manager's end, in two phases: first the runs and their statuses, then
// everything that they stood on.
//
// It is the only package that knows all others, and it holds no logic of theirs.
//
// # Gotchas
//
//   - client-go gives a lease back after a failed renewal, before it reports the loss: a
//     successor would start beside live runs. So LeaderElectionReleaseOnCancel is off, and
//     lease.release gives the lease back as the last act of an orderly stop.
//   - controller-runtime reports the end of each election as an error; libraryLog leaves that
//     out during a stop.
//   - The lease object counts in whole seconds: candidates read 7 where the flag says 7.5 s,
//     and so does the fence.
//   - client-go goes on trying to renew when it sees another holder in the lease. The fence
//     closes at once.
package operator
