// Package controller reconciles the CRs of one watch by running Ansible content.
//
// Read reconcile.go downwards for the path of one CR: a live read, decide (a
// pure function), one of a few small steps, and finish, the one place that
// writes the CR's status at the end. A Supervisor starts the controller of a
// watch when its kind is served and stops it when the kind goes away. A RunGroup
// knows the attempts at work in the whole manager and ends them when it stops.
//
// The package owns the interfaces of what it needs (Runner, Access, Observer). It
// does not know where runs get their API access from, what observers do with job
// events, or which flags exist.
package controller
