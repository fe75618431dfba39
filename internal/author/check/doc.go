// Package check finds faults of a project's content, without a cluster unless one is asked for: what would fail in a run,
// what the API server would refuse, and where a custom resource could do more than it should.
//
// Start with Run in check.go. It reads the project once (load.go) and then calls one function
// for each subject: expressions.go, injection.go, variables.go, undefined.go, plugins.go, options.go,
// commands.go, handlers.go, native.go, requirements.go, files.go, objects.go, kinds.go, specs.go and
// grants.go; samples.go and arguments.go have those of custom resources in files, charts.go those of
// charts, cluster.go what a cluster lacks, dropped.go what it would lose. Each adds findings by
// Project.add. docs/howto-check.md lists the IDs.
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
