package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A line that is being written is not there yet, a dry run is no write, and nobody asks for
// what was refused, comes of others, or stands before the place.
func TestWrites(t *testing.T) {
	line := func(verb, uri, namespace string, code int) string {
		return fmt.Sprintf(`{"verb":%q,"userAgent":"manager/1","requestURI":%q,"responseStatus":{"code":%d},`+
			`"objectRef":{"namespace":%q,"resource":"configmaps","name":"a"}}`+"\n", verb, uri, code, namespace)
	}
	before := line("create", "/a", "ns", 201)
	text := before + line("patch", "/a?dryRun=All&force=true", "ns", 200) + line("patch", "/a", "ns", 200) +
		line("get", "/a", "ns", 200) + line("delete", "/a", "ns", 404) + line("patch", "/a", "other", 200) +
		`{"verb":"patch","objectRef":{"namespace":"ns"`
	log := Log{filepath.Join(t.TempDir(), "audit.log"), int64(len(before))}
	if err := os.WriteFile(log.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	writes, err := log.Writes("ns", "manager/")
	if diff := cmp.Diff([]Write{{"patch", "configmaps", "", "a"}}, writes); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if writes, err := log.Writes("ns", "other/"); len(writes) > 0 || err != nil {
		t.Errorf("another client wrote %v, %v", writes, err)
	}
	if dry, err := log.DryRuns("ns"); dry != 1 || err != nil {
		t.Errorf("got %d dry runs, %v", dry, err)
	}
}
