// Package agent executes a run in the pod of a Job: it claims the run from the manager that leads,
// executes it as a manager does, and sends the result.
package agent
