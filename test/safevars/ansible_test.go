package safevars

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
)

// thing is the kind that the tests' objects have.
func thing(markUnsafe bool) extravars.Options {
	return extravars.Options{
		GVK:        schema.GroupVersionKind{Group: "safe.test", Version: "v1", Kind: "Thing"},
		MarkUnsafe: markUnsafe,
	}
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
