// Package hooks has the specs of what a Go program adds to a watch: functions around its runs,
// values, annotations, a pause, sources of events, and a kind of content of its own. Each manager
// runs in the process of the test, made by package ensign, on a real control plane.
package hooks
