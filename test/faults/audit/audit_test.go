package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALineThatIsBeingWrittenIsNotThereYet(t *testing.T) {
	for log, want := range map[string][]string{"": nil, "a\n": {"a"}, "a\n\nb": {"a", ""}, "b": nil} {
		var got []string
		for lines := Lines(strings.NewReader(log)); lines.Scan(); {
			got = append(got, lines.Text())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", log, diff)
		}
	}
}

func TestADryRunIsNoWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	line := func(verb, uri, namespace string, code int) string {
		return fmt.Sprintf(`{"verb":%q,"userAgent":"manager/1","requestURI":%q,"objectRef":{"namespace":%q,"resource":"configmaps","name":"a"},"responseStatus":{"code":%d}}`+"\n", verb, uri, namespace, code)
	}
	if err := os.WriteFile(path, []byte(line("create", "/a", "ns", 201)), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := line("patch", "/a?dryRun=All&force=true", "ns", 200) + line("patch", "/a", "ns", 200) + line("get", "/a", "ns", 200) + line("delete", "/a", "ns", 404) + line("patch", "/a", "other", 200)
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
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
