// Package controlplane boots a Kubernetes control plane from the programs that
// `make controlplane` builds: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, and kwok with one fake node. Garbage collection, workloads,
// scheduling and PVCs behave as in a cluster; pods become Ready, but
// nothing runs in them.
//
//	cluster, err := controlplane.Start(ctx, controlplane.Options{})
//	if err != nil { … }
//	defer cluster.Stop()
//	c, err := client.New(cluster.Config, client.Options{})
//
// Any number of clusters live side by side: nobody else is given the API server's
// port, and etcd listens on a socket in the data directory. Everything ends with
// Stop, with a Start that fails, and with the death of the process that called
// Start.
//
// The package does not build the programs, install custom resources, or know
// what the cluster is for.
//
// # Gotchas
//
//   - The garbage collector does not know a new kind for up to 30 s: a test that waits for a
//     deletion of a child has to allow for that.
package controlplane
