// Package docs holds the documents of the repository together: their links lead somewhere,
// nothing is hidden from the index, and the short ones stay short. It has tests alone.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// pages returns the Markdown files that are written for readers, by their paths from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "hack/*/*.md", "collections/ansible_collections/*/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no file (error %v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	return found
}

// all returns the pages, and what people read of examples, charts and of the project that init
// writes. These are not in the index of the documents.
func all(t *testing.T) map[string]string {
	t.Helper()
	found := pages(t)
	for _, pattern := range []string{"examples/*/README.md", "charts/*/templates/NOTES.txt", "internal/author/scaffold/templates/project/README.md.tmpl"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no file (error %v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimPrefix(file, root+"/")] = string(text)
		}
	}
	return found
}

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
	span  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// prose returns the page without code.
func prose(page string) string {
	return span.ReplaceAllString(fence.ReplaceAllString(page, ""), "")
}

// anchors returns the names by which a page's headings can be linked to.
func anchors(page string) []string {
	var names []string
	for line := range strings.Lines(fence.ReplaceAllString(page, "")) {
		marks, heading, ok := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if !ok || strings.Trim(marks, "#") != "" || marks == "" {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, heading))
	}
	return names
}

// brokenLinks returns the links of a page that lead nowhere within the repository.
func brokenLinks(pages map[string]string, name string) []string {
	var broken []string
	for _, match := range link.FindAllStringSubmatch(prose(pages[name]), -1) {
		target, anchor, _ := strings.Cut(match[1], "#")
		if strings.Contains(target, "://") {
			continue
		}
		path := name
		if target != "" {
			path = filepath.Join(filepath.Dir(name), target)
		}
		_, err := os.Stat(filepath.Join(root, path))
		text, read := pages[path]
		if read {
			err = nil // A page of the test of this function.
		}
		if err != nil || anchor != "" && (!read || !slices.Contains(anchors(text), anchor)) {
			broken = append(broken, match[1])
		}
	}
	return broken
}

func TestLinksLeadSomewhere(t *testing.T) {
	read := pages(t)
	for name := range read {
		if broken := brokenLinks(read, name); len(broken) > 0 {
			t.Errorf("%s: %q", name, broken)
		}
	}
}

func TestABrokenLinkIsFound(t *testing.T) {
	text := map[string]string{
		"docs/a.md": "# A, the `first` (§1)\n\n[b](b.md) [c](c.md) [to](b.md#two-words) [no](b.md#three) [me](#a-the-first-1) [go](../go.mod)\n[out](https://x.example)\n```\n[code](d.md)\n# four\n```\n[four](#four)\n",
		"docs/b.md": "## Two words\n",
	}
	if got, want := brokenLinks(text, "docs/a.md"), []string{"c.md", "b.md#three", "#four"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEachPageIsInTheIndex: a table of the index lists each page once, and the site's nav is made of these tables.
func TestEachPageIsInTheIndex(t *testing.T) {
	read, listed := pages(t), map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([^)]+)\) \|`).FindAllStringSubmatch(read["docs/README.md"], -1) {
		listed[match[1]]++
	}
	for name := range read {
		base := filepath.Base(name)
		if count := listed[base]; filepath.Dir(name) == "docs" && base != "README.md" && count != 1 {
			t.Errorf("docs/README.md lists %s in %d rows of its tables, and not in 1", base, count)
		}
	}
}

var image = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)

// TestPicturesAreDescribed: who does not see a picture reads its alt text.
func TestPicturesAreDescribed(t *testing.T) {
	shown := 0
	for name, page := range all(t) {
		for _, match := range image.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			shown++
			if strings.Count(match[1], " ") < 3 {
				t.Errorf("%s: %s has the alt text %q: say what it shows", name, match[2], match[1])
			}
		}
	}
	if shown == 0 {
		t.Error("no page has a picture")
	}
}

func TestShortPagesStayShort(t *testing.T) {
	read := pages(t)
	for name, limit := range map[string]int{"README.md": 200, "ARCHITECTURE.md": 150} {
		if lines := strings.Count(read[name], "\n"); lines > limit {
			t.Errorf("%s has %d lines, more than %d: give what it says a page below docs/, or the doc.go of its package", name, lines, limit)
		}
	}
}

// TestFiguresAreThoseOfTheBenchmark holds README's figures against the page that `make bench` writes.
func TestFiguresAreThoseOfTheBenchmark(t *testing.T) {
	read := pages(t)
	_, below, _ := strings.Cut(read["README.md"], "\n## Performance\n")
	below, _, _ = strings.Cut(below, "\n## ")
	rows := 0
	for line := range strings.Lines(below) {
		if strings.HasPrefix(line, "|") {
			rows++
			if !strings.Contains(read["hack/bench/README.md"], "\n"+line) {
				t.Errorf("hack/bench/README.md does not have README's %s", line)
			}
		}
	}
	if rows < 3 {
		t.Errorf("README has a table of %d rows below Performance", rows)
	}
}
