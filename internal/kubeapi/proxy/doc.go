// Package proxy forwards the requests of runs to the API server.
//
// The proxy listens on the loopback interface, with TLS and a certificate that it makes in
// memory at start. Grant returns a kubeconfig with a token for one run. The token alone tells
// for which CR a request is; nothing that a client sends can change that. A request without the
// token of a running run gets status 401 and is not forwarded. When a token ends, its requests and
// streams end too.
//
// ServeHTTP is the path of a request:
//
//   - Where runs of the CR are confined, it refuses writes outside of the CR's namespace.
//   - It adds the CR as the owner of the objects that the run creates. So roles can use plain
//     modules, and Kubernetes deletes the children with their CR. Package ownership has the rules.
//   - It reports each write and the API server's response to the write observers.
//   - It forwards everything else as it is, with the manager's credentials, streams included.
//
// With leader election, the proxy forwards a request only while the manager surely holds the
// lease. Streams that are open when the lease is lost end with their connection to the API
// server: the rest.Config for the proxy has a dialer that closes its connections then.
//
// The package does not know runs, only owners and tokens. It guards against mistakes and not
// against attacks: a role's code has the rights of the manager's pod anyway.
//
// # Gotchas
//
//   - client-go sends no credentials over plain HTTP, so the proxy speaks TLS.
//   - The API server ignores the query options of a DELETE that has a body. The proxy looks
//     for dryRun where the API server does.
//   - net/http reads up to 256 KiB of an unread body before it sends a response. A slow client
//     would delay the response, so readBody leaves its read deadline set after an error.
package proxy
