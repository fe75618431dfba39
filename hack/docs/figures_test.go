package docs

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// first returns the first group of a pattern in a file of the repository.
func first(t *testing.T, name, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(read(t, name))
	if match == nil {
		t.Fatalf("%s has nothing like %s", name, pattern)
	}
	return match[1]
}

// said returns every text in which the repository states figures: the pages, and the comments,
// values and help that people read beside them. Each is one line, without marks of comments.
func said(t *testing.T) map[string]string {
	t.Helper()
	texts := all(t)
	for _, pattern := range []string{
		"Makefile", "config/manager/*.yaml", "charts/ensign/*.yaml", "charts/ensign/templates/*.yaml", "config/manifests/*.yaml", "hack/*.sh", "hack/*/*.sh",
		"internal/author/scaffold/templates/project/config/manager/*.tmpl", "internal/cli/*.go", "internal/config/*.go",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no file (error %v)", pattern, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				name := strings.TrimPrefix(file, root+"/")
				texts[name] = read(t, name)
			}
		}
	}
	delete(texts, "docs/performance.md") // It has what was measured, with what was there then.
	marks := regexp.MustCompile(`\n\s*(?:#|//)?\s*`)
	for name, text := range texts {
		texts[name] = marks.ReplaceAllString(text, " ")
	}
	return texts
}

