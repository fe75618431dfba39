// Package pods runs the pods of one node of the embedded control plane as processes of this
// machine, as a kubelet would run them as containers. It gives them real commands and environment
// and real tokens that are bound to the pod. It sends TERM and KILL at a deletion, and writes the
// termination message and the exit code into the status. The scheduler, the Job controller and the API server beside it are real.
//
// It knows one container a pod, no images and no network. A command is looked up among the
// programs that a test gives. Mounted files are below a directory of the pod: it replaces the
// mount's path in the environment. Tests order what a machine does to a pod, such as an eviction
// or a kill for want of memory.
package pods
