package warm

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// journal keeps what is logged for users.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) options(verbosity int) Options {
	return Options{Limit: 2, Logger: funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, line)
	}, funcr.Options{Verbosity: verbosity})}
}

// count counts the lines with a text.
func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(strings.Join(j.lines, "\n"), text)
}

func TestARunIsWarmWhenItWasForked(t *testing.T) {
	p, _ := newPool(t, 1)
	env := func(number string) []string { return []string{"FAKE=server", "JOB_ID=" + number} }
	launched(t, p, env("7")...)
	launched(t, p, env("8")...)
	for _, said := range []struct {
		kind kind
		line string
	}{{runner, "warm 7"}, {module, "warm 8"}, {runner, "warm 9"}, {runner, "warm"}, {runner, "cold imports"}} {
		newServer(&set{}, said.kind, p).listen(strings.NewReader(said.line + "\n"))
	}
	for number, want := range map[string]bool{"7": true, "8": false, "9": false} {
		if got := p.Ended(env(number)); got != want {
			t.Errorf("run %s: got %t", number, got)
		}
	}
	if p.Ended(env("7")) || len(p.live) > 0 {
		t.Errorf("runs are kept after their end: %v", p.live)
	}
}

func TestWhatNeverServesIsToldOfOnce(t *testing.T) {
	for why, test := range map[string]struct {
		verbosity int
		enough    func(ended int) bool
	}{
		"to users":      {0, func(ended int) bool { return ended == 2 }},
		"for debuggers": {1, func(ended int) bool { return ended > 2 }},
	} {
		t.Run(why, func(t *testing.T) {
			var j journal
			p, o := newPoolWith(t, j.options(test.verbosity))
			env := []string{"FAKE=killed"}
			await(t, "the failure", func() bool { _, why := p.Launch(env); return why == reasonFailed })
			await(t, "two ends of one server", func() bool { return o.started() > 4 })
			await(t, "the log", func() bool { return test.enough(j.count("a server for warm runs ended")) })
			if got := j.count("no such module"); got < 2 || test.verbosity == 0 && got > 2 {
				t.Errorf("got %d complaints", got)
			}
			if _, why := p.Launch(env); why != reasonFailed {
				t.Errorf("got %q, while another server is started", why)
			}
			if got := j.count(`"reason"="failed"`); (got > 0) != (test.verbosity > 0) {
				t.Errorf("told %d times why runs are cold", got)
			}
		})
	}
}

func TestWhatCannotServeIsNotTriedAgainSoon(t *testing.T) {
	for how, pause := range map[string]string{"broken": "1m0s", "killed": "1s"} {
		t.Run(how, func(t *testing.T) {
			var j journal
			p, _ := newPoolWith(t, j.options(0))
			p.Prepare([]string{"FAKE=" + how})
			await(t, "the log", func() bool { return j.count(`"pause"="`+pause+`"`) == 2 })
		})
	}
}

func TestFurtherServersAreToldOf(t *testing.T) {
	var j journal
	p, o := newPoolWith(t, j.options(1))
	p.Prepare([]string{"FAKE=server", "A=1"})
	p.Prepare([]string{"FAKE=server", "A=1", "JOB_ID=3"})
	if j.count("further servers") > 0 {
		t.Errorf("got %q", j.lines)
	}
	launched(t, p, "FAKE=server", "A=1")
	if got := o.started(); got != 2 {
		t.Errorf("got %d servers", got)
	}
	p.Prepare([]string{"FAKE=server", "A=2", "B="})
	if j.count(`"variables"=["A" "B"]`) != 1 {
		t.Errorf("got %q", j.lines)
	}
}

func TestAClosedPoolStartsNothing(t *testing.T) {
	p, o := newPool(t, 1)
	launched(t, p, "FAKE=server")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.Prepare([]string{"FAKE=server"})
	if program, why := p.Launch([]string{"FAKE=server"}); program != "" || why != reasonClosed || o.count() > 0 {
		t.Errorf("got %q, %q, and %d servers", program, why, o.count())
	}
	if _, err := os.Lstat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory is left")
	}
}

func TestReasonsForMetricsAreFew(t *testing.T) {
	for reason, want := range map[string]string{
		"variable TZ":      "variable",
		"defect TypeError": "defect",
		"control group":    "control group",
		"variables":        "variables",
	} {
		if got := WithoutDetail(reason); got != want {
			t.Errorf("got %q for %q", got, reason)
		}
	}
	// Each reason that names something begins with a word that WithoutDetail knows.
	naming := regexp.MustCompile(`(?:Refused|Outdated|UnknownEnvironment|reason =.*)\(?.*\bf"([^"]*)"`)
	found := 0
	files, err := filepath.Glob("server/ensign_warm/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range naming.FindAllSubmatch(content, -1) {
			found++
			if text := string(match[1]); WithoutDetail(text) == text {
				t.Errorf("%s: a metric would have %q", file, text)
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d reasons", found)
	}
}