// TestFiguresThatStandInSeveralPlacesAreOne holds each place that says a figure against the one
// source that has it.
func TestFiguresThatStandInSeveralPlacesAreOne(t *testing.T) {
	core := first(t, "requirements.txt", `(?m)^ansible-core==(\S+)`)
	for name, figure := range map[string]struct {
		want string
		// pattern has the figure in one of its groups; at least so many places say it.
		pattern string
		places  int
	}{
		"MiB for the manager":          {first(t, "internal/config/capacity.go", `\tmanagerMemory = (\d+) << 20`), `(\d+)(?: MiB)? for the manager`, 4},
		"MiB for a run":                {first(t, "internal/config/capacity.go", `\trunMemory = (\d+) << 20`), `(\d+) MiB for each (?:live |of \w+ (?:live )?)?run|holds (\d+) MiB for each`, 5},
		"MiB for the server":           {first(t, "internal/config/capacity.go", `\twarmServerMemory = (\d+) << 20`), `(\d+)(?: MiB)? for the server`, 4},
		"GiB of a chart's run":         {strconv.Itoa(1 << (number(t, first(t, "cmd/chart-exec/main.go", `maxMemory = 1 << (\d+)`)) - 30)), `(\d+) GiB (?:of memory|for each run of a chart)`, 2},
		"Go":                           {first(t, "go.mod", `(?m)^go (\d+\.\d+)`), `\bGo (\d+\.\d+)\b|golang:(\d+\.\d+)`, 3},
		"the oldest Python":            {strings.ReplaceAll(first(t, "hack/python.sh", `version_info < \((\d+, \d+)\)`), ", ", "."), `Python (\d+\.\d+) or later`, 4},
		"the Python of the images":     {first(t, ".python-version", `(\d+\.\d+)`), `python:(\d+\.\d+)`, 2},
		"the oldest ansible-core":      {strings.ReplaceAll(first(t, "internal/ansible/pyenv/inspect.go", `minMajor, minMinor = (\d+, \d+)`), ", ", "."), `ansible-core (\d+\.\d+) (?:or|and) later|ansible-core older than (\d+\.\d+)`, 5},
		"ansible-core of the messages": {core, `messages below are from ansible-core (\S+) |this repository run on (\d+\.\d+\.\d+)`, 2},
		"ansible-core 2.19":            {first(t, "hack/python/core-2.19.in", `ansible-core==(\S+)`), `\b(2\.19\.\d+)`, 1},
		"ansible-core 2.20":            {first(t, "hack/python/core-2.20.in", `ansible-core==(\S+)`), `\b(2\.20\.\d+)`, 1},
		"ansible-core 2.21":            {core, `\b(2\.21\.\d+)`, 2},
		"ansible-runner":               {first(t, "requirements.txt", `(?m)^ansible-runner==(\S+)`), `ansible-runner (\d+\.\d+\.\d+)`, 1},
		"Jinja":                        {first(t, "requirements.txt", `(?m)^jinja2==(\S+)`), `Jinja (\d+\.\d+\.\d+)`, 1},
		"the oldest kubernetes.core":   {first(t, "internal/operator/collections.go", `minVersion += "(\S+)"`), `kubernetes\.core before (\d+\.\d+\.\d+)`, 2},
		"the same, of check":           {first(t, "internal/operator/collections.go", `minVersion += "(\S+)"`), `oldestCore = "(\S+)"`, 0},
		"Kubernetes of the real node":  {first(t, "hack/controlplane/go.mod", `k8s\.io/kubernetes v(\d+\.\d+)`), `network of Kubernetes (\d+\.\d+)`, 1},
		"Helm":                         {first(t, "hack/tools/helm/go.mod", `helm\.sh/helm/v\d+ v(\d+\.\d+)`), `runs Helm (\d+\.\d+)`, 1},
		"MB of the control plane":      {first(t, "README.md", `\((\d+) MB below`), `(\d+) MB below`, 2},
		"minutes for Kubernetes":       {first(t, "Makefile", `bin/controlplane \((\d+ to \d+) minutes`), `bin/controlplane.? \((\d+ to \d+) minutes|builds Kubernetes \((\d+ to \d+) minutes|takes (\d+ to \d+) minutes more|compile all of it in (\d+ to \d+) minutes`, 5},
		"minutes for Helm":             {first(t, "Makefile", `into bin/tools \((\d+ to \d+) minutes`), `into bin/tools \((\d+ to \d+) minutes|and Helm \((\d+ to \d+) minutes|tests: Helm \| (\d+ to \d+) min`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			pattern, places := regexp.MustCompile(figure.pattern), 0
			for name, text := range said(t) {
				for _, match := range pattern.FindAllStringSubmatch(text, -1) {
					places++
					if got := strings.Join(match[1:], ""); got != figure.want {
						t.Errorf("%s: %q, but it is %s", name, match[0], figure.want)
					}
				}
			}
			if places < figure.places {
				t.Errorf("only %d places say it", places)
			}
		})
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// measured returns the figures, in seconds, of a row of docs/performance.md: plain, cold, warm.
func measured(t *testing.T, row string) (plain, cold, warm float64) {
	t.Helper()
	match := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) s \|`).FindStringSubmatch(read(t, "docs/performance.md"))
	if match == nil {
		t.Fatalf("docs/performance.md has no row %q", row)
	}
	var figures [3]float64
	for i := range figures {
		figures[i], _ = strconv.ParseFloat(match[i+1], 64)
	}
	return figures[0], figures[1], figures[2]
}

// TestWhatIsSaidOfSpeedWasMeasured: the sentences elsewhere that say how fast runs are.
func TestWhatIsSaidOfSpeedWasMeasured(t *testing.T) {
	plain, _, warm := measured(t, "One run, nothing to change: wall time: reference (3 tasks)")
	_, coldCPU, cpu := measured(t, "One run: CPU of all its processes: reference (3 tasks)")
	_, coldMySQL, mysql := measured(t, "One run: CPU of all its processes: mysqlcluster (14 tasks)")
	light, heavy := coldCPU/cpu, coldMySQL/mysql
	rounded := math.Round(cpu*100) / 100
	hours := 10_000 * rounded / 36_000
	for page, sentences := range map[string][]string{
		"README.md":    {fmt.Sprintf("A repeated run of three tasks takes %.3f s; ansible-runner alone takes %.3f s", warm, plain)},
		"CHANGELOG.md": {fmt.Sprintf("A repeated run of three tasks takes %.3f s instead of the %.3f s of ansible-runner alone", warm, plain)},
		"docs/operations.md": {
			fmt.Sprintf("%.3f s for three tasks with an object each, %.3f s for a MySQLCluster", cpu, mysql),
			fmt.Sprintf("A cold run takes %.0f to %.0f times as much", min(light, heavy), max(light, heavy)),
			fmt.Sprintf("10,000 CRs × %.2f s ÷ 10 h = %.2f cores", rounded, hours),
			fmt.Sprintf("10,000 × %.2f s = %.0f min of one core", rounded, 10_000*rounded/60),
		},
	} {
		text := strings.Join(strings.Fields(read(t, page)), " ")
		for _, sentence := range sentences {
			if !strings.Contains(text, sentence) {
				t.Errorf("%s does not say: %s", page, sentence)
			}
		}
	}
}

// TestThisOperatorsKindsAreNamedInFull: whoever lists the kinds of this repository's operator, or
// deletes or shows all CRs, names all of them.
func TestThisOperatorsKindsAreNamedInFull(t *testing.T) {
	var kinds, plurals []string
	files, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("config/crd/bases has %d files (error %v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimPrefix(file, root+"/")
		kinds = append(kinds, first(t, name, `(?m)^    kind: (\w+)`))
		plurals = append(plurals, first(t, name, `(?m)^    plural: (\w+)`))
	}
	places := 0
	for listing, list := range map[string][]string{`(?:operator|for) \(?((?:MySQL\w+(?:, | and )){1,}MySQL\w+)`: kinds, `(?:kubectl (?:get|delete) (?:mysql\w+,)*mysql\w+ (?:--all|\{\{)[^\n]*\n?)+`: plurals, `(?:\n- \*\*MySQL[^\n]*)+`: kinds} {
		pattern := regexp.MustCompile(listing)
		for page, text := range withRaw(t) {
			for _, match := range pattern.FindAllString(text, -1) {
				places++
				for _, kind := range list {
					if !regexp.MustCompile(`\b` + kind + `\b`).MatchString(match) {
						t.Errorf("%s: %q lacks %s", page, match, kind)
					}
				}
			}
		}
	}
	if places < 5 {
		t.Errorf("only %d places list them", places)
	}
	if first(t, "hack/demo/demo.sh", `definitions=\((\S+)\)`) != "config/crd/bases/*.yaml" {
		t.Error("the tour does not take the kinds from config/crd/bases")
	}
	slices.Sort(kinds)
	watched := regexp.MustCompile(`(?m)^  kind: (MySQL\w+)`).FindAllStringSubmatch(read(t, "watches.yaml"), -1)
	if len(watched) != len(kinds) {
		t.Errorf("watches.yaml watches %d kinds, config/crd/bases has %d", len(watched), len(kinds))
	}
}

// withRaw returns the texts of said, with their lines.
func withRaw(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name := range said(t) {
		texts[name] = regexp.MustCompile(`\n +`).ReplaceAllString(read(t, name), "\n")
	}
	return texts
}
