package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// texts calls found with each text of a Go file that is no test, and its place.
func texts(t *testing.T, path string, found func(at token.Position, text string)) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found(files.Position(literal.Pos()), text)
		}
		return true
	})
}

// TestPagesThatMessagesNameAreThere holds the pages of internal/docslink against the documents.
func TestPagesThatMessagesNameAreThere(t *testing.T) {
	all, named := pages(t), 0
	texts(t, filepath.Join(root, "internal/docslink/docslink.go"), func(at token.Position, text string) {
		page, anchor, _ := strings.Cut(text, "#")
		if !strings.HasSuffix(page, ".md") {
			return
		}
		named++
		content, found := all["docs/"+page]
		if !found || anchor != "" && !slices.Contains(anchors(content), anchor) {
			t.Errorf("%s: docs/ has no %s", at, text)
		}
	})
	if named == 0 {
		t.Error("the package names no page")
	}
}

// inRepository matches a path of this repository's documents, which is none in a user's project.
var inRepository = regexp.MustCompile(`(^|[^/\w])docs/[\w.-]+\.md\b`)

// TestMessagesNamePagesByTheirAddress finds messages that send a reader to a file that only this
// repository has.
func TestMessagesNamePagesByTheirAddress(t *testing.T) {
	for _, dir := range []string{"cmd", "internal", "collections"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || entry.IsDir():
				return err
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				texts(t, path, func(at token.Position, text string) {
					if inRepository.MatchString(text) {
						t.Errorf("%s: %q: take the page's address from internal/docslink", at, text)
					}
				})
			case strings.HasSuffix(path, ".py"):
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for number, line := range strings.Split(string(content), "\n") {
					if code, _, _ := strings.Cut(line, "#"); inRepository.MatchString(code) {
						t.Errorf("%s:%d: %s", path, number+1, line)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
