// Package upstream sends requests to the API server with the manager's credentials. It forwards
// requests, including streams and upgraded connections. It looks up objects, and finds kinds by
// discovery.
//
// It does not know who sends a request, or whether the sender may do so.
//
// # Gotchas
//
//   - UpgradeAwareHandler responds to a GET with a redirect if its location has no path, so the
//     location ends in "/".
//   - HTTP/2 cannot be upgraded, so streams use HTTP/1.1.
package upstream
