// Package objects applies the objects of a release, and compares them.
//
// Applier.Apply is the one way: chart-exec applies by it, and the manager compares by its dry run
// and repairs by it, so that the differences of a comparison are exactly the changes of an upgrade.
// An object is applied by a server-side apply under Helm's name, which takes the chart's fields
// from other managers. Fields that exclude the chart's go with it (union.go, conflict.go). An
// object that server-side apply refuses for formal reasons, such as a null in a custom resource or
// a field that the kind does not have, is patched as Helm 3 did. It is applied again as soon as
// that is possible. Fields that other managers added stay, and so do those that the cluster fills
// and that the watch ignores (leave.go). The objects of hooks are not part of a release's manifest,
// and are not compared.
//
// A field is named by a JSON pointer (RFC 6901). In a list, a reference token is the index of an
// entry, as the chart's text has it; or key=value, such as name=app, for the entry with that key;
// or *, for all entries. No other token is an element of a list, as RFC 6901 has it for "-".
//
// The package knows no CRs, does not decide when objects are applied, and deletes nothing.
package objects
