// Package strip strips an object down to the parts that an informer keeps: its identity, its owners
// and a digest of its content. The digest leaves out the status, the metadata that the API server
// maintains, and the fields that Kubernetes' own controllers write. Two states of an object have
// the same digest if only those writers made the difference.
//
// The digests are keyed with a random key: they reveal nothing of an object and cannot be
// compared with those of another process. Only those of status fields that watches.yaml names
// have no key. The package is pure and does not know clients or caches.
package strip
