package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is what is declared and said in the Go files of this module.
type source struct {
	files map[string]*ast.File // By their paths from the root.
	set   *token.FileSet
	// declared has the names of a package, at the top level, of methods and of fields, by the
	// package's name: packages of one name share an entry.
	declared map[string]map[string]bool
}

func parseSource(t *testing.T) *source {
	t.Helper()
	s, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parsed reads all of it once, for all tests.
var parsed = sync.OnceValues(func() (*source, error) {
	s, dir := &source{map[string]*ast.File{}, token.NewFileSet(), map[string]map[string]bool{}}, root
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..") {
			return fs.SkipDir
		}
		if path.Ext(file) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(s.set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		s.add(strings.TrimPrefix(filepath.ToSlash(file), filepath.ToSlash(dir)+"/"), parsed)
		return nil
	})
	return s, err
})

func (s *source) add(name string, file *ast.File) {
	s.files[name] = file
	names := s.declared[file.Name.Name]
	if names == nil {
		names = map[string]bool{}
		s.declared[file.Name.Name] = names
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names[node.Name.Name] = true
			return false
		case *ast.TypeSpec:
			names[node.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range node.Names {
				names[name.Name] = true
			}
		case *ast.Field:
			for _, name := range node.Names {
				names[name.Name] = true
			}
		}
		return true
	})
}

// qualified matches "package.Name" where a comment names an exported identifier.
var qualified = regexp.MustCompile(`(^|[^\w./"-])([a-z][a-z0-9]+)\.([A-Z]\w*)`)

// lostNames returns the identifiers that the comments of a file name and that no package of this
// module with that name has. Names of packages of others, which the file imports, and of the
// file's own variables and fields are not judged.
func (s *source) lostNames(name string) []string {
	file := s.files[name]
	var foreign, lost []string
	ast.Inspect(file, func(node ast.Node) bool {
		if field, ok := node.(*ast.Field); ok {
			for _, name := range field.Names {
				foreign = append(foreign, name.Name)
			}
		}
		return true
	})
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case spec.Name != nil:
			foreign = append(foreign, spec.Name.Name)
		case !strings.HasPrefix(imported, "github.com/ensign-operator/ensign/"):
			foreign = append(foreign, path.Base(imported))
		}
	}
	for _, group := range file.Comments {
		for _, match := range qualified.FindAllStringSubmatch(group.Text(), -1) {
			names, ours := s.declared[match[2]]
			if ours && !names[match[3]] && !slices.Contains(foreign, match[2]) {
				lost = append(lost, fmt.Sprintf("line %d: %s.%s", s.set.Position(group.Pos()).Line, match[2], match[3]))
			}
		}
	}
	return lost
}

func TestIdentifiersThatCommentsNameExist(t *testing.T) {
	s := parseSource(t)
	if len(s.files) < 300 {
		t.Errorf("only %d files are read", len(s.files))
	}
	for name := range s.files {
		for _, lost := range s.lostNames(name) {
			t.Errorf("%s, %s: there is no such name", name, lost)
		}
	}
}

