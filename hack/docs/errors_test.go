package docs

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const errorsPage = "docs/howto-debug.md"

// startsFrom are the files and directories whose errors end the manager at its start, or a run
// before its content, beside those of watches.yaml, which the page has in one row.
var startsFrom = []string{
	"internal/operator", "internal/ansible/backend", "internal/chart/backend", "internal/jobs/backend", "internal/leadership", "internal/runapi", "internal/observe/probes", "internal/config", "internal/chart/seal", "internal/cli/flags.go", "internal/cli/logger.go",
	"internal/ansible/pyenv/inspect.go", "internal/ansible/pyenv/canary.go", "internal/ansible/pyenv/find.go",
	"internal/ansible/extravars/snakecase.go", "internal/controller/observe.go", "internal/fence",
}

// ofEnsign are the directories whose errors end a command of ensign.
var ofEnsign = []string{
	"internal/cli/ensigncmd", "internal/author/check", "internal/author/crlog", "internal/author/fleet", "internal/author/kinds",
	"internal/author/once", "internal/author/report", "internal/author/rights", "internal/author/scaffold", "internal/author/schema",
}

// onlyBeside are messages that stand beside one that is in the page.
var onlyBeside = []string{"no %s", "%s is not executable", "the Python of %s is gone", "the canary play printed nothing", "can't be used", "runs had not ended", "(lease %s)", "became %v"}

// sayThemselves are parts of messages that say what to write, to add or to leave out, or after which there is nothing
// to do. The page does not list them.
var sayThemselves = []string{
	// The manager.
	"are the same port", "choose another, 0 switches it off", "invalid namespace name", "invalid name of a", "allowed is", "allowed are", "write a whole number from",
	"contradicts --zap-encoder", "--metrics-require-rbac needs --metrics-secure", "needs leader election (--leader-elect", "another manager of this process has its metrics there",
	"with leader election the manager needs connections of its own", "a manager needs a rest.Config", "the kind is watched already", "is neither true nor false", "invalid duration",
	"is empty or blank; give it a name", "is not valid UTF-8; give it another name",
	// Its log.
	"the next start tries again", "the verb list for leases",
	"give ensign.RunAgent its watch", "the cluster does not have these watched namespaces", "the watches file names an environment variable that is not set", "no watch has their kind",
	"OPERATOR_NAME is read as the name of the lease", "too many triggers; slowing down", "a field of the release is changed again and again",
	"an object is patched, because server-side apply refuses it", "drift detected, not repaired", "driftIgnore names fields that no object of the release has",
	"the memory limit is too low for a run", "a collection is too old for this ansible-core", "that VIRTUAL_ENV names cannot be used", "runs use the locale C.UTF-8",
	"Events are not written", "objects that the finalizer's run created will be deleted with the resource",
	"removing the finalizer although its content did not succeed", "the resource was deleted before its finalizer's content succeeded",
	// ensign.
	"is not a directory; name the one with", "give one of them", "give one directory, not", "there is no such file; name", "is not KIND/NAME, such as", "is neither KIND nor KIND/NAME",
	"--domain is missing", "--group is missing", "--repo is missing", "--chart is missing", ": write", ": leave", "--repo is the path of a Go module", "leave the flag out",
	"give --generate-role", "There is: create api", "unknown command create", "already: give --chart=", "domain and projectName are needed",
	"name resources, KIND/NAME, or give --all", "name a resource: -f FILE", "name resources (KIND/NAME), -f FILE", "and one of them alone", "which only a run can try", "its release is uninstalled", "and diff is for charts", "is not sent: it is not a dry run", ": name one resource", "and a run is for one", "-f - and --watch",
	"are for --cluster: add it", "--dry-run is for --fix: add it", "--prune is for --write", "because an audit log", "the role has no list of rules", "the rules stand between brackets",
	"there is no watches.yaml here", "no cluster is chosen", "has no dot, and the API server takes no CRD in such a group", "the groups of this project end with its domain",
	"there is no project here", "there is a project here already", "nothing was written, because these files exist", "the project has the kind", "the project has a kind",
	"does not describe the spec of", "is for content that is there", "the project would lie in the chart", "move it below charts/ or helm-charts/", "it is a link out of the project",
	"a list is needed here", "add spec to what is required", "is written in a way that this program cannot", "stands in one line", "has no schema of a spec",
	"a mapping of names to values is needed", "the file is empty", "there is no line", "nothing to do", "it is not paused", "its status shows no run",
	"it is paused: resume it", "its labels do not match the selector of the watch", "somebody has ended the pause", "somebody has paused it before the run", "none has the labels",
	"no container of the manager has restarted", "this is not a log of a manager", "which only a manager runs, because it keeps the records of releases", "the run did not succeed", "-n names another namespace",
	"the texts of the bundle are missing", "a bundle cannot have this kind", "and a bundle is for kinds", "a bundle is made of all objects of config/default", "want a role of config/rbac and one account",
	"has no finalizer", "the log has no request of such an account", "no role here is bound to a service account", "the service account has several roles",
}

