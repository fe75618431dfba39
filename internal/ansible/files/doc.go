// Package files reads playbooks, roles and collections as files.
//
// It computes digests, which change if the content changes, and finds templates and installed
// collections. It does not execute anything, and it does not know where content is: callers
// pass the paths.
package files
