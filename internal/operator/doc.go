// Package operator puts a manager together: options become watches, a proved
// Python environment, an API proxy, observers and one supervised controller per
// watch, all of them Runnables of one controller-runtime manager. It also owns
// the manager's end, in two phases: first the runs and their statuses, then
// everything that they stood on.
//
// It is the only package that knows all others, and it holds no logic of theirs.
package operator
