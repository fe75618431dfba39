package main

import (
	"context"
	"errors"
)

// steps are the tour's programme.
func (t *tour) steps() []step {
	steps := []step{t.arrival(), {
		"Teach it new kinds",
		`A CustomResourceDefinition gives the API server a kind, with its schema: what a user may
		write is checked before Ansible sees it.`,
		t.define,
	}, {
		"Start the manager",
		`One process watches the kinds of watches.yaml and runs Ansible for each object. It talks
		to the cluster from outside here; in production it is a Deployment.`,
		t.startOperator,
	}, {
		"Ask for a MySQL server",
		`Two Secrets and a MySQLCluster. The manager hands its spec to the role mysqlcluster, logs
		each task as it happens, and writes what came out into the status.`,
		t.create,
	}, {
		"Ask for another version",
		`A change of the spec is a new generation, and leads to a new run of the same role. Ansible
		changes only what differs.`,
		t.upgrade,
	}, {
		"Break it",
		`A Secret that the spec names is deleted, and the version changed once more. The role
		notices and says so: in the log with the task's whole output, and in the status.`,
		t.breakIt,
	}, {
		"Mend it",
		`The Secret comes back. Nothing else has to be done: a failed run is repeated, after a
		pause that grows with each failure.`,
		t.mend,
	}, {
		"Delete it",
		`The object has a finalizer: the role mysqlcluster_finalizer runs first, stops the server
		and deletes its volume. Then the object goes, and the garbage collector takes
		what belonged to it.`,
		t.deleteIt,
	}}
	if t.settings.keep {
		return steps
	}
	return append(steps, step{
		"Stop the manager",
		`It gets TERM, as from Kubernetes: no run starts any more, live ones are ended, and it
		exits in order.`,
		t.stop,
	})
}

// arrival is how the tour comes to a cluster.
func (t *tour) arrival() step {
	if t.settings.kubeconfig != "" {
		return step{
			"Join your cluster",
			`KUBECONFIG's cluster is used. The tour works in a namespace of its own, and removes at
			the end what it has created.`,
			t.joinCluster,
		}
	}
	return step{
		"Boot a cluster",
		`etcd, the API server, its controllers and the scheduler are the real ones; the node is a
		fake: Pods become Ready on it, but nothing runs in them.`,
		t.bootCluster,
	}
}

// keep tells what can be tried, and waits for Ctrl-C.
func (t *tour) keep(ctx context.Context) error {
	t.script.Say("\nKEEP=1: cluster and manager stay up. In another terminal:")
	for _, line := range []string{
		"export KUBECONFIG=" + t.kubeconfig + " PATH=$PWD/" + bin + ":$PATH",
		"kubectl -n " + t.namespace + " apply -k config/samples",
		"kubectl -n " + t.namespace + " get mysqlclusters,mysqlendpoints -w",
		"kubectl -n " + t.namespace + " describe mysqlcluster " + sample,
		"kubectl -n " + t.namespace + " delete mysqlcluster " + sample,
		"tail -f " + t.managerLog(),
	} {
		t.script.Say("  %s", line)
	}
	t.script.Say("Ctrl-C here ends it all.")
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
