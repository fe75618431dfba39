// Package informers watches kinds that become known only while the manager runs: the kind of a
// child once a role has created the first one, or the kind of a reference.
//
// A Set has one informer for each resource and namespace in use. The informer starts with its
// first user and stops with its last one. Options.Transform decides what an informer keeps of an
// object.
//
// An informer that cannot list or watch retries until it is released. It does not affect other
// informers. It reports the failure by Err, by Options.OnStateChange, and in the log at most once
// a minute. client-go sets the pauses between the attempts: they grow from one second to between
// 30 and 60 seconds.
//
// The package does not know why objects are watched. It does not use discovery: an informer
// finds out whether its kind can be watched when it tries.
package informers
