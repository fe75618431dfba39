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

	"sigs.k8s.io/yaml"
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
	delete(texts, "hack/bench/README.md") // It has what was measured, with what was there then.
	marks := regexp.MustCompile(`\n\s*(?:#|//)?\s*`)
	for name, text := range texts {
		texts[name] = marks.ReplaceAllString(text, " ")
	}
	return texts
}

// figure is an entry of figures.yaml, which explains it.
type figure struct {
	Name, Value, Source, At, Said string
	Places                        int
}

// want returns the figure, in the form in which the documents write it.
func (f figure) want(t *testing.T) string {
	t.Helper()
	if f.Source == "" {
		return f.Value
	}
	match := regexp.MustCompile(f.At).FindStringSubmatch(read(t, f.Source))
	switch {
	case match == nil:
		t.Fatalf("%s has nothing like %s", f.Source, f.At)
	case f.Value != "":
		return f.Value
	}
	return strings.ReplaceAll(match[1], ", ", ".") // A version as a tuple.
}

// wrong returns the places that say another figure, and the number of all places.
func (f figure) wrong(want string, texts map[string]string) (wrong []string, places int) {
	pattern := regexp.MustCompile(f.Said)
	for name, text := range texts {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			places++
			if got := strings.Join(match[1:], ""); got != want {
				wrong = append(wrong, fmt.Sprintf("%s: %q, but it is %s", name, match[0], want))
			}
		}
	}
	return wrong, places
}

// TestFiguresThatStandInSeveralPlacesAreOne holds each place that says a figure of figures.yaml
// against the one source that has it.
func TestFiguresThatStandInSeveralPlacesAreOne(t *testing.T) {
	var figures []figure
	if err := yaml.UnmarshalStrict([]byte(read(t, "hack/docs/figures.yaml")), &figures); err != nil {
		t.Fatal(err)
	}
	texts := said(t)
	for _, f := range figures {
		t.Run(f.Name, func(t *testing.T) {
			wrong, places := f.wrong(f.want(t), texts)
			for _, place := range wrong {
				t.Error(place)
			}
			if places < f.Places {
				t.Errorf("only %d places say it", places)
			}
		})
	}
}

func TestAWrongFigureIsFound(t *testing.T) {
	f := figure{Said: `(\d+) MiB for each run|holds (\d+) MiB`}
	wrong, places := f.wrong("160", map[string]string{"a.md": "160 MiB for each run, and it holds 128 MiB"})
	if want := []string{`a.md: "holds 128 MiB", but it is 160`}; !slices.Equal(wrong, want) || places != 2 {
		t.Errorf("got %q of %d places, want %q of 2", wrong, places, want)
	}
}

// measured returns the figures, in seconds, of a row of hack/bench/README.md: plain, cold, warm.
func measured(t *testing.T, row string) (plain, cold, warm float64) {
	t.Helper()
	match := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) s \|`).FindStringSubmatch(read(t, "hack/bench/README.md"))
	if match == nil {
		t.Fatalf("hack/bench/README.md has no row %q", row)
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
	_, coldNothing, nothing := measured(t, "One run: CPU of all its processes: nothing (1 task)")
	times := []float64{coldNothing / nothing, coldCPU / cpu, coldMySQL / mysql}
	rounded := math.Round(cpu*100) / 100
	hours := 10_000 * rounded / 36_000
	for page, sentences := range map[string][]string{
		"README.md":    {fmt.Sprintf("A repeated run of three tasks takes %.3f s; ansible-runner alone takes %.3f s", warm, plain)},
		"CHANGELOG.md": {fmt.Sprintf("A repeated run of three tasks takes %.3f s instead of the %.3f s of ansible-runner alone", warm, plain)},
		"docs/howto-shards.md": {
			fmt.Sprintf("%.3f s for three tasks with an object each, %.3f s for a MySQLCluster", cpu, mysql),
			fmt.Sprintf("A cold run takes %.0f to %.0f times as much", slices.Min(times), slices.Max(times)),
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

// TestFiguresOfTheComparisonWereMeasured: each figure with a unit stands in the page or the example that measured it.
func TestFiguresOfTheComparisonWereMeasured(t *testing.T) {
	sources := read(t, "hack/bench/README.md") + read(t, "examples/visitors/README.md")
	figures := regexp.MustCompile(`\b\d+(?:\.\d+)? (?:s|ms|MiB)\b`).FindAllString(read(t, "docs/explanation-comparison.md"), -1)
	for _, figure := range figures {
		if figure != "100 ms" && !strings.Contains(sources, " "+figure) { // That is a limit in round numbers.
			t.Errorf("docs/explanation-comparison.md says %s, which was not measured", figure)
		}
	}
	if len(figures) < 10 {
		t.Errorf("it has %d figures only", len(figures))
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
	if places < 4 {
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