// listed reports whether a row has a part of the message, or whether it says itself what to do.
func listed(message string, rows []string) bool {
	part := func(text string) bool { return strings.Contains(message, text) }
	return slices.ContainsFunc(rows, part) || slices.ContainsFunc(sayThemselves, part)
}

// messages returns the texts of errors, without those that only say where another error came from.
func (s *source) messages(dir string) []string {
	return slices.DeleteFunc(s.texts(dir, func(node ast.Node) []ast.Expr {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return nil
		}
		named, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || named.Sel.Name != "Errorf" && named.Sel.Name != "New" {
			return nil
		}
		return call.Args[:1]
	}), func(text string) bool {
		said := strings.TrimSpace(regexp.MustCompile(`%[\w.+#]*`).ReplaceAllString(text, ""))
		return strings.HasSuffix(text, "%w") && !strings.Contains(text, "program") && !strings.Contains(text, "start ansible-runner") &&
			!strings.HasPrefix(text, "listen for") && !strings.Contains(text, "has changed") || len(said) < 10 ||
			slices.ContainsFunc(onlyBeside, func(known string) bool { return strings.Contains(text, known) })
	})
}

// logged returns the warnings and the errors that the manager logs, but for those of runs, which
// docs/reference-logs.md has.
func (s *source) logged() (messages []string) {
	ofRuns := []string{"task failed", "host unreachable", "run failed"}
	dirs := map[string]bool{}
	for name := range s.files {
		if strings.HasPrefix(name, "internal/") {
			dirs[path.Dir(name)] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		messages = append(messages, s.literals(dir, "WARNING: .+")...)
		messages = append(messages, s.texts(dir, func(node ast.Node) []ast.Expr {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return nil
			}
			if named, ok := call.Fun.(*ast.SelectorExpr); !ok || named.Sel.Name != "Error" || fmt.Sprint(named.X) == "http" {
				return nil
			}
			return call.Args[1:2]
		})...)
	}
	return without(messages, ofRuns...)
}

// TestEachErrorIsInTheIndex: who searches the page for what is shown finds it, unless it says itself
// what to do, and what the page has is shown.
func TestEachErrorIsInTheIndex(t *testing.T) {
	s, page := parseSource(t), read(t, errorsPage)
	vocabulary := func(section string, code, harmless []string) {
		said := firstCells(part(t, page, "\n## "+section+"\n", "\n## "))
		for _, word := range code {
			if !slices.Contains(said, word) && !slices.Contains(harmless, word) {
				t.Errorf("%s: %q is not in %s", section, word, errorsPage)
			}
		}
		for _, word := range said {
			if !slices.Contains(code, word) && !s.says(word) {
				t.Errorf("%s: the code has no %q", section, word)
			}
		}
	}
	fromCode := slices.Concat(
		s.typed("pkg/content", "Reason"), s.typed("internal/ansible/jobevent", "Reason"), s.typed("internal/chart/runner", "Reason"),
		s.typed("internal/chart/values", "Reason"), s.constants("internal/controller/status", "Reason[A-Z].*"),
		s.literals("internal/chart/engine", "(Install|Upgrade|Uninstall|Reconcile)(Error|Successful)|NotCompared|Initialized"),
	)
	vocabulary("Reasons of conditions", fromCode,
		[]string{"Successful", "Running", "Initialized", "InstallSuccessful", "UpgradeSuccessful", "UninstallSuccessful"})
	vocabulary("Events", append(s.constants("internal/controller", "event[A-Z].*"), s.constants("internal/chart/engine", "event[A-Z].*")...), []string{"Reconcile"})

	section := func(name string) []string { return firstCells(part(t, page, "\n## "+name+"\n", "\n## ")) }
	indexed := func(section string, rows []string, dirs []string) {
		for _, place := range dirs {
			for _, message := range s.messages(place) {
				if !listed(message, rows) {
					t.Errorf("%s: no row of %s has a part of %q", place, section, message)
				}
			}
		}
	}
	refused := append(section("The manager does not start"), section("A run is refused or ended")...)
	indexed("the manager", refused, startsFrom)
	ensign := section("Messages of `ensign`")
	indexed("ensign", ensign, ofEnsign)

	logged := section("Warnings and errors in the log")
	for _, message := range s.logged() {
		if !listed(message, logged) {
			t.Errorf("no row has a part of what is logged: %q", message)
		}
	}
	for _, text := range slices.Concat(refused, ensign, logged, sayThemselves) {
		if !strings.Contains(text, "LINE") && !s.says(text) {
			t.Errorf("no program says %q", text)
		}
	}
}

// says reports whether a text of a program, which is no test, contains the words.
func (s *source) says(words string) bool {
	for name, file := range s.files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		found := false
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				found = found || err == nil && strings.Contains(text, words)
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
