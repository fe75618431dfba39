// Package readcache answers what runs read, GET of an object and LIST by namespace
// and labels, in place of the API server.
//
// Objects are kept whole, as the bytes of their JSON, so that an answer is copied
// and not encoded. A kind is kept from its first read on, which goes to the API
// server itself, until nobody has read it for a while or the bytes of all kinds
// pass their limit. A request comes first to question, which lets through only
// what the cache can answer exactly as the API server would; then to the kind,
// which must be complete and live; then to package written.
//
// An answer never shows a state from before a write that a run of this manager was
// told of: what is read must have been followed past the resource version of the
// write. A run does not get an object that it deleted, and where the outcome of a
// write is not known, the kind is read live. (A run that starts must see what the
// run before it did: hence all runs, and not only the reader's.)
//
// What is not there is never answered: only the API server says 404. Secrets are
// never kept, and a kind that may not be listed or watched is read live.
//
// The package does not know the proxy, and does not decide who may read.
package readcache
