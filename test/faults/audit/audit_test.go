package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func line(verb, agent, namespace string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","verb":%q,"userAgent":%q,"objectRef":{"resource":"plays","subresource":"status","namespace":%q,"name":"n"},"responseStatus":{"code":%d}}`+"\n", verb, agent, namespace, code)
}

func add(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for name, test := range map[string]struct {
		line string
		want bool
	}{
		"an accepted write":                    {line("patch", "ensign/1", "ns", 200), true},
		"a refused one":                        {line("patch", "ensign/1", "ns", 409), false},
		"a read":                               {line("get", "ensign/1", "ns", 200), false},
		"another's write":                      {line("patch", "kubectl/1", "ns", 200), false},
		"another namespace of a similar name":  {line("patch", "ensign/1", "ns2", 200), false},
		"one that is just being written":       {line("patch", "ensign/1", "ns", 200)[:80], false},
		"a request that is not about a object": {`{"verb":"get","requestURI":"/version","note":"ns"}` + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			add(t, path, line("patch", "ensign/1", "ns", 200)) // From before.
			log, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			add(t, path, test.line)
			var want []Write
			if test.want {
				want = []Write{{"patch", "plays", "status", "n"}}
			}
			got, err := log.Writes("ns", "ensign/")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoLog(t *testing.T) {
	log, err := Open("")
	if err != nil || log.Kept() {
		t.Errorf("got %v, %v", log, err)
	}
	if got, err := log.Writes("ns", ""); err != nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := (Log{path: filepath.Join(t.TempDir(), "gone")}).Writes("ns", ""); err == nil {
		t.Error("got no error of a log that is gone")
	}
}
