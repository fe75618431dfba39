package status_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	ours "github.com/ensign-operator/ensign/internal/controller/status"
)

const gitopsPage = "../../../docs/howto-gitops.md"

// moments are what the rows of the page's table name, each a CR with the status that reports have made of it. The
// CRD has the default of the scaffolded ones.
func moments(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	success, failure := finished(1, succeeded(), summary()), finished(1, failed(), summary())
	reported := func(generation int64, reports ...ours.Report) *unstructured.Unstructured {
		obj := object(t, `{"observedGeneration":-1}`)
		obj.SetGeneration(1)
		for _, report := range reports {
			obj = apply(t, obj, report, later)
		}
		obj.SetGeneration(generation)
		return obj
	}
	deleted := apply(t, reported(2, success), ours.Started(2, false), later) // A deletion is a new generation.
	deleted.SetDeletionTimestamp(&metav1.Time{Time: later})
	unmanaged := object(t, "")
	unmanaged.SetGeneration(1)
	return map[string]*unstructured.Unstructured{
		"new, or waits for its first slot":                   reported(1),
		"outside of the watch's selector":                    reported(1),
		"its first run is running":                           reported(1, ours.Started(1, false)),
		"succeeded":                                          reported(1, success),
		"runs again after a success":                         reported(1, success, ours.Started(1, false)),
		"`health: true`, and a child is not healthy":         reported(1, success, ours.Observed(1, &ours.Health{Known: true, Overdue: []string{"Deployment web: Available: 1/3"}})),
		"slowed down after a success":                        reported(1, success, ours.Slowed(1, "Secret a/b changed")),
		"failed, and is tried again":                         reported(1, failure),
		"runs again after a failure":                         reported(1, failure, ours.Started(1, false)),
		"failed the same way until the longest pause":        reported(1, failure, failure.Repeated(true)),
		"runs again after that":                              reported(1, failure, failure.Repeated(true), ours.Started(1, false)),
		"refused, `InvalidSpec`":                             apply(t, reported(2), refused("names that cannot be variables"), later),
		"an annotation is refused after a success":           reported(1, success, refusedAnnotation()),
		"a new generation that the manager has not seen":     reported(2, success),
		"a new generation is running, the one before failed": apply(t, reported(2, failure), ours.Started(2, false), later),
		"the run was canceled: the manager restarts":         reported(1, ours.Started(1, false), finished(1, canceled(), summary())),
		"paused after a success":                             reported(1, success, ours.Paused(1)),
		"paused before the first run":                        reported(1, ours.Paused(1)),
		"paused, with a new generation":                      apply(t, reported(2, success), ours.Paused(2), later),
		"its schema refuses the result":                      reported(1, ours.Started(1, false), ours.Unwritable(1)),
		"deleted, the finalizer runs":                        deleted,
		"`manageStatus: false`, and no content writes it":    unmanaged,
	}
}

// TestHealthInGitOps: for each moment of a CR, tools say what the table of the page says: all but Argo CD
// without configuration, Argo CD with the script of the page.
func TestHealthInGitOps(t *testing.T) {
	text, err := os.ReadFile(gitopsPage)
	if err != nil {
		t.Fatal(err)
	}
	script := snippet(t, string(text))
	said := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (\w+) \| (\w+) \| (\w+) \|$`).FindAllStringSubmatch(string(text), -1) {
		kstatus, kubectl, argo := row[2], row[3], row[4]
		for moment := range strings.SplitSeq(row[1], "; ") {
			said[moment] = []string{kstatus, kstatus, kubectl, kstatus, argo} // Helm and Flux have kstatus' words.
		}
	}
	got := map[string][]string{}
	for moment, cr := range moments(t) {
		served := serve(t, cr)
		got[moment] = []string{byKstatus(t, cr), served.byHelm(t), served.byKubectl(t), byFlux(t, cr), byArgo(t, cr, script)}
	}
	if diff := cmp.Diff(got, said); diff != "" {
		t.Errorf("tools judge otherwise than the page says (-tools +page):\n%s", diff)
	}
}

// snippet returns the Lua of the page.
func snippet(t *testing.T, page string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	var config struct{ Data map[string]string }
	var groups map[string]map[string]string
	if block == nil || yaml.Unmarshal([]byte(block[1]), &config) != nil || yaml.UnmarshalStrict([]byte(config.Data["resource.customizations"]), &groups) != nil {
		t.Fatalf("the page has no script of Argo CD: %q", block)
	}
	script := groups["example.com/*"]["health.lua"]
	if script == "" {
		t.Fatalf("the page has the scripts %v", groups)
	}
	return script
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
	if message, ok := result.RawGetString("message").(lua.LString); !ok || strings.TrimSpace(string(message)) == "" {
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
