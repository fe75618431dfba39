package once

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func greetings() []watches.Watch {
	return []watches.Watch{{
		GVK: schema.GroupVersionKind{Group: "demo.example.com", Version: "v1", Kind: "Greeting"}, SnakeCaseParameters: true, MarkUnsafe: true,
		Vars: map[string]any{"db_password": "hunter2", "admin_secret": "a-name"},
	}}
}

const greeting = "apiVersion: demo.example.com/v1\nkind: Greeting\nmetadata: {name: hello}\nspec:\n  firstName: \"{{ 7*7 }}\"\n  size: 12345678901\n"

func TestVariablesAreThoseThatAnsibleSees(t *testing.T) {
	var out, notes bytes.Buffer
	o := Options{File: "-", Input: []byte(greeting), Namespace: "demo", Out: &out, Err: &notes}
	if err := Variables(t.Context(), o, nil, greetings(), nil, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first_name: '{{ 7*7 }}'\n", "size: 12345678901\n", "db_password: (hidden)\n", "admin_secret: a-name\n", "namespace: demo\n", "_demo_example_com_greeting_spec:\n  firstName:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	if !strings.Contains(notes.String(), "no owner reference") {
		t.Errorf("notes: %q", notes.String())
	}
}

// A chart is not run, and its values are shown.
func TestAChartHasValues(t *testing.T) {
	list := greetings()
	list[0].Chart = &watches.Chart{Path: "charts/hello"}
	var out, notes bytes.Buffer
	o := Options{File: "-", Input: []byte(greeting), Namespace: "demo", Out: &out, Err: &notes}
	values := func(_ context.Context, cr *unstructured.Unstructured) (map[string]any, func(string) string, error) {
		hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
		return map[string]any{"of": cr.GetNamespace() + "/" + cr.GetName(), "password": "hunter3", "words": "hunter2"}, hide, nil
	}
	if err := Variables(t.Context(), o, nil, list, values, false); err != nil || out.String() != "of: demo/hello\npassword: (hidden)\nwords: ***\n" || notes.Len() > 0 {
		t.Errorf("got %v, %q and %q", err, out.String(), notes.String())
	}
	o.Finalize = true
	if err := Variables(t.Context(), o, nil, list, values, false); err == nil || !strings.Contains(err.Error(), "make run starts one here. ensign diff shows") {
		t.Errorf("got %v", err)
	}
}

func TestFaultsOfAFile(t *testing.T) {
	for content, want := range map[string]string{
		"":                            "has no object",
		"a: [\n":                      "line 1 of which is line 1",
		"a: 1\n---\n\nb: [\n":         "document 2 (line 1 of which is line 4",
		"apiVersion: v1\nkind: Pod\n": `it has v1 "Pod", watches.yaml demo.example.com/v1 "Greeting"`,
		greeting + "---\n" + greeting: "has 2 objects of watched kinds",
		"apiVersion: demo.example.com/v1\nkind: Greeting\n": "has no metadata.name",
	} {
		_, err := readFile(Options{File: "-", Input: []byte(content)}, greetings())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", content, want, err)
		}
	}
}

func TestWhatARunReturnsIsTextOnTheScreen(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(Options{Out: &out, Diffs: true})
	s.RunStarted(content.Run{Object: "a/b\x1b[31m", Watch: schema.GroupVersionKind{Version: "v1", Kind: "W"}})
	s.JobEvent(content.Run{}, jobevent.Event{Kind: jobevent.HostFailed, Task: "bad\nsucceeded\x1b]0;title\a", Host: "localhost", Result: map[string]any{
		"msg": "no\x1b[2J", "invocation": map[string]any{"password": "hunter2"},
	}})
	s.JobEvent(content.Run{}, jobevent.Event{Kind: jobevent.HostOK, Task: "t", Host: "localhost", Result: map[string]any{
		"changed": true, "diff": map[string]any{
			"before": map[string]any{"data": map[string]any{"a": "1"}, "metadata": map[string]any{"managedFields": "x"}},
			"after":  map[string]any{"data": map[string]any{"a": "2"}, "metadata": map[string]any{"managedFields": "y"}},
		},
	}})
	s.RunEnded(content.Run{}, content.Result{
		Outcome: content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "m"}, Account: content.Account{Start: jobevent.StartCold},
	}, time.Second)
	text := out.String()
	for _, never := range []string{"\x1b", "\a", "hunter2", "managedFields", "\nsucceeded"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in\n%s", never, text)
		}
	}
	for _, want := range []string{"FAILED", "-  a: \"1\"\n", "+  a: \"2\"\n", "changed", "failed (Failed) in 1.00 s, cold"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestASaveIsNoticedAndTheRestIsNot(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"roles/a/tasks/main.yml": "", "cr/cr.yaml": "", "cr/other.yaml": "", "tree/a/b/roles/c/tasks/main.yml": ""})
	f, err := newFiles()
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	content := []string{filepath.Join(dir, "none"), filepath.Join(dir, "roles"), filepath.Join(dir, "tree", "a", "b")}
	if err := f.watch(Options{File: filepath.Join(dir, "cr", "cr.yaml")}, content); err != nil {
		t.Fatal(err)
	}
	for _, save := range []struct{ ignored, noticed string }{
		{"cr/other.yaml", "cr/cr.yaml"}, {"roles/a/tasks/.main.yml.swp", "roles/a/tasks/main.yml"}, {"roles/a/tasks/main.yml~", "roles/a/tasks/new.yml"},
		{"roles/a/.hidden", "tree/a/b/roles/c/tasks/main.yml"}, // Of a role in a collection.
	} {
		for _, name := range []string{save.ignored, save.noticed} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if path, ok := f.changed(t.Context()); !ok || path != filepath.Join(dir, save.noticed) {
			t.Errorf("want %s, got %s", save.noticed, path)
		}
	}
}
