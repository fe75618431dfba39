// Package fence answers the question "does this manager surely hold the lease now?".
//
// Another candidate may take a lease one lease duration after the last renewal that the
// API server accepted. The fence is open from a renewal until a margin before that
// moment; the duration counts from the time at which the renewal was sent. The margin is
// the pause between two renewals and one second more: in it the manager ends its runs.
// A closed fence never opens again, because the runs have been ended: the process has to
// end too.
//
// A caller asks Held before it acts. But the lease can be lost between the question and
// the act, for example while the process is stopped. So Dial returns connections that
// check the fence at every write. When the fence closes, they are reset, which also
// discards data that the kernel has not delivered.
//
// The package does not renew the lease and does not know its object: the lock of leader election
// reports renewals to it. It cannot stop requests that have left this machine; the resourceVersion
// in a late write makes the API server refuse it.
//
// # Gotchas
//
//   - CLOCK_MONOTONIC, and with it Go's time, does not advance while the machine is suspended.
//     The fence uses CLOCK_BOOTTIME, so that its answer is right after a suspend too.
//   - The kernel goes on to deliver the data of a closed socket for minutes. So connections are
//     reset instead, and have TCP_USER_TIMEOUT for the case that the process is stopped and
//     cannot reset them.
package fence
