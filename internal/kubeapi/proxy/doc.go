// Package proxy is the way of a run to the Kubernetes API.
//
// It listens on the loopback interface with TLS only, under a certificate that
// is made in memory at start. Each run has a grant: a token and a kubeconfig
// that carries it. A request without the token of a live run gets 401 and is
// not forwarded. Whose run it is follows from the token alone, never from
// anything a client says. What a token has begun ends with it.
//
// ServeHTTP is the way of a request. What a run writes carries its owner, so that
// roles can use plain modules and their children still go with their CR: package
// ownership says how. A run that is confined writes in its CR's namespace only. Followers
// are told of each write and of what the API server said to it. Everything else passes
// through as it is, with the manager's credentials, and streams are not held up.
//
// With leader election, a request is forwarded only while the manager's lease is
// surely held. Streams that are open when it is lost end with the connection that
// they use: the configuration that the proxy gets dials behind the fence.
//
// The package knows owners and tokens. It does not know runs, and it guards
// against mistakes: code in a role has the pod's rights anyway.
//
// # Gotchas
//
//   - client-go sends no credentials over plain HTTP, so the proxy speaks TLS.
//   - The API server ignores the query options of a DELETE that has a body. The proxy looks
//     for dryRun where the API server does.
//   - net/http reads on in an unread body (256 KiB) before it answers. Behind a slow client an
//     answer would wait, so readBody lets the deadline stand.
package proxy
