package coldruns

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

func TestWatchesThatStayColdAreReported(t *testing.T) {
	const each = 31 * time.Second
	run := func(warm bool) ended { return ended{warm: warm, verdict: content.Succeeded, after: each} }
	tests := map[string]struct {
		watch    string
		ended    []ended
		want     []bool // what is shown
		wantTold int
	}{
		"a minute and three runs":             {ended: []ended{run(false), run(false), run(false), run(false)}, want: []bool{true}, wantTold: 1},
		"failed runs count":                   {ended: []ended{{verdict: content.Failed, after: each}, {verdict: content.Failed, after: each}, run(false)}, want: []bool{true}, wantTold: 1},
		"two runs may have had no luck":       {ended: []ended{{verdict: content.Succeeded, after: time.Hour}, {verdict: content.Succeeded, after: time.Hour}}},
		"many runs may be before the servers": {ended: []ended{{after: time.Second}, {after: time.Second}, {after: time.Second}, {after: time.Second}}},
		"a warm run begins anew":              {ended: []ended{run(false), run(false), run(true), run(false), run(false)}, want: []bool{false}},
		"and tells that it is over":           {ended: []ended{run(false), run(false), run(false), run(true)}, want: []bool{true, false}, wantTold: 1},
		"what was canceled says nothing":      {ended: []ended{run(false), run(false), {verdict: content.Canceled, after: each}}},
		"a watch with warm: false is cold":    {watch: "Chill", ended: []ended{run(false), run(false), run(false), run(false)}},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			if test.watch == "" {
				test.watch = "Hot"
			}
			now := time.Now()
			var shown []bool
			var said []string
			c := New(Options{
				Watches: []schema.GroupVersionKind{{Kind: "Hot"}},
				Reason:  func() string { return "log file" },
				SetCold: func(_ schema.GroupVersionKind, cold bool) { shown = append(shown, cold) },
				Logger:  funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{}),
			})
			c.now = func() time.Time { return now }
			for _, e := range test.ended {
				now = now.Add(e.after)
				start := jobevent.StartCold
				if e.warm {
					start = jobevent.StartWarm
				}
				c.RunEnded(content.Run{Watch: schema.GroupVersionKind{Kind: test.watch}}, content.Result{Outcome: content.Outcome{Verdict: e.verdict}, Account: content.Account{Start: start}}, e.after)
			}
			if diff := cmp.Diff(test.want, shown); diff != "" {
				t.Error(diff)
			}
			if len(said) != test.wantTold || len(said) > 0 && !(strings.Contains(said[0], `"reason"="log file"`) && strings.Contains(said[0], "log_path")) {
				t.Errorf("got %q, want %d lines with reason and remedy", said, test.wantTold)
			}
		})
	}
}

// ended is a run that took all the time since the one before.
type ended struct {
	warm    bool
	verdict content.Verdict
	after   time.Duration
}
