// Package etcd shows what the CRDs of examples/etcd refuse at the API server, before any content
// runs, and that its project is without a finding. test/node runs it with real members.
package etcd
