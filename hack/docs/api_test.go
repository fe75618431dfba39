package docs

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	updateAPI  = flag.Bool("update-api", false, "write what the packages for programs export")
	blankLines = regexp.MustCompile(`\n\n+`)
)

// TestTheAPIChangesOnPurpose compares what the packages for programs export with a list.
func TestTheAPIChangesOnPurpose(t *testing.T) {
	var api strings.Builder
	for _, name := range []string{"pkg/content", "pkg/ensign", "pkg/options"} {
		api.WriteString("# " + name + "\n")
		exported(t, filepath.Join(root, name), &api)
	}
	found := blankLines.ReplaceAllString(api.String(), "\n") // Comments leave them.
	const list = "testdata/api.txt"
	if *updateAPI {
		if err := os.WriteFile(list, []byte(found), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(known), "\n"), strings.Split(found, "\n")); diff != "" {
		t.Errorf("programs see another API; if that is meant, say so in CHANGELOG.md, and run go test ./hack/docs -update-api (-list +code):\n%s", diff)
	}
}

// exported prints the declarations that a package exports, without comments, in the order of files.
func exported(t *testing.T, dir string, into *strings.Builder) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				function.Body = nil
			}
			if imports, ok := declaration.(*ast.GenDecl); ok && imports.Tok == token.IMPORT {
				continue
			}
			if err := printer.Fprint(into, set, declaration); err != nil {
				t.Fatal(err)
			}
			into.WriteString("\n")
		}
	}
}
