package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// deleted is the evidence of a deletion as it should be.
func deleted(p plan.Plan) oracle.Evidence {
	subject, after := stub.Subject{UID: "u"}, time.Now()
	return oracle.Evidence{
		Plan: p, UIDs: []string{"u"},
		Requests: []apiproxy.Request{{
			Verb: "patch", Resource: "plays", Upstream: 200,
			Answer: []byte(`{"apiVersion": "v1", "kind": "Play", "metadata": {"uid": "u", "resourceVersion": "2", "finalizers": ["x.io/finalizer"]}}`),
		}},
		Runs: []stub.Record{
			{Subject: subject, What: stub.Started, Time: after},
			{Subject: subject, What: stub.Started, Finalizer: true, Time: after},
			{Subject: subject, What: stub.Ended, Finalizer: true, Succeeded: true, Time: after},
		},
		Events: []string{"Normal Succeeded", "Normal Finalized"},
	}
}

var plans = []plan.Plan{
	{Operation: plan.Delete, Point: plan.MidTask, Fault: plan.Lost}, {Operation: plan.Delete, Point: plan.Stats, Fault: plan.Lost},
	{Operation: plan.DeleteRunning, Point: plan.MidTask, Fault: plan.Reset},
}

// perform runs a campaign in which the named plans have these answers, and the others
// nothing wrong. It returns the names of what was performed too.
func perform(t *testing.T, dir string, answers map[string]func(*oracle.Evidence) error) ([]Result, []string, error) {
	t.Helper()
	var names []string
	results, err := Campaign{Tell: func(Result) {}, Perform: func(_ context.Context, p plan.Plan) (oracle.Evidence, error) {
		names = append(names, p.String())
		e := deleted(p)
		e.Directory = filepath.Join(dir, strings.ReplaceAll(p.String(), "/", "-"))
		err := os.Mkdir(e.Directory, 0o700)
		if answer := answers[p.String()]; answer != nil {
			err = errors.Join(err, answer(&e))
		}
		return e, err
	}}.Run(t.Context(), plans)
	return results, names, err
}

func TestBaselinesComeFirstAndOnce(t *testing.T) {
	dir := t.TempDir()
	results, names, err := perform(t, dir, nil)
	want := []string{"delete/without/fault", "delete-running/without/fault", "delete/mid-task/lost", "delete/stats/lost", "delete-running/mid-task/reset"}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(results) != 3 || len(Bad(results)) != 0 {
		t.Errorf("got %v", results)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("good plans left %v (%v)", left, err)
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	results, _, err := perform(t, t.TempDir(), map[string]func(*oracle.Evidence) error{
		"delete/mid-task/lost": func(e *oracle.Evidence) error {
			e.Left, e.Took = []string{"process 7"}, time.Second
			return nil
		},
		"delete/stats/lost": func(*oracle.Evidence) error { return errors.New("the point did not come") },
	})
	bad := Bad(results)
	if err != nil || len(bad) != 2 {
		t.Fatalf("got %v, %v, want two bad plans", bad, err)
	}
	for i, want := range []string{"I6: left: process 7", "the point did not come"} {
		for _, text := range []string{want, "make faults PLANS='^" + bad[i].Plan.String() + "$'", "VIOLATION"} {
			if !strings.Contains(bad[i].String(), text) {
				t.Errorf("got %s, want %q in it", bad[i], text)
			}
		}
	}
	if _, err := os.Stat(bad[0].Directory); err != nil {
		t.Errorf("nothing is left to look at: %v", err)
	}
	var table strings.Builder
	if err := Table(&table, results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"operation delete 2 0 1 1.0 s delete/mid-task/lost", "fault reset 1 1 0 0.0 s", "all 3 1 1 1.0 s"} {
		if !strings.Contains(strings.Join(strings.Fields(table.String()), " "), want) {
			t.Errorf("got\n%s\nwant %q in it", &table, want)
		}
	}
}

func TestNothingIsJudgedByABaselineThatIsWrong(t *testing.T) {
	results, _, err := perform(t, t.TempDir(), map[string]func(*oracle.Evidence) error{
		"delete/without/fault": func(e *oracle.Evidence) error { e.Unsettled = []string{"why"}; return nil },
	})
	if err == nil || results != nil || !strings.Contains(err.Error(), "delete/without/fault") {
		t.Errorf("got %v, %v; want an error that names the operation", results, err)
	}
}
