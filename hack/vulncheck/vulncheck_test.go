// Package vulncheck tests the search for known vulnerabilities, with databases of its own.
package vulncheck

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goEntry is a vulnerability in OSV's format (https://ossf.github.io/osv-schema), with Go's ecosystem_specific.
const goEntry = `{"schema_version": "1.3.1", "id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
"summary": "Made up", "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2026-9999"}, "affected": [{"package": {"name": "stdlib", "ecosystem": "Go"},
"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}], "ecosystem_specific": {"imports": [{"path": "PACKAGE", "symbols": ["SYMBOL"]}]}}]}`

func TestVulncheck(t *testing.T) {
	for name, test := range map[string]struct {
		// called is a function of the standard library with a vulnerability; vulnerable a Python package.
		called, vulnerable string
		away               bool
		code               int
		output             string
	}{
		"nothing known":                   {called: "net/http.Get"},
		"a function that the code calls":  {called: "strings.ToLower", code: 1, output: "GO-2026-9999"},
		"a Python package":                {called: "net/http.Get", vulnerable: "pyyaml", code: 1, output: "MADE-UP-1"},
		"a database that does not answer": {called: "net/http.Get", away: true, code: 2, output: "GOVULNDB and OSV_URL name mirrors"},
		"a finding and a silent database": {called: "strings.ToLower", away: true, code: 2, output: "GO-2026-9999"},
	} {
		t.Run(name, func(t *testing.T) {
			osv := httptest.NewServer(osvService(t, test.vulnerable))
			defer osv.Close()
			if test.away {
				osv.Close()
			}
			command := exec.Command("./vulncheck.sh", "./internal/suggest")
			command.Env = append(os.Environ(), "GOVULNDB=file://"+goDatabase(t, test.called), "OSV_URL="+osv.URL, "UV_HTTP_RETRIES=0")
			out, err := command.CombinedOutput()
			if code := command.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.output) {
				t.Errorf("got exit code %d, want %d and %q in the output (%v):\n%s", code, test.code, test.output, err, out)
			}
		})
	}
}

// goDatabase returns a directory with one vulnerability, of a function such as net/http.Get.
func goDatabase(t *testing.T, function string) string {
	t.Helper()
	dir := t.TempDir()
	at := strings.LastIndex(function, ".")
	entry := strings.NewReplacer("PACKAGE", function[:at], "SYMBOL", function[at+1:]).Replace(goEntry)
	if err := os.WriteFile(filepath.Join(dir, "GO-2026-9999.json"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// osvService answers as https://google.github.io/osv.dev/api says, with a vulnerability of one package.
func osvService(t *testing.T, vulnerable string) http.Handler {
	t.Helper()
	type object = map[string]any
	known := object{"id": "MADE-UP-1", "modified": "2026-01-01T00:00:00Z"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/querybatch", func(w http.ResponseWriter, r *http.Request) {
		var batch struct {
			Queries []struct {
				Package struct {
					Name string `json:"name"`
				} `json:"package"`
			} `json:"queries"`
		}
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			t.Error(err)
		}
		results := []object{}
		for _, query := range batch.Queries {
			result := object{}
			if query.Package.Name == vulnerable {
				result["vulns"] = []object{known}
			}
			results = append(results, result)
		}
		_ = json.NewEncoder(w).Encode(object{"results": results})
	})
	mux.HandleFunc("GET /v1/vulns/MADE-UP-1", func(w http.ResponseWriter, _ *http.Request) {
		known["affected"] = []object{{"package": object{"ecosystem": "PyPI", "name": vulnerable}}}
		_ = json.NewEncoder(w).Encode(known)
	})
	return mux
}
