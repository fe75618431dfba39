package trial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/kinds"
	"github.com/ensign-operator/ensign/test/faults/leftovers"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/faults/user"
)

// collect waits until nothing changes any more, and collects.
func (t *trial) collect(ctx context.Context) (oracle.Evidence, error) {
	e := oracle.Evidence{Plan: t.plan, Present: present(t.plan.Operation), Directory: t.dir}
	if err := t.settled(ctx, e.Present); err != nil {
		e.Unsettled = append(e.Unsettled, err.Error())
	}
	e.Took = time.Since(t.ended)
	var err error
	if e.Final, err = t.user.Fetch(ctx); err != nil {
		return e, err
	}
	if e.Events, err = t.events(ctx); err != nil {
		return e, err
	}
	if e.Runs, err = stub.ReadJournal(t.dir); err != nil {
		return e, err
	}
	e.Left = append(t.left(e.Final), t.secrets(ctx, e.Runs)...)
	e.Requests = t.proxy.Journal()
	t.manager.Stop()
	if e.Audited, err = t.audit.Writes(t.space, "ensign/"); err != nil {
		return e, err
	}
	e.Audit = t.audit.Kept()
	for _, process := range leftovers.Processes(t.dir) {
		e.Left = append(e.Left, "after the stop of the manager: "+process)
	}
	if e.Misdeeds, err = t.manager.Misdeeds(); err != nil {
		return e, err
	}
	e.Kills = t.manager.Kills()
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Touched = t.touched
	for _, uid := range t.uids {
		e.UIDs = append(e.UIDs, string(uid))
	}
	e.Foreign = t.foreign()
	return e, errors.Join(t.problem...)
}

// foreign is what another writer left in the object, for good.
func (t *trial) foreign() oracle.Foreign {
	switch {
	case t.plan.Fault != plan.Race || !present(t.plan.Operation):
		return oracle.Foreign{}
	case t.plan.Point == plan.FinalizerAdd:
		return oracle.Foreign{Finalizer: user.RivalFinalizer}
	case t.plan.Point == plan.FinalizerRemove || t.kind() == kinds.Plain && t.plan.Point == plan.StatusRunning:
		return oracle.Foreign{} // It went with the first object.
	default:
		return oracle.Foreign{Condition: user.RivalCondition()}
	}
}

// events lists what the manager told of the CRs.
func (t *trial) events(ctx context.Context) ([]oracle.Event, error) {
	list := &eventsv1.EventList{}
	if err := t.lab.client.List(ctx, list, client.InNamespace(t.space)); err != nil {
		return nil, fmt.Errorf("list the Events: %w", err)
	}
	var found []oracle.Event
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Kind != t.kind() {
			continue
		}
		count := 1
		if e.Series != nil {
			count = int(e.Series.Count)
		}
		found = append(found, oracle.Event{UID: string(e.Regarding.UID), Type: e.Type, Reason: e.Reason, Count: count})
	}
	return found, nil
}

// left lists what should not be there when no run is live: processes and zombies,
// directories of CRs that are gone, files of runs, descriptors of those.
func (t *trial) left(cr *unstructured.Unstructured) []string {
	found := leftovers.Processes(t.dir, append(leftovers.Helpers(t.manager.PID()), t.manager.PID())...)
	if pid := t.manager.PID(); pid > 0 {
		found = append(found, leftovers.Zombies(pid)...)
		found = append(found, leftovers.Descriptors(pid, t.manager.RunDir())...)
	}
	uid := ""
	if cr != nil {
		uid = string(cr.GetUID())
	}
	return append(found, leftovers.Directories(t.manager.RunDir(), uid)...)
}

// secrets lists tokens of ended runs that are still good, or that stand in files.
func (t *trial) secrets(ctx context.Context, runs []stub.Record) []string {
	var found []string
	for _, run := range runs {
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(run.Kubeconfig))
		if err != nil || run.What != stub.Ended {
			continue
		}
		if code := t.try(ctx, config.Host, config.BearerToken); code != http.StatusUnauthorized && code != 0 {
			found = append(found, fmt.Sprintf("the token of run %s is answered with %d", run.Run, code))
		}
		found = append(found, leftovers.Holding(t.manager.RunDir(), config.BearerToken)...)
	}
	return found
}

// try asks the API proxy of a run; 0 when it is gone with its manager.
func (t *trial) try(ctx context.Context, host, token string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/api", http.NoBody)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // A token of a test, that has expired.
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}
