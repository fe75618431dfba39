// Package reduce makes of an object what following it takes: its identity, whom it
// belongs to, and a digest of what it says, without its status, what the API
// server notes for itself, and what Kubernetes' own controllers write. Two states
// of an object have the same digest where nobody but those has changed it.
//
// The digests are keyed, so that they give nothing of an object away, and mean
// nothing in another process. The package is pure: it reads objects, and knows
// nothing of clients or caches.
package reduce
