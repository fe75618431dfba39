// Package mariadb starts a private MariaDB server for tests, from the programs that
// `make mariadb` puts into .dev/mariadb:
//
//	server, err := mariadb.Start(ctx, mariadb.Options{})
//	if err != nil { … }
//	defer server.Stop()
//	version, err := server.Query(ctx, "SELECT version()")
//
// A server listens on a free port of the loopback interface, has one account (root,
// with a password that nobody else knows), and keeps its data in a directory that only
// its user can read. It starts in a second. Any number of them live side by side. It
// ends with Stop, with a Start that fails, and with the death of the process that
// called Start.
//
// The package does not install the programs, and does not know what the server is for.
//
// # Gotchas
//
//   - MariaDB refuses to run as root. Where a test does, the server runs as nobody, and
//     Options.Dir has to be where nobody may go.
package mariadb
