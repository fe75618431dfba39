package docs

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/watches"
)

// literals returns the values of the string literals of the Go files of a directory that match a
// pattern, without those of tests. With a file's name it looks at that file alone.
func (s *source) literals(dir, pattern string) []string {
	wanted := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return s.texts(dir, func(node ast.Node) []ast.Expr {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && wanted.MatchString(text) {
				return []ast.Expr{literal}
			}
		}
		return nil
	})
}

// constants returns the values of the constants of a directory whose names match a pattern.
func (s *source) constants(dir, pattern string) []string {
	wanted := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return s.texts(dir, func(node ast.Node) []ast.Expr {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !wanted.MatchString(spec.Names[0].Name) {
			return nil
		}
		return spec.Values
	})
}

// typed returns the values of the constants of a directory that have a type of this name.
func (s *source) typed(dir, name string) []string {
	return s.texts(dir, func(node ast.Node) []ast.Expr {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			return nil
		}
		if named, ok := spec.Type.(*ast.Ident); ok && named.Name == name {
			return spec.Values
		}
		if named, ok := spec.Type.(*ast.SelectorExpr); ok && named.Sel.Name == name {
			return spec.Values
		}
		return nil
	})
}

// returned returns the texts that functions of a directory return as they stand.
func (s *source) returned(dir, function string) []string {
	wanted := regexp.MustCompile(`^(?:` + function + `)$`)
	return s.texts(dir, func(node ast.Node) []ast.Expr {
		declared, ok := node.(*ast.FuncDecl)
		if !ok || !wanted.MatchString(declared.Name.Name) {
			return nil
		}
		var values []ast.Expr
		ast.Inspect(declared, func(node ast.Node) bool {
			if result, ok := node.(*ast.ReturnStmt); ok {
				for _, value := range result.Results {
					values = append(values, value)
					if call, ok := value.(*ast.CallExpr); ok {
						values = append(values, call.Args...)
					}
				}
			}
			return true
		})
		return values
	})
}

func (s *source) texts(dir string, choose func(ast.Node) []ast.Expr) []string {
	var found []string
	for name, file := range s.files {
		if path.Dir(name) != dir && name != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			for _, value := range choose(node) {
				literal, ok := value.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && text != "" && !slices.Contains(found, text) {
					found = append(found, strings.TrimSpace(text))
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return found
}

// part returns what stands in a page from a text up to another one.
func part(t *testing.T, page, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut("\n"+page, from)
	if !ok {
		t.Fatalf("the page has no %q", from)
	}
	rest, _, _ = strings.Cut(rest, to)
	return rest
}

func without(words []string, others ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(others, word) })
}

// firstCells returns the code in the first column of the tables of a text.
func firstCells(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		if row, ok := strings.CutPrefix(line, "|"); ok {
			cell, _, _ := strings.Cut(row, "|")
			words = append(words, spans(cell)...)
		}
	}
	return words
}

func matches(text, pattern string) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return words
}

func spans(text string) []string {
	var words []string
	for _, found := range span.FindAllString(text, -1) {
		words = append(words, strings.Trim(found, "`"))
	}
	return words
}

// columns returns the words in the first column of a table that are in capital letters.
func columns(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		if match := regexp.MustCompile(`^\| ([A-Z]+) \|`).FindStringSubmatch(line); match != nil {
			words = append(words, match[1])
		}
	}
	return words
}

