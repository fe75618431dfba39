// Package drift shows on a real control plane, with its garbage collector and
// controllers, a real manager and real roles, what brings a CR back: the drift of
// children, changes of what a CR refers to, and nothing else.
package drift
