// Package check finds faults of a project's content, without a cluster unless one is asked for:
// tasks that would fail in a run, and objects that the API server would refuse. It also finds
// places where a custom resource could do more than it should.
//
// Start with Run in check.go. It reads the project once (load.go) and then calls one function for
// each subject. The file has the subject's name: expressions.go, variables.go, plugins.go and so
// on. Custom resources in files are checked by samples.go and arguments.go, and charts by
// charts.go. cluster.go asks a cluster for its lacks, and dropped.go for the fields that it would
// drop. Each adds findings by Project.add. docs/howto-check.md lists the IDs.
//
// # Gotchas
//
//   - A finding is an error only where it is certain. It is a warning at most if it depends on
//     values of custom resources that no schema describes.
//   - One cause is one finding, at the cause: an open schema, not each name that it lets through.
//     links.go gives each file one name.
//   - The type of a variable is known from the schema of its kind, or from the one literal that
//     defines it. All others are unknown, and give no finding.
package check
