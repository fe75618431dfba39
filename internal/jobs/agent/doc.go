// Package agent is what executes a run in the pod of a Job: it claims the run at the manager that
// leads, runs it as a manager does, and sends what came of it.
package agent
