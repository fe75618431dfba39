// Package template makes the Job of a run from three parts: the manager's own pod, the podTemplate
// of the watch, which is merged over it, and the fields that a run needs, which are set last. It is
// pure.
//
// It contacts nothing, and does not know what happens to a Job.
package template
