// Package fire holds the writing of results against an API server under fire: the
// real manager reaches the real API server through a proxy that makes faults.
// Whatever happens to a write, the result of a run arrives, what others have
// written stays, the content does not run again for it, and no object gets what
// came of another one of its name.
//
// ansible-runner is scripted: it is this test's binary under another name
// (stub_test.go). How often content ran is counted by a journal that it writes,
// what was written by the journal of the proxy.
//
// In `make test`: every class of fault on every write of the manager, a rival that
// writes 50 times a second, an API server that is away or unable for seconds, and
// objects that are made anew while a write hangs. With the build tag "long",
// `make test-all`: an API server that is away for a minute, or frozen.
package fire