// tracked returns the files that git tracks, by their paths from the root.
func tracked(t *testing.T) []string {
	t.Helper()
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// named matches the path of a file where a text names one. What follows tells a path from the
// begin of an address: helm.sh/resource-policy.
var named = regexp.MustCompile("(?:^|[\\s(\"'`])((?:[\\w.-]+/)*[\\w-]+\\.(?:go|sh|py|md|tsv|yaml|yml|json|cfg|txt))(?:[^\\w/.-]|\\.?(?:\\s|$))")

// files are those of the repository, and those that a text may name though they are not there.
type files struct {
	paths []string
	tops  []string
}

func listFiles(t *testing.T) files {
	t.Helper()
	list := files{paths: tracked(t)}
	for _, file := range list.paths {
		if top := top(file); top != "" && !slices.Contains(list.tops, top) {
			list.tops = append(list.tops, top)
		}
	}
	return list
}

// top returns the directory at the root of a repository that a path begins with, "" for none; of
// pkg/ the one in it, because comments name files of Kubernetes, which has a pkg/ too.
func top(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	switch {
	case parts[0] == ".":
		return ""
	case parts[0] == "pkg":
		return strings.Join(parts[:min(2, len(parts))], "/")
	default:
		return parts[0]
	}
}

// lost returns the files of this repository that a text names and that are not there. A path is
// one of this repository if it begins with a directory at its root; a name without a directory
// is one if it is that of a program: those of data may be a user's. The text is in the file from.
func (list files) lost(from, text string) []string {
	var lost []string
	for _, match := range named.FindAllStringSubmatch(text, -1) {
		name := match[1]
		top, below := top(name), strings.Contains(name, "/")
		program := slices.Contains([]string{".go", ".sh", ".tsv"}, path.Ext(name)) && name != "pv_controller.go" // Kubernetes has it.
		placeholder := regexp.MustCompile(`/[A-Z]+\.\w+$`).MatchString(name)
		if below && !slices.Contains(list.tops, top) || !below && !program || placeholder {
			continue
		}
		if !slices.ContainsFunc(list.paths, func(file string) bool {
			return file == name || strings.HasSuffix(file, "/"+name) || file == path.Join(path.Dir(from), name)
		}) {
			lost = append(lost, name)
		}
	}
	return lost
}

func TestFilesThatCommentsNameExist(t *testing.T) {
	list, s := listFiles(t), parseSource(t)
	for name, file := range s.files {
		for _, group := range file.Comments {
			for _, lost := range list.lost(name, group.Text()) {
				t.Errorf("%s, line %d: there is no file %s", name, s.set.Position(group.Pos()).Line, lost)
			}
		}
	}
	remark := regexp.MustCompile(`(?m)(?:^|\s)#[^!\n]*`)
	for _, name := range list.paths {
		if base := path.Base(name); !slices.Contains([]string{".sh", ".py"}, path.Ext(base)) && base != "Makefile" && base != "Dockerfile" && !strings.HasPrefix(name, "config/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // It is deleted, and git is yet to be told.
		}
		for _, lost := range list.lost(name, strings.Join(remark.FindAllString(string(text), -1), "\n")) {
			t.Errorf("%s: there is no file %s", name, lost)
		}
	}
}

// ofAuthors are pages that lead through a project of the reader's own, which has its own files.
var ofAuthors = []string{"docs/tutorial.md", "docs/tutorial-mysql.md", "docs/quickstart.md"}

func TestFilesThatPagesNameExist(t *testing.T) {
	list := listFiles(t)
	for name, page := range pages(t) {
		if slices.Contains(ofAuthors, name) {
			continue
		}
		for _, piece := range code(page) {
			for _, lost := range list.lost(name, piece) {
				if strings.HasPrefix(lost, "roles/") || strings.HasPrefix(lost, "playbooks/") {
					continue // An author's.
				}
				t.Errorf("%s: `%s`: there is no file %s", name, piece, lost)
			}
		}
	}
}

// TestArchitectureNamesWhatIsThere: packages, identifiers, tests, and specs in quotation marks.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	s, list := parseSource(t), listFiles(t)
	var specs strings.Builder // What the suites are called by.
	functions := map[string]bool{}
	for name, file := range s.files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, declared := range file.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok {
				functions[function.Name.Name] = true
			}
		}
		if strings.HasPrefix(name, "test/contract/") {
			specs.WriteString(read(t, name))
		}
	}
	for name, page := range map[string]string{"ARCHITECTURE.md": read(t, "ARCHITECTURE.md"), "CONTRIBUTING.md": read(t, "CONTRIBUTING.md")} {
		for _, piece := range spans(page) {
			for _, match := range qualified.FindAllStringSubmatch(piece, -1) {
				if names, ours := s.declared[match[2]]; ours && !names[match[3]] && match[2] != "manager" {
					t.Errorf("%s: there is no %s.%s", name, match[2], match[3])
				}
			}
		}
	}
	for name, page := range pages(t) {
		for _, match := range regexp.MustCompile("`(?:[a-z/]+: )?((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(page, -1) {
			if !functions[match[1]] {
				t.Errorf("%s: there is no %s", name, match[1])
			}
		}
	}
	page := read(t, "ARCHITECTURE.md")
	for _, match := range regexp.MustCompile(`contract "(§\d+) ([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(specs.String(), match[1]+" "+match[2]) && !strings.Contains(specs.String(), match[2]) {
			t.Errorf("ARCHITECTURE.md: test/contract has no %s %s", match[1], match[2])
		}
	}
	for _, row := range firstCells(part(t, page, "| Package |", "Only `process`")) {
		directory := strings.TrimPrefix(strings.TrimPrefix(row, "…/"), "internal/")
		if !slices.ContainsFunc(list.paths, func(file string) bool { return strings.Contains("/"+file, "/"+directory+"/") }) {
			t.Errorf("ARCHITECTURE.md: there is no package %s", row)
		}
	}
	for line := range strings.Lines(part(t, page, "| What | Where |", "\n## ")) {
		_, where, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, place := range spans(where) {
			if strings.Contains(place, "/") && !slices.ContainsFunc(list.paths, func(file string) bool {
				return strings.HasPrefix(file+"/", strings.TrimSuffix(place, "/")+"/") || strings.HasPrefix(file+"/", "internal/"+place+"/")
			}) {
				t.Errorf("ARCHITECTURE.md: %s is not there", place)
			}
		}
	}
}

func TestAFileAndANameThatAreGoneAreFound(t *testing.T) {
	list := files{paths: []string{"hack/a.sh", "internal/x/y.go"}, tops: []string{"hack", "internal", "config"}}
	for text, want := range map[string][]string{
		"see y.go, hack/a.sh and x/y.go":                           nil,
		"the label helm.sh/resource-policy, roles/k.yml, main.yml": nil,
		"see gone.go.":                      {"gone.go"},
		"(config/none.yaml), \"hack/b.sh\"": {"config/none.yaml", "hack/b.sh"},
		"hack/IMAGE.txt":                    nil,
	} {
		if got := list.lost("internal/x/z.go", text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	s := &source{map[string]*ast.File{}, token.NewFileSet(), map[string]map[string]bool{}}
	for name, text := range map[string]string{
		"a.go": "package aa\n\ntype Here struct{ Field int }\n",
		"b.go": "package b\n\nimport \"example.org/cc\"\n\n// F calls aa.Here, aa.Field, aa.Gone, cc.Gone and xx.Gone.\nfunc F(xx int) {}\n\nvar _ = cc.X\n",
		"c.go": "package cc\n",
		"x.go": "package xx\n",
	} {
		file, err := parser.ParseFile(s.set, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.add(name, file)
	}
	if got, want := s.lostNames("b.go"), []string{"line 5: aa.Gone"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
