// Package informers follows kinds that are known only while the manager runs: a
// child's kind when a role has made the first one, a reference's kind.
//
// A Set has one informer for each resource and namespace that somebody uses. It
// begins with the first user and ends with the last one. What an informer keeps of
// an object is decided by the Set's transform.
//
// An informer that can't list or watch is tried again until it is released, says
// why by Err, in one log line a minute and to Options.Observe, and keeps no other
// from its work. client-go makes the pauses: from a second up to 30 to 60.
//
// The package does not know what objects are followed for, and does not ask
// discovery: that a kind can be followed shows when it is tried.
package informers
