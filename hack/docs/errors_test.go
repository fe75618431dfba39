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
	"internal/operator", "internal/config", "internal/chart/seal", "internal/cli/flags.go", "internal/cli/logger.go",
	"internal/ansible/pyenv/inspect.go", "internal/ansible/pyenv/canary.go", "internal/ansible/pyenv/find.go",
	"internal/ansible/extravars/snakecase.go", "internal/controller/settings.go", "internal/fence",
}

// ofEnsign are the directories whose errors end a command of ensign.
var ofEnsign = []string{
	"internal/cli/ensigncmd", "internal/author/check", "internal/author/crlog", "internal/author/fleet", "internal/author/kinds",
	"internal/author/once", "internal/author/report", "internal/author/rights", "internal/author/scaffold", "internal/author/schema",
}

// onlyBeside are messages that stand beside one that is in the page.
var onlyBeside = []string{"no %s", "%s is not executable", "the Python of %s is gone", "the canary play printed nothing", "can't be used", "runs had not ended", "(lease %s)", "became %v"}

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

// TestEachErrorIsInTheIndex: who searches the page for what is shown finds it, and what the page
// has is shown.
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
				if !slices.ContainsFunc(rows, func(text string) bool { return strings.Contains(message, text) }) {
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
		if !slices.ContainsFunc(logged, func(text string) bool { return strings.Contains(message, text) }) {
			t.Errorf("no row has a part of what is logged: %q", message)
		}
	}
	for _, text := range slices.Concat(refused, ensign, logged) {
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
