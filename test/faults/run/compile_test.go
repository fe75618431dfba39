package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string   `json:"ImportPath"`
	Dir        string   `json:"Dir"`
	Export     string   `json:"Export"`
	GoFiles    []string `json:"GoFiles"`
}

// listPackages returns those of the module and all that they import, by their paths.
func listPackages(t *testing.T, root string) map[string]listed {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./cmd/...", "./internal/...")
	list.Dir, list.Stderr = root, os.Stderr
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[one.ImportPath] = one
	}
}

// Building all mutants takes minutes; to check the types of the packages that they change takes
// none, and finds what the compiler would refuse: a variable or an import that nothing uses.
func TestEveryMutantAppliesAndCompiles(t *testing.T) {
	root := scratch.Repository(t)
	packages := listPackages(t, root)
	byDir := map[string]listed{}
	for _, p := range packages {
		byDir[p.Dir] = p
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	for _, k := range []kind{ofPlans(), ofCharts(), ofShards(), ofJobs(), ofRuns()} {
		all, err := k.load(root, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			t.Run(k.called+"/"+m.name, func(t *testing.T) {
				replaced, err := m.apply(t.Context(), root, filepath.Join(t.TempDir(), "mutated"))
				if err != nil {
					t.Fatal(err)
				}
				changed := map[string]bool{}
				for name := range replaced {
					if filepath.Ext(name) == ".go" { // Others are Python.
						changed[filepath.Dir(name)] = true
					}
				}
				for dir := range changed {
					expectTypes(t, files, imports, byDir[dir], replaced)
				}
			})
		}
	}
}

// expectTypes checks the types of a package some of whose files are replaced.
func expectTypes(t *testing.T, files *token.FileSet, imports types.Importer, p listed, replaced map[string]string) {
	t.Helper()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if mutated := replaced[path]; mutated != "" {
			path = mutated
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	if len(parsed) == 0 {
		t.Fatalf("no package for the directory of %v", replaced)
	}
	if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, files, parsed, nil); err != nil {
		t.Error(err)
	}
}
