package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/demo/journal"
	"github.com/ensign-operator/ensign/hack/demo/observe"
)

// What the samples of config/samples hold.
const (
	group       = "myapp.myorg.tld"
	version     = "v1"
	clusterKind = "MySQLCluster"
	resource    = "mysqlcluster"
	sample      = "mysqlcluster-sample"
	adminSecret = "mysql-admin"
	finalizer   = "mysqlcluster_finalizer"
)

// The versions that the tour goes through. The sample begins with the first.
const (
	firstVersion  = "8.4"
	secondVersion = "9.0"
	thirdVersion  = "9.1"
)

// stepLimit is how long one step may take on a slow machine.
const stepLimit = 5 * time.Minute

// tour is one performance.
type tour struct {
	*stage
	log *journal.Journal
}

// step is one stop of the tour.
type step struct {
	title string
	why   string
	do    func(context.Context) error
}

// play goes through the steps, and waits for the end when all is to be kept.
func (t *tour) play(ctx context.Context) error {
	ctx, t.fail = context.WithCancelCause(ctx)
	defer t.fail(nil)
	t.script.Say("Ensign: a guided tour of one operator, about 2 minutes. Every ✓ is checked, not only printed.")
	if err := t.open(); err != nil {
		return err
	}
	steps := t.steps()
	for i, step := range steps {
		t.script.Title(i+1, len(steps), step.title, step.why)
		if err := t.perform(ctx, step); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.title, err)
		}
	}
	t.script.Say("\nThe tour is over after %s; all of it held.", t.script.Elapsed())
	if t.settings.keep {
		return t.keep(ctx)
	}
	return nil
}

func (t *tour) perform(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("not within %s", stepLimit))
	defer cancel()
	err := s.do(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// until polls the check until it holds, and shows the manager's log meanwhile.
func (t *tour) until(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if logErr := t.showLog(); logErr != nil {
			return logErr
		}
		if err == nil {
			t.script.Holds("%s", what)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not hold: %s (last: %w): %w", what, err, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

func (t *tour) showLog() error {
	if t.log == nil {
		return nil
	}
	lines, err := t.log.Next()
	for _, line := range lines {
		t.script.Output(line)
	}
	return err
}

// get reads the sample as it is now.
func (t *tour) get(ctx context.Context) (*unstructured.Unstructured, error) {
	cr := t.sample()
	err := t.client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", sample, err)
	}
	return cr, nil
}

// observed is the sample as the assertions look at it.
func (t *tour) observed() observe.Cluster {
	return observe.Cluster{Client: t.client, Namespace: t.namespace, Name: sample}
}

// sample names the custom resource of the tour.
func (t *tour) sample() *unstructured.Unstructured {
	cr := &unstructured.Unstructured{}
	cr.SetAPIVersion(group + "/" + version)
	cr.SetKind(clusterKind)
	cr.SetNamespace(t.namespace)
	cr.SetName(sample)
	return cr
}

// reported waits until a run for the sample's present generation has ended well
// or badly, in the status and in the log.
func (t *tour) reported(ctx context.Context, succeeded bool) (cr *unstructured.Unstructured, err error) {
	what := "the status says Successful, for this generation"
	if !succeeded {
		what = "the status says Failure, for this generation"
	}
	err = t.until(ctx, what, func(ctx context.Context) error {
		cr, err = t.get(ctx)
		if err != nil {
			return err
		}
		if err := observe.Outcome(cr, succeeded); err != nil {
			return err
		}
		if t.log.Ended(cr.GetGeneration()) == 0 {
			return errors.New("the log has no end of a run for this generation")
		}
		return nil
	})
	return cr, err
}

// ready asks the manager's readiness probe.
func ready(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the manager answers %s", response.Status)
	}
	return nil
}

// freeAddress finds an address that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("free the port: %w", err)
	}
	return address, nil
}

// absent checks that an object does not exist.
func (t *tour) absent(ctx context.Context, object client.Object) error {
	err := t.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", object.GetName(), err)
	}
	return fmt.Errorf("%s is still there", object.GetName())
}
