package status_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	ours "github.com/ensign-operator/ensign/internal/controller/status"
)

const gitopsPage = "../../../docs/howto-gitops.md"

// moments are the rows of the page's table, each a CR with the status that reports have made of it.
func moments(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	success, failure := finished(1, succeeded(), summary()), finished(1, failed(), summary())
	paused, unwritable := ours.Paused(2), ours.Unwritable(1)
	reported := func(generation int64, reports ...ours.Report) *unstructured.Unstructured {
		obj := object(t, "")
		obj.SetGeneration(1)
		for _, report := range reports {
			obj = apply(t, obj, report, later)
		}
		obj.SetGeneration(generation)
		return obj
	}
	deleted := reported(1, success, ours.Started(1, true))
	deleted.SetDeletionTimestamp(&metav1.Time{Time: later})
	second := reported(2, failure)
	return map[string]*unstructured.Unstructured{
		"new, without a status":                              reported(1),
		"its first run is running":                           reported(1, ours.Started(1, false)),
		"succeeded":                                          reported(1, success),
		"runs again after a success":                         reported(1, success, ours.Started(1, true)),
		"failed":                                             reported(1, failure),
		"runs again after a failure":                         reported(1, failure, ours.Started(1, true)),
		"refused, `InvalidSpec`":                             apply(t, reported(2), refused("names that cannot be variables"), later),
		"a new generation that the manager has not seen":     reported(2, success),
		"a new generation is running, the one before failed": apply(t, second, ours.Started(2, false), later),
		"the run was canceled: the manager restarts":         reported(1, ours.Started(1, false), finished(1, canceled(), summary())),
		"paused after a success":                             reported(1, success, ours.Paused(1)),
		"paused, with a new generation":                      apply(t, reported(2, success), paused, later),
		"its schema refuses the result":                      reported(1, ours.Started(1, false), unwritable),
		"deleted, the finalizer runs":                        deleted,
	}
}

// TestHealthInGitOps: for each moment of a CR, tools say what the table of the page says, with the
// snippets of that page.
func TestHealthInGitOps(t *testing.T) {
	text, err := os.ReadFile(gitopsPage)
	if err != nil {
		t.Fatal(err)
	}
	script, expressions := snippets(t, string(text))
	said := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (\w+) \| (\w+) \| (\w+) \|$`).FindAllStringSubmatch(string(text), -1) {
		said[row[1]] = row[2:]
	}
	got := map[string][]string{}
	for moment, cr := range moments(t) {
		got[moment] = []string{byKstatus(t, cr), byFlux(t, cr, expressions), byArgo(t, cr, script)}
	}
	delete(said, "The CR") // The table's head.
	if diff := cmp.Diff(got, said); diff != "" {
		t.Errorf("tools judge otherwise than the page says (-tools +page):\n%s", diff)
	}
}

// snippets returns the Lua and the expressions of the page.
func snippets(t *testing.T, page string) (script string, expressions map[string]string) {
	t.Helper()
	var objects []map[string]any
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(block[1]), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	if len(objects) != 2 {
		t.Fatalf("the page has %d snippets of YAML", len(objects))
	}
	script, _, _ = unstructured.NestedString(objects[0], "data", "resource.customizations.health.example.com_Hello")
	checks, _, _ := unstructured.NestedSlice(objects[1], "spec", "healthCheckExprs")
	if script == "" || len(checks) != 1 {
		t.Fatalf("the page has %d expressions and the script %q", len(checks), script)
	}
	expressions = map[string]string{}
	for key, value := range checks[0].(map[string]any) {
		expressions[key] = value.(string)
	}
	return script, expressions
}

func byKstatus(t *testing.T, cr *unstructured.Unstructured) string {
	t.Helper()
	result, err := status.Compute(cr)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Status)
}

// byFlux judges as Flux does: the generation first, then the expressions in the order of its RFC
// 0009; an error, as for a field that is not there, lets it wait.
func byFlux(t *testing.T, cr *unstructured.Unstructured, expressions map[string]string) string {
	t.Helper()
	observed, found, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	if found && observed != cr.GetGeneration() {
		return "InProgress"
	}
	for _, state := range []struct{ key, name string }{{"inProgress", "InProgress"}, {"failed", "Failed"}, {"current", "Current"}} {
		if expressions[state.key] == "" {
			continue
		}
		holds, err := evaluate(t, expressions[state.key], cr.Object)
		switch {
		case err != nil:
			return "waits"
		case holds:
			return state.name
		}
	}
	return "InProgress"
}

func evaluate(t *testing.T, expression string, data map[string]any) (bool, error) {
	t.Helper()
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.ContextEval(context.Background(), data)
	if err != nil {
		if !strings.Contains(err.Error(), "no such") {
			t.Fatal(err)
		}
		return false, err
	}
	holds, ok := value.Value().(bool)
	if !ok {
		return false, errors.New("no boolean")
	}
	return holds, nil
}

// byArgo judges as Argo CD does: of an object that is being deleted by itself, of others by the
// script, which has the object as obj and no library but the base.
func byArgo(t *testing.T, cr *unstructured.Unstructured, script string) string {
	t.Helper()
	if cr.GetDeletionTimestamp() != nil {
		return "Progressing"
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state.SetContext(ctx)
	if err := state.CallByParam(lua.P{Fn: state.NewFunction(lua.OpenBase), Protect: true}, lua.LString(lua.BaseLibName)); err != nil {
		t.Fatal(err)
	}
	state.SetGlobal("obj", toLua(state, cr.Object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", state.Get(-1))
	}
	if message, ok := result.RawGetString("message").(lua.LString); !ok || message == "" {
		t.Errorf("the script returns no message for %v", cr.Object["status"])
	}
	return result.RawGetString("status").String()
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, member := range value {
			table.RawSetString(key, toLua(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, member := range value {
			table.Append(toLua(state, member))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
