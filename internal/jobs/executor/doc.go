// Package executor runs content in Jobs: it has a run.Executor for each watch with executor: job, and the
// running runs for package serve.
//
// A run is a Job with the name of the CR's UID, so that its creation is the first lock: of two
// managers one creates it, and the other finds it. The pod that claims the Job is the second lock,
// because Kubernetes may start two pods. Run
//
//   - creates the Job, or goes on with one that an earlier manager has left for the same request
//     (obtain.go),
//   - follows it and its pod, says what it waits for, and takes events and the result from the
//     agent in the pod (run.go),
//   - evaluates Kubernetes' status of a pod that ends without a result (evaluate.go),
//   - leaves the Job to the next manager if this one stops, or removes it and waits until its pod is
//     gone if the run is not wanted any more.
//
// Content whose request depends on the effect of an earlier run, such as a chart, calls Resume first: then
// nothing of an earlier run executes any more.
//
// A Job stays until its result is in the CR's status: see ResultStored.
//
// It does not decide when something runs, authenticate agents, or write statuses.
//
// # Gotchas
//
//   - An agent that gets TERM reports a canceled run. If this manager did not end it, that does not
//     count as a result: Kubernetes has the reason why the pod ends.
//   - Jobs are deleted in the foreground, so that the name stays taken until the pod is gone.
package executor
