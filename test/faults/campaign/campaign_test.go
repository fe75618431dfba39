package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// trials answers for each plan, by its name.
type trials struct {
	dir     string
	answers map[string]func(*oracle.Evidence) error
	live    atomic.Int32
	most    atomic.Int32
	asked   chan string
}

func (f *trials) Run(_ context.Context, p plan.Plan) (oracle.Evidence, error) {
	if live := f.live.Add(1); live > f.most.Load() {
		f.most.Store(live)
	}
	defer f.live.Add(-1)
	f.asked <- p.String()
	e := deleted(p)
	e.Directory = filepath.Join(f.dir, strings.ReplaceAll(p.String(), "/", "-"))
	if err := os.Mkdir(e.Directory, 0o700); err != nil {
		return e, err
	}
	if answer := f.answers[p.String()]; answer != nil {
		return e, answer(&e)
	}
	return e, nil
}

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

func perform(t *testing.T, f *trials, parallel int, plans ...plan.Plan) ([]Result, error) {
	t.Helper()
	f.dir, f.asked = t.TempDir(), make(chan string, 100)
	results, err := Campaign{Trials: f, Parallel: parallel, Tell: func(Result) {}}.Run(t.Context(), plans)
	close(f.asked)
	return results, err
}

var plans = []plan.Plan{
	{Operation: plan.Delete, Point: plan.MidTask, Fault: plan.Lost}, {Operation: plan.Delete, Point: plan.Stats, Fault: plan.Lost},
	{Operation: plan.DeleteRunning, Point: plan.MidTask, Fault: plan.Reset},
}

func TestBaselinesComeFirstAndOnce(t *testing.T) {
	f := &trials{}
	results, err := perform(t, f, 1, plans...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range f.asked {
		got = append(got, name)
	}
	want := []string{"delete/without/fault", "delete-running/without/fault", "delete/mid-task/lost", "delete/stats/lost", "delete-running/mid-task/reset"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(results) != 3 || len(Bad(results)) != 0 || f.most.Load() != 1 {
		t.Errorf("got %v, %d at a time", results, f.most.Load())
	}
	if left, err := os.ReadDir(f.dir); err != nil || len(left) != 0 {
		t.Errorf("good plans left %v (%v)", left, err)
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	f := &trials{answers: map[string]func(*oracle.Evidence) error{
		"delete/mid-task/lost": func(e *oracle.Evidence) error { e.Left = []string{"process 7"}; return nil },
		"delete/stats/lost":    func(*oracle.Evidence) error { return errors.New("the point did not come") },
	}}
	results, err := perform(t, f, 3, plans...)
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
	f := &trials{answers: map[string]func(*oracle.Evidence) error{
		"delete/without/fault": func(e *oracle.Evidence) error { e.Unsettled = []string{"why"}; return nil },
	}}
	if results, err := perform(t, f, 3, plans...); err == nil || results != nil || !strings.Contains(err.Error(), "delete/without/fault") {
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
