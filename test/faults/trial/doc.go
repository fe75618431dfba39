// Package trial performs fault plans and collects the evidence of what came out.
//
// A Lab is what trials share: one control plane, the stub of a Python environment
// and the manager under test. Each trial has a namespace, an API proxy, a run
// directory and managers of its own, so that several go on at once. It brings the
// custom resource to where its operation begins, arms the fault, does what the
// user does, sees the fault strike and end, waits until nothing changes any more,
// and collects evidence while the manager lives and after it has stopped.
//
//	user.go      what the user does
//	points.go    how the points of a plan are recognized
//	strike.go    what each fault is
//	manager.go   the managers of a trial
//	evidence.go  what is collected
//
// The package does not judge: oracle does.
package trial
