// Package upstream is the way to the API server, with the manager's credentials: it
// forwards requests, streams and upgraded connections included, looks objects up, and
// knows by discovery what the API server serves.
//
// It does not know who asks, or whether they may.
//
// # Gotchas
//
//   - UpgradeAwareHandler answers a GET with a redirect where its location has no path, so the
//     location ends in "/".
//   - HTTP/2 cannot be upgraded, so streams use HTTP/1.1.
package upstream
