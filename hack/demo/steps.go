package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/demo/journal"
	"github.com/ensign-operator/ensign/hack/demo/observe"
)

// conditionLines prints a status as a person reads it.
const conditionLines = `jsonpath={range .status.conditions[*]}{.type}={.status}  {.reason}  {.message}{"\n"}{end}`

func (t *tour) bootCluster(ctx context.Context) error {
	if err := t.boot(ctx); err != nil {
		return err
	}
	if err := t.kubectl(ctx, "get", "nodes"); err != nil {
		return err
	}
	return t.enter(ctx)
}

func (t *tour) joinCluster(ctx context.Context) error {
	if err := t.join(); err != nil {
		return err
	}
	return t.enter(ctx)
}

// enter makes the namespace and tells how to follow from another terminal.
func (t *tour) enter(ctx context.Context) error {
	if err := t.makeNamespace(ctx); err != nil {
		return err
	}
	t.script.Holds("namespace %s is there", t.namespace)
	t.script.Say("  To look on from another terminal, in this directory:")
	t.script.Say("      export KUBECONFIG=%s PATH=$PWD/%s:$PATH", t.kubeconfig, bin)
	return nil
}

func (t *tour) define(ctx context.Context) error {
	definitions, err := readDefinitions()
	if err != nil {
		return err
	}
	args := []string{"apply"}
	for _, d := range definitions {
		present := d.DeepCopy()
		switch err := t.absent(ctx, present); {
		case err == nil:
			args = append(args, "-f", d.file)
			t.created = append(t.created, d)
		case present.GetUID() != "":
			t.script.Say("  %s is defined already and is used as it is.", d.GetName())
		default:
			return err
		}
	}
	if len(args) > 1 {
		if err := t.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	for _, d := range definitions {
		if err := t.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/"+d.GetName()); err != nil {
			return err
		}
	}
	t.script.Holds("the API server serves %d new kinds", len(definitions))
	return nil
}

func (t *tour) startOperator(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	t.script.Say("  $ WATCH_NAMESPACE=%s bin/manager --kubeconfig %s --max-backoff 10s", t.namespace, t.kubeconfig)
	if err := t.startManager(ctx, address); err != nil {
		return err
	}
	t.log, err = journal.Open(t.managerLog(), t.namespace+"/"+sample)
	if err != nil {
		return err
	}
	t.script.Say("  Its log is %s; the lines about our object are shown below.", t.managerLog())
	return t.until(ctx, "the manager is ready", func(ctx context.Context) error { return ready(ctx, address) })
}

func (t *tour) create(ctx context.Context) error {
	t.created = append(t.created, t.sample())
	if err := t.kubectl(ctx, "-n", t.namespace, "apply", "-f", "config/samples/secrets.yaml", "-f", "config/samples/myapp_v1_mysqlcluster.yaml"); err != nil {
		return err
	}
	cr, err := t.reported(ctx, true)
	if err != nil {
		return err
	}
	if err := t.showStatus(ctx); err != nil {
		return err
	}
	if err := t.kubectl(ctx, "-n", t.namespace, "get", "statefulset,service,configmap,poddisruptionbudget,persistentvolumeclaim,pod", "-l", t.observed().Selector()); err != nil {
		return err
	}
	if err := t.until(ctx, "each of them belongs to the MySQLCluster", func(ctx context.Context) error { return t.observed().ChildrenBelong(ctx, cr) }); err != nil {
		return err
	}
	return t.serves(ctx, firstVersion, "the server is ready and its volume is bound")
}

// showStatus shows the object as `kubectl get` does, and its conditions.
func (t *tour) showStatus(ctx context.Context) error {
	if err := t.kubectl(ctx, "-n", t.namespace, "get", resource, sample); err != nil {
		return err
	}
	return t.kubectl(ctx, "-n", t.namespace, "get", resource, sample, "-o", conditionLines)
}

// serves waits until a server of the version is ready.
func (t *tour) serves(ctx context.Context, mysqlVersion, what string) error {
	return t.until(ctx, what, func(ctx context.Context) error {
		return t.observed().ServerReady(ctx, mysqlVersion)
	})
}

func (t *tour) setVersion(ctx context.Context, mysqlVersion string) error {
	return t.kubectl(ctx, "-n", t.namespace, "patch", resource, sample, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"mysqlVersion":%q}}`, mysqlVersion))
}

func (t *tour) upgrade(ctx context.Context) error {
	if err := t.setVersion(ctx, secondVersion); err != nil {
		return err
	}
	if _, err := t.reported(ctx, true); err != nil {
		return err
	}
	return t.serves(ctx, secondVersion, "the server runs version "+secondVersion)
}

func (t *tour) breakIt(ctx context.Context) error {
	if err := t.kubectl(ctx, "-n", t.namespace, "delete", "secret", adminSecret); err != nil {
		return err
	}
	if err := t.setVersion(ctx, thirdVersion); err != nil {
		return err
	}
	cr, err := t.reported(ctx, false)
	if err != nil {
		return err
	}
	if message := observe.Conditions(cr)["Failure"].Message; !strings.Contains(message, adminSecret) {
		return fmt.Errorf("the Failure condition does not name %s: %q", adminSecret, message)
	}
	t.script.Holds("its message names the Secret %s", adminSecret)
	if !t.log.BlockWith(adminSecret) {
		return errors.New("the log has no block with the failed task's output")
	}
	t.script.Holds("the log has the failed task's output")
	if err := t.showStatus(ctx); err != nil {
		return err
	}
	return t.serves(ctx, secondVersion, "the server itself was left alone: it runs version "+secondVersion)
}

func (t *tour) mend(ctx context.Context) error {
	if err := t.kubectl(ctx, "-n", t.namespace, "apply", "-f", "config/samples/secrets.yaml"); err != nil {
		return err
	}
	if _, err := t.reported(ctx, true); err != nil {
		return err
	}
	if err := t.serves(ctx, thirdVersion, "the server runs version "+thirdVersion); err != nil {
		return err
	}
	return t.showStatus(ctx)
}

func (t *tour) deleteIt(ctx context.Context) error {
	cr, err := t.get(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(cr.GetFinalizers(), group+"/cluster-finalizer") {
		return fmt.Errorf("it has no finalizer of ours: %q", cr.GetFinalizers())
	}
	t.script.Holds("it has the finalizer %s/cluster-finalizer", group)
	if err := t.kubectl(ctx, "-n", t.namespace, "delete", resource, sample, "--wait=false"); err != nil {
		return err
	}
	if err := t.until(ctx, "the MySQLCluster is gone", func(ctx context.Context) error { return t.absent(ctx, t.sample()) }); err != nil {
		return err
	}
	if err := t.until(ctx, "its finalizer's role ran first", func(context.Context) error {
		if !t.log.RanTaskOf(finalizer) {
			return errors.New("the log has no task of " + finalizer)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := t.until(ctx, "nothing that belonged to it is left", func(ctx context.Context) error { return t.observed().ChildrenGone(ctx) }); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := t.client.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: adminSecret}, secret); err != nil {
		return fmt.Errorf("what was not its own must stay: %w", err)
	}
	t.script.Holds("what was not its own is untouched: the Secrets")
	return nil
}

// stop ends the manager as a Deployment would.
func (t *tour) stop(context.Context) error {
	t.script.Say("  $ kill -TERM %d", t.program.PID())
	if err := t.manager.Stop(stopGrace); err != nil {
		return err
	}
	if code := t.program.ExitCode(); code != 0 {
		return fmt.Errorf("it exited with %d; %s", code, t.program.Quote())
	}
	t.script.Holds("it exited with 0")
	return nil
}
