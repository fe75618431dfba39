package safevars

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/extravars"
)

// thing is the kind that the tests' objects have.
func thing(markUnsafe bool) extravars.Options {
	return extravars.Options{
		GVK:        schema.GroupVersionKind{Group: "safe.test", Version: "v1", Kind: "Thing"},
		MarkUnsafe: markUnsafe,
	}
}

// program is the path of a program of the tree's Python environment.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("the tests do not run inside the tree")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, ".venv", "bin", name)
	if !exists(path) {
		t.Fatalf("%s is missing; run hack/python.sh", path)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func encode(t *testing.T, object map[string]any, o extravars.Options) []byte {
	t.Helper()
	vars, err := extravars.Build(object, o)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	text, err := vars.Encode()
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return text
}
