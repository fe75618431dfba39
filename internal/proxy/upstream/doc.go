// Package upstream is the way to the API server, with the manager's credentials: it
// forwards requests, streams and upgraded connections included, looks objects up, and
// knows by discovery what the API server serves.
//
// It does not know who asks, or whether they may.
package upstream
