// Package bounds keeps a server's clients within bounds: how many connections they
// have, and how long the body of a request may take to come.
//
// It does not know what the server serves.
package bounds
