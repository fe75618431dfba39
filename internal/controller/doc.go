// Package controller reconciles the CRs of one watch by running their content.
//
// Read reconcile.go downwards for the path of one CR: a live read, which becomes an observation,
// decide (a pure function, which alone chooses the step), one of a few small steps, and finish. Only
// finish writes the CR's status at the end. Each write begins with the CR as the API server answered
// last, and reads it only if that is not the latest version. An interruption ends an attempt early.
// Only the attempt uses the CR's state. Events leave their signals in the CR's mailbox.
// A Supervisor starts the controller of a watch when its kind is served, and stops it when the kind
// goes away. Attempts knows the attempts of the whole manager, and ends them when it stops.
//
// The package defines the interfaces that it needs of the API (Access, Related, Slots). It knows a
// kind of content by the interfaces of package content alone. It does not know Ansible, Helm, the
// API access of runs, or flags.
//
// # Gotchas
//
//   - A JSON Patch whose test fails answers Invalid, as a schema and an admission policy do.
//     patch tells them apart by reading again. A schema names fields as causes, a policy does
//     not.
//   - The queue drops a pause of zero.
//   - A finalizer is removed by its index, which is right only together with the patch's test
//     of the resourceVersion.
//   - A source waits for all kinds of its cache; singleKindCache gives it a cache of one kind.
//   - StripTransform must keep all fields that the triggers compare. It is the cache's default
//     transform: a transform named by kind would need each CRD at the start.
//   - A worker that waits for a slot holds a place in the queue. So the queue has the same
//     priorities as the slots, and a result is written before either is waited for, unless the
//     API server refuses it.
package controller
