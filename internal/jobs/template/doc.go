// Package template makes the Job of a run: from the manager's own pod, over which the podTemplate of
// the watch is merged, and over that what a run cannot do without. It is pure.
//
// It contacts nothing, and does not know what happens to a Job.
package template
