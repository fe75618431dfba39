// Package thief is a server that speaks the protocol of MySQL, lets everybody log in,
// and answers statements by asking the client for a file of the client's machine. That is
// how the protocol does LOAD DATA LOCAL INFILE, and a client that allows it sends the
// file whatever it was asked to do:
//
//	server, err := thief.Start(thief.Options{Wants: "/etc/passwd"})
//	if err != nil { … }
//	defer server.Stop()
//	… // Let something log in to server.Port.
//	server.Asked()  // statements that it answered so
//	server.Stolen() // what it was sent
//
// Statements for which it has an honest answer it answers honestly, so that clients come
// as far as a test needs them to. It knows no TLS, and of the protocol no more than that.
package thief
