// Package check finds faults of a project's content, without a cluster unless one is asked for: what would fail in a run,
// what the API server would refuse, and where a custom resource could do more than it should.
//
// Start with Run in check.go. It reads the project once (load.go) and then calls one function
// for each subject. The file has the subject's name: expressions.go, variables.go, plugins.go and so
// on. Custom resources in files are checked by samples.go and arguments.go, and charts by charts.go.
// A cluster is asked by cluster.go (what it lacks) and dropped.go (which fields it would drop). Each
// adds findings by Project.add. docs/howto-check.md lists the IDs.
//
// # Gotchas
//
//   - A finding is an error only where it is certain. What depends on values of custom resources
//     that no schema describes is a warning at most.
//   - One cause is one finding, at the cause: an open schema, not each name that it lets through.
//     links.go gives each file one name.
//   - The type of a variable is known from the schema of its kind, or from the one literal that
//     defines it. All others are unknown, and give no finding.
package check
