package probes

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestAProbeNamesTheFailingCheck(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	var missing error
	p := New(log, "/healthz", "readyz").Readyz
	p.Checks["proxy"] = func(*http.Request) error { return nil }
	p.Checks["cache Note.test"] = func(*http.Request) error { return missing }
	ask := func(path, check string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.SetPathValue("check", check)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, test := range []struct {
		why, path, check string
		missing          error
		wantCode         int
		want             string
	}{
		{"all is well", "/readyz", "", nil, 200, "ok"},
		{"all is well, in words", "/readyz?verbose", "", nil, 200, "[+]cache Note.test ok\n[+]proxy ok\nreadyz check passed\n"},
		{"one fails", "/readyz", "", errors.New("not filled yet"), 500, "[-]cache Note.test failed: not filled yet\n[+]proxy ok\nreadyz check failed\n"},
		{"it fails again", "/readyz", "", errors.New("not filled yet"), 500, "[-]cache Note.test failed: not filled yet\n[+]proxy ok\nreadyz check failed\n"},
		{"another one is asked alone", "/readyz/proxy", "proxy", errors.New("not filled yet"), 200, "ok"},
		{"one that nobody knows", "/readyz/x", "x", nil, 404, "404 page not found\n"},
		{"all is well again", "/readyz", "", nil, 200, "ok"},
	} {
		missing = test.missing
		if code, said := ask(test.path, test.check); code != test.wantCode || said != test.want {
			t.Errorf("%s: want %d and %q, got %d and %q", test.why, test.wantCode, test.want, code, said)
		}
	}
	want := []string{
		`"level"=0 "msg"="the probe fails" "probe"="readyz" "failing"="cache Note.test: not filled yet"`,
		`"level"=0 "msg"="the probe succeeds again" "probe"="readyz"`,
	}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Error(diff)
	}
}
