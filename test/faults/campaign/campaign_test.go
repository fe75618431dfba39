package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		Events: []oracle.Event{{UID: "u", Reason: "Succeeded", Count: 1}, {UID: "u", Reason: "Finalized", Count: 1}},
	}
}

// perform runs a campaign in which the named plans have these answers, and the others
// nothing wrong. It returns the directory of the evidence too and, of a campaign that
// performs one plan at a time, the names of what was performed.
func perform(t *testing.T, parallel int, answers map[string]func(*oracle.Evidence) error) (results []Result, dir string, names []string, err error) {
	t.Helper()
	dir = t.TempDir()
	var alone sync.Mutex
	results, err = Campaign{Parallel: parallel, Tell: func(Result) {}, Perform: func(_ context.Context, p plan.Plan) (oracle.Evidence, error) {
		if parallel == 1 {
			if !alone.TryLock() {
				return oracle.Evidence{}, errors.New("another plan is at work")
			}
			defer alone.Unlock()
			names = append(names, p.String())
		}
		e := deleted(p)
		e.Directory = filepath.Join(dir, strings.ReplaceAll(p.String(), "/", "-"))
		err := os.Mkdir(e.Directory, 0o700)
		if answer := answers[p.String()]; answer != nil {
			err = errors.Join(err, answer(&e))
		}
		return e, err
	}}.Run(t.Context(), plans)
	return results, dir, names, err
}

var plans = []plan.Plan{
	{Operation: plan.Delete, Point: plan.MidTask, Fault: plan.Lost}, {Operation: plan.Delete, Point: plan.Stats, Fault: plan.Lost},
	{Operation: plan.DeleteRunning, Point: plan.MidTask, Fault: plan.Reset},
}

func TestBaselinesComeFirstAndOnce(t *testing.T) {
	results, dir, names, err := perform(t, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"delete/without/fault", "delete-running/without/fault", "delete/mid-task/lost", "delete/stats/lost", "delete-running/mid-task/reset"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(results) != 3 || len(Bad(results)) != 0 {
		t.Errorf("got %v", results)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("good plans left %v (%v)", left, err)
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	results, _, _, err := perform(t, 3, map[string]func(*oracle.Evidence) error{
		"delete/mid-task/lost": func(e *oracle.Evidence) error { e.Left = []string{"process 7"}; return nil },
		"delete/stats/lost":    func(*oracle.Evidence) error { return errors.New("the point did not come") },
	})
	if err != nil {
		t.Fatal(err)
	}
	bad := Bad(results)
	if len(bad) != 2 {
		t.Fatalf("got %v, want two bad plans", bad)
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
}

func TestNothingIsJudgedByABaselineThatIsWrong(t *testing.T) {
	results, _, _, err := perform(t, 3, map[string]func(*oracle.Evidence) error{
		"delete/without/fault": func(e *oracle.Evidence) error { e.Unsettled = []string{"why"}; return nil },
	})
	if err == nil || results != nil || !strings.Contains(err.Error(), "delete/without/fault") {
		t.Errorf("got %v, %v; want an error that names the operation", results, err)
	}
}

func TestTable(t *testing.T) {
	results := []Result{
		{Plan: plans[0], Took: time.Second},
		{Plan: plans[1], Took: 3 * time.Second, Violations: make([]oracle.Violation, 2)},
		{Plan: plans[2], Took: 2 * time.Second, Err: errors.New("no")},
	}
	var out strings.Builder
	if err := Table(&out, results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"operation delete 2 1 2 3.0 s delete/stats/lost",
		"point mid-task 2 1 0 2.0 s delete-running/mid-task/reset",
		"fault lost 2 1 2 3.0 s delete/stats/lost",
		"all 3 1 2 3.0 s delete/stats/lost",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("got\n%s\nwant %q in it", &out, want)
		}
	}
	if got := Quantile(results, 0.5); got != 2*time.Second {
		t.Errorf("the median is %s, want 2s", got)
	}
	if got := Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
}
