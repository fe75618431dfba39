// Package pods runs the pods of one node of the embedded control plane as processes of this
// machine, as a kubelet would run them as containers: real commands and environment, real tokens
// that are bound to the pod, TERM and KILL at a deletion, the termination message and the exit code
// in the status. The scheduler, the Job controller and the API server beside it are real.
//
// It knows one container a pod, no images and no network: a command is looked up among the
// programs that a test gives, and files that are mounted are below a directory of the pod, so that
// paths in the environment that begin with a mount's are replaced by that. What a machine does to
// a pod, an eviction or a kill for want of memory, tests order.
package pods
