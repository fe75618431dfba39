// Package fence answers "is the lease surely held now?".
//
// A leader holds its lease until another candidate may take it: one lease
// duration after the last renewal that the API server accepted. The fence counts
// from the moment before that renewal was sent, and closes a margin earlier, of
// the pause between renewals and one second more, in which runs are ended. It
// counts by a clock that goes on while the process is stopped and while the
// machine is suspended, so that whoever asks after waking up gets the right
// answer. A fence that has closed stays closed: what was behind it has been ended,
// so the process has to end too.
//
// Whoever wants to act asks Held first. That leaves the time between the
// question and the act, which can be long where a process is stopped just then
// or a connection takes its time. So the fence also gives out connections (Dial)
// that ask for every single write, and drops what the kernel has not delivered.
//
// The package renews nothing and knows no lease object: renewals are reported to
// it. The way between a connection and the API server is beyond it; what waits
// there is refused by its resourceVersion.
//
// # Gotchas
//
//   - CLOCK_MONOTONIC, and with it Go's time, stands still in suspend. The fence counts
//     CLOCK_BOOTTIME.
//   - A closed socket still delivers what the kernel holds for it, for minutes. Connections
//     behind the fence are reset, and have TCP_USER_TIMEOUT for the case that nobody is awake
//     to reset them.
package fence
