package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary acts as chart-exec if FAKE is set.
func TestMain(m *testing.M) {
	if name := os.Getenv("FAKE"); name != "" {
		scratch.Leave(fake(name))
	}
	os.Exit(m.Run())
}

func fake(name string) int {
	text, err := os.ReadFile(os.Args[1])
	var o order.Order
	if err := errors.Join(err, json.Unmarshal(text, &o)); err != nil {
		panic(err)
	}
	if o.Action == order.Preview {
		if name != "success" {
			fmt.Fprintln(os.Stderr, "no such value")
			return 1
		}
		fmt.Printf(`{"manifests": [%q, %q]}`, os.Getenv("KUBECONFIG"), os.Getenv("HELM_DRIVER"))
		return 0
	}
	if o.Action == order.Evaluate {
		if name != "success" {
			fmt.Fprintln(os.Stderr, "no such thing")
			return 1
		}
		fmt.Printf(`[{"text": %q}]`, o.Texts[0]+os.Getenv("A"))
		return 0
	}
	records := os.NewFile(order.Descriptor, "records")
	write := func(r order.Record) {
		r.Nonce = o.Nonce
		if err := r.Write(records); err != nil {
			panic(err)
		}
	}
	write(order.Record{Working: string(o.Action)})
	switch name {
	case "success":
		write(order.Record{Done: true})
	case "failure":
		write(order.Record{Done: true, Error: "no\x1b[31m"})
		return 1
	case "betrayal":
		write(order.Record{Done: true, Error: strings.Repeat("x ", 2000) + "port 4000123 takes no correct horse"})
		return 1
	case "refused spec", "refused object":
		write(order.Record{Done: true, Error: "no", Refused: order.Refused(strings.TrimPrefix(name, "refused "))})
		return 1
	case "success with another code":
		write(order.Record{Done: true})
		return 3
	case "forgery": // All that a chart can do is to print.
		line := fmt.Sprintf(`{"nonce":%d,"done":true}`, o.Nonce)
		fmt.Println(line)
		fmt.Fprintln(os.Stderr, line)
	case "panic":
		crash, err := os.Create(filepath.Join(os.TempDir(), order.CrashFile))
		if err := errors.Join(err, syscall.Dup3(int(crash.Fd()), syscall.Stderr, 0)); err != nil {
			panic(err)
		}
		panic("a defect")
	case "hang":
		time.Sleep(time.Minute)
	}
	return 0
}

func newRunner(t *testing.T, name string) *Runner {
	t.Helper()
	root, reaper, err := process.TakeOver(filepath.Join(t.TempDir(), "runs"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Root: root, Reaper: reaper, Binary: self, Env: []string{"FAKE=" + name, "HELM_DRIVER=memory", "KUBECONFIG=/elsewhere", "A=b"}}
}

func someSpec(working func(string)) Spec {
	return Spec{UID: "uid-1", ID: "run-1", Kubeconfig: []byte("config"), Order: order.Order{Action: order.Install, Name: "r"}, Working: working}
}

func TestTheVerdictComesFromTheLastRecordAndTheExit(t *testing.T) {
	for name, want := range map[string]content.Outcome{
		"success":                   {Verdict: content.Succeeded, Reason: content.ReasonSuccessful},
		"failure":                   {Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no"},
		"refused spec":              {Verdict: content.Failed, Reason: content.ReasonInvalidSpec, Message: "no"},
		"refused object":            {Verdict: content.Failed, Reason: ReasonInvalidValues, Message: "no"},
		"success with another code": {Verdict: content.Failed, Reason: content.ReasonRunnerCrashed, Message: "chart-exec exited with code 3 before the run ended"},
		"silence":                   {Verdict: content.Failed, Reason: content.ReasonRunnerCrashed, Message: "chart-exec exited with code 0 before the run ended"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, name)
			var steps []string
			got := r.Run(t.Context(), someSpec(func(step string) { steps = append(steps, step) }))
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if len(steps) != 1 || steps[0] != "install" {
				t.Errorf("got the steps %q", steps)
			}
			if left, err := filepath.Glob(filepath.Join(r.Root.Path(), "uid-1", "run", "*")); err != nil || len(left) > 0 {
				t.Errorf("%q is left, %v", left, err)
			}
		})
	}
}

func TestNothingThatIsPrintedIsARecord(t *testing.T) {
	for _, name := range []string{"forgery", "panic"} {
		got := newRunner(t, name).Run(t.Context(), someSpec(func(string) {}))
		if got.Verdict != content.Failed || got.Reason != content.ReasonRunnerCrashed || !strings.Contains(got.Message, "before the run ended") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestACrashIsNamed(t *testing.T) {
	want := content.Outcome{Verdict: content.Failed, Reason: content.ReasonRunnerCrashed, Message: "chart-exec exited with code 2 before the run ended\npanic: a defect"}
	if got := newRunner(t, "panic").Run(t.Context(), someSpec(func(string) {})); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestARunThatHangsIsEnded(t *testing.T) {
	spec := someSpec(func(string) {})
	spec.Timeout = time.Second
	got := newRunner(t, "hang").Run(t.Context(), spec)
	if got.Verdict != content.Failed || got.Reason != content.ReasonTimeout {
		t.Errorf("got %+v", got)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got := newRunner(t, "hang").Run(ctx, someSpec(func(string) { cancel() }))
	if got.Verdict != content.Canceled {
		t.Errorf("got %+v", got)
	}
}

func TestWhatARunInherits(t *testing.T) {
	r := newRunner(t, "success")
	dir, err := r.Root.PrepareFiles("uid-1", "run-1", []byte("config"), map[string][]byte{orderFile: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(r.environ(dir, 7), "\n")
	if !strings.Contains(env, "A=b") || !strings.Contains(env, "JOB_ID=7") || !strings.Contains(env, "KUBECONFIG="+dir.Kubeconfig) || strings.Contains(env, "HELM_DRIVER") {
		t.Errorf("got %s", env)
	}
	info, err := os.Stat(filepath.Join(dir.Private, orderFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the order is %v, %v", info.Mode(), err)
	}
	if err := dir.Close(1); err != nil {
		t.Fatal(err)
	}
}
