package warm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// sight is what is seen of a run, without what differs each time.
type sight struct {
	Verdict content.Verdict
	Reason  content.Reason
	Message string
	Exit    int
	Counts  [7]int
	Events  []string
	// Files are those that the run made where it was told to, among its content, and in
	// its home directory.
	Files map[string]string
	// Objects are those in its namespace.
	Objects []string
}

// see runs the play and tells what is seen of it. A cold run is one that might have been
// warm: it has pipelining, which what runs see of themselves depends on.
func (b *counted) see(p play, cold bool) sight {
	b.t.Helper()
	p.lay(b)
	dirs := map[string]string{"out": b.In("out"), "content": p.dir(b), "home": b.home}
	for _, name := range []string{"out", "home"} {
		if err := errors.Join(os.RemoveAll(dirs[name]), os.Mkdir(dirs[name], 0o755)); err != nil {
			b.t.Fatal(err)
		}
	}
	namespace := b.Next()
	kubeconfig := b.cluster(p, namespace)
	vars, err := json.Marshal(map[string]string{"place": dirs["out"], "namespace": namespace})
	if err != nil {
		b.t.Fatal(err)
	}
	spec := runner.Spec{
		UID: bench.UID, ID: namespace, Playbook: filepath.Join(p.dir(b), "play.yml"), Timeout: waitTimeout,
		ExtraVars: append([]byte("\t\n"), vars...), Kubeconfig: kubeconfig, Verbosity: p.verbosity, MaxArtifacts: 1,
	}
	b.withhold(cold)
	defer b.withhold(false)
	var events []string
	result := b.Run(context.Background(), spec, func(e jobevent.Event) {
		if e.Kind != "runner_on_async_poll" { // How often that is asked depends on how long things take.
			events = append(events, b.event(e))
		}
	})
	s := result.Summary
	got := sight{
		Verdict: result.Outcome.Verdict, Reason: result.Outcome.Reason, Message: steady(result.Outcome.Message), Exit: b.exitCode(spec.UID),
		Counts: [7]int{s.OK, s.Changed, s.Skipped, s.Failures, s.Unreachable, s.Rescued, s.Ignored},
		Events: events, Files: map[string]string{}, Objects: b.objects(p, namespace),
	}
	for name, dir := range dirs {
		b.files(name, dir, got.Files)
	}
	return got
}

func (b *counted) withhold(servers bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.withheld = servers
}

// event is an event without times and identifiers.
func (b *counted) event(e jobevent.Event) string {
	b.t.Helper()
	for _, name := range []string{"start", "end", "delta"} {
		delete(e.Result, name)
	}
	// A value a line: what differs is easy to find.
	content, err := json.MarshalIndent([]any{e.Kind, e.Play, e.Task, e.Role, e.Host, e.Action, e.ResolvedAction, e.IgnoreErrors, e.Result, e.HostStats, strings.Split(e.Stdout, "\n")}, "", " ")
	if err != nil {
		b.t.Fatal(err)
	}
	return steady(string(content))
}

// exitCode is the one that the artifact of the last run has.
func (b *counted) exitCode(uid string) int {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.Runs, uid, "artifacts", "*", "outcome.json"))
	if err != nil || len(names) != 1 {
		b.t.Fatalf("got outcomes %q (error %v)", names, err)
	}
	content, err := os.ReadFile(names[0])
	if err != nil {
		b.t.Fatal(err)
	}
	var outcome struct {
		ExitCode int `json:"exitCode"`
	}
	if err := json.Unmarshal(content, &outcome); err != nil {
		b.t.Fatal(err)
	}
	return outcome.ExitCode
}

// files adds what is in a directory, with modes and content. Of compiled files, which
// have times in them, only that they are there.
func (b *counted) files(name, dir string, found map[string]string) {
	b.t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		switch {
		case info.Mode().IsRegular() && filepath.Ext(path) != ".pyc":
			content, err = os.ReadFile(path)
		case info.Mode().Type() == fs.ModeSymlink:
			var target string
			target, err = os.Readlink(path)
			content = []byte(target)
		}
		found[steady(name+strings.TrimPrefix(path, dir))] = info.Mode().String() + " " + steady(string(bytes.TrimSpace(content)))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// changing is what differs from run to run, however it is started, and what stands in
// its place.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`ansible-tmp-[\d.]+-\d+-\d+`), "TMP"},
	{regexp.MustCompile(`ansible-moduletmp-[\d.]+-\w{8}/tmp\w{8}`), "MODULETMP"},
	{regexp.MustCompile(`/ansible\.\w{8}\b`), "/ansible.NAME"}, // of the module tempfile
	{regexp.MustCompile(`ansible-local-\d+\w{8}`), "LOCAL"},
	{regexp.MustCompile(`_payload_\w{8}`), "_payload_X"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UUID"},
	{regexp.MustCompile(`\brun-\d+\b`), "RUN"},
	{regexp.MustCompile(`\b\d{16,19}\b`), "NONCE"},
	{regexp.MustCompile(`(_original_basename\\?": ?\\?")\.\w{8}\b`), "${1}.NAME"}, // of ansible-core 2.19
	{regexp.MustCompile(`\bj\d{9,}\.\d+\b`), "JOB"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\d+:\d\d:\d\d\.\d+`), "DELTA"},
	{regexp.MustCompile(`\\?"([acm]time|inode|dev)\\?": ?[\d.]+`), "STAT"},
	{regexp.MustCompile(`\\?"version\\?": ?\\?"\d+\\?"`), "VERSION"}, // of a file
	{regexp.MustCompile(`(resourceVersion\\?": ?\\?")\d+`), "${1}VERSION"},
	{regexp.MustCompile(`(\\?"elapsed\\?": ?)\d+`), "${1}SECONDS"},
	{regexp.MustCompile(`(\\?"child_pid\\?": ?)\d+`), "${1}PID"},
	{regexp.MustCompile(`/tmp\w{8}\b`), "/TEMP"},
	{regexp.MustCompile(`0x[0-9a-f]{8,}`), "ADDRESS"},
	{regexp.MustCompile(`Paused for [\d.]+ `), "Paused for some "},
}

func steady(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}
