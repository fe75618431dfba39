// Package scaffold writes the project of an operator, and kinds into it.
//
// Init (project.go) writes a project, on request as a Go module in kubebuilder's layout; CreateAPI
// (kind.go) adds a kind: its CRD, rights, a sample, and entries in the files that list kinds. The
// schema in the CRD comes from the argument specs of the role (specs.go, schema.go). A CRD is
// written again in its place (refresh.go), and the files that depend on it are changed too
// (follow.go). All make a Plan (plan.go), which is shown, or carried out if it overwrites nothing.
// Every file is a template below templates/ (templates.go); lists are edited as text (insert.go),
// so that comments stay.
//
// The package contacts nothing and runs no content.
//
// # Gotchas
//
//   - Templates are delimited by <% and %>: {{ and }} are Jinja's.
//   - A file of templates/go takes the place of one of templates/project. Kubebuilder edits some of
//     them later by its own markers, and by the words and columns of lines that it takes out of
//     comments: test/author runs it.
//   - Many templates say the same as this repository's own config/. A test compares them.
package scaffold
