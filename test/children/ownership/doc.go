// Package ownership shows on a real control plane, with its garbage collector, that what
// runs write belongs to their CR, in every way of writing and each time, and that nothing
// else goes with the CR. Most rows write through a proxy in the test's own process; a
// sample, of those that take long, goes through a real manager with kubernetes.core.
package ownership
