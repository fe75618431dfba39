// Package content reads playbooks and roles as files.
//
// It reports whether content is the same as before, and which collections of a name
// are installed. It does not run anything, and it does not look for content:
// whoever calls it knows the places.
package content