// TestWordsOfTheProgramAreThoseOfThePages holds the vocabularies of the code and of the pages
// against each other: outcomes, reasons, causes, events, columns, metrics, findings.
func TestWordsOfTheProgramAreThoseOfThePages(t *testing.T) {
	s, page := parseSource(t), pages(t)
	for name, vocabulary := range map[string]struct {
		code []string
		// said is what a page names; each word of the code has to be in it.
		said []string
		// also are words that the page names beside those of the code.
		also []string
		// loose is a vocabulary of which the page may name more than the code says by itself.
		loose bool
	}{
		"outcomes in docs/howto-operate.md": {
			code: s.typed("internal/author/fleet", "Outcome"),
			said: spans(part(t, page["docs/howto-operate.md"], "\n| OUTCOME |", "\n")),
			also: []string{"selector", "manageStatus: false", "--watch"},
		},
		"columns in docs/howto-operate.md": {
			code: without(s.literals("internal/author/fleet/table.go", "[A-Z]{3,}"), "KIND", "NAMESPACE", "NAME"),
			said: columns(part(t, page["docs/howto-operate.md"], "\n## Outcomes", "\n## ")),
		},
		"causes of a run in docs/reference-triggers.md": {
			code: append(s.constants("internal/controller", "cause[A-Z].*"), s.returned("internal/controller", "cause|firstCause|laterCause|rerunCause")...),
			said: spans(strings.ReplaceAll(part(t, page["docs/reference-triggers.md"], "\nThe log line", "\n\n"), "\n", " ")),
			also: []string{"run started", "finalizer run started", "manageStatus: false"},
		},
		"reasons of cold runs in docs/warm-runs.md": {
			code:  s.constants("internal/ansible/warm", "reason[A-Z].*"),
			said:  firstCells(part(t, page["docs/warm-runs.md"], "\n## Reasons for a cold start", "\n## ")),
			loose: true,
		},
		"messages about runs in docs/reference-logs.md": {
			code:  s.literals("internal/observe/eventlog/eventlog.go", "(?:finalizer )?run [a-z]+|task|task failed.*|host unreachable|item"),
			said:  spans(part(t, page["docs/reference-logs.md"], "\n## Lines", "\n## ")),
			loose: true,
		},
		"metrics in docs/reference-metrics.md": {
			code:  append(s.literals("internal/observe/metrics", "(ansible|ensign)_operator_[a-z_]+[a-z]"), s.literals("internal/operator", "(ansible|ensign)_operator_[a-z_]+[a-z]")...),
			said:  strings.FieldsFunc(strings.Join(firstCells(part(t, page["docs/reference-metrics.md"], "\n## Metrics\n", "\n## ")), " "), func(r rune) bool { return !(r == '_' || r >= 'a' && r <= 'z') }),
			loose: true,
		},
		"annotations in docs/reference-annotations.md": {
			code: annotations(watches.Watch{}, watches.Watch{Chart: &watches.Chart{}}),
			said: firstCells(page["docs/reference-annotations.md"]),
			also: []string{watches.AnsibleAnnotations + "…", watches.ChartAnnotations + "…"},
		},
		"variables in docs/reference-environment.md": {
			code:  matches(read(t, "internal/cli/help.go"), `(?m)^  ([A-Z][A-Z_]{3,}(?:<KIND>_<GROUP>)?)`),
			said:  firstCells(part(t, page["docs/reference-environment.md"], "\n## Variables that the manager reads", "\n## ")),
			loose: true,
		},
		"alerts in docs/howto-debug.md": {
			code: matches(read(t, "config/prometheus/rules.yaml"), `alert: (\w+)`),
			said: matches(part(t, page["docs/howto-debug.md"], "\n## Alerts", "\n## "), `(?m)^### (\w+)`),
		},
		"findings in docs/howto-check.md": {
			code:  s.findings(),
			said:  firstCells(page["docs/howto-check.md"]),
			loose: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if len(vocabulary.code) < 2 {
				t.Fatalf("the code has only %q", vocabulary.code)
			}
			for _, word := range vocabulary.code {
				if !slices.ContainsFunc(vocabulary.said, func(said string) bool {
					return said == word || strings.HasPrefix(said, word+" ") || strings.HasPrefix(said, word+"=")
				}) {
					t.Errorf("the page does not name %q of the code", word)
				}
			}
			for _, said := range vocabulary.said {
				if !vocabulary.loose && !slices.Contains(vocabulary.also, said) &&
					!slices.ContainsFunc(vocabulary.code, func(word string) bool { return said == word || strings.HasPrefix(said, word+" ") }) {
					t.Errorf("the code has no %q, which the page names", said)
				}
			}
		})
	}
}

// annotations returns the names of the annotations that CRs of the watches have, without prefix.
func annotations(all ...watches.Watch) []string {
	var names []string
	for _, watch := range all {
		for _, name := range watch.Annotations() {
			names = append(names, strings.TrimPrefix(name, watch.AnnotationPrefix()))
		}
	}
	return names
}

// findings returns the IDs of the findings of check: the first field of a finding, or its id.
func (s *source) findings() []string {
	return s.texts("internal/author/check", func(node ast.Node) []ast.Expr {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return nil
		}
		if named, ok := literal.Type.(*ast.Ident); !ok || named.Name != "finding" {
			return nil
		}
		for _, element := range literal.Elts {
			pair, keyed := element.(*ast.KeyValueExpr)
			if !keyed {
				return literal.Elts[:1]
			}
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "id" {
				return []ast.Expr{pair.Value}
			}
		}
		return nil
	})
}

// TestReasonsOfColdRunsExist: each reason in the tables of docs/warm-runs.md stands in the code
// that gives it, which is partly in Python.
func TestReasonsOfColdRunsExist(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "internal/ansible/warm"), func(file string, _ os.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".go" && path.Ext(file) != ".py" || strings.Contains(file, "test") {
			return err
		}
		text, err := os.ReadFile(file)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range firstCells(part(t, pages(t)["docs/warm-runs.md"], "\n## Reasons for a cold start", "\n## ")) {
		if !strings.Contains(code.String(), `"`+reason+`"`) {
			t.Errorf("no reason is %q", reason)
		}
	}
}

// TestCausesInExamplesExist: the cause of a run that an example of the log shows is one of the code.
func TestCausesInExamplesExist(t *testing.T) {
	s := parseSource(t)
	causes := append(s.constants("internal/controller", "cause[A-Z].*"), s.returned("internal/controller", "cause|firstCause|laterCause|rerunCause")...)
	shown := 0
	for name, page := range all(t) {
		for _, match := range regexp.MustCompile(`run of \S+, Kind=\w+, generation \d+: (.+)`).FindAllStringSubmatch(page, -1) {
			shown++
			if !slices.ContainsFunc(causes, func(cause string) bool { return match[1] == cause || strings.HasPrefix(match[1], cause+" ") }) {
				t.Errorf("%s: no run starts because of %q", name, match[1])
			}
		}
	}
	if shown < 2 {
		t.Errorf("only %d examples", shown)
	}
}
