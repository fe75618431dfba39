// Package node shows the operator on a real node: its image in a pod under Pod Security
// "restricted", a real MySQL server in a pod of its own, and what befalls both there.
//
// The tests have the build tag "node" and need a cluster: `make test-node` brings one
// up, see hack/node. Those that tell the whole story in a few minutes are labelled
// "short". They build on each other, and so run in the order of suite_test.go.
package node
