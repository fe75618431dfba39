package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// What a run of a chart reports to the manager is for its own CR alone. Other runs report nothing: their
// requests go to the API server, which does not serve the path.
func TestReportsOfRunsAreForTheManager(t *testing.T) {
	b := newBackend(t)
	var reports []string
	p := start(t, b, proxy.Options{ReportPath: "/ensign/revision", Report: func(_ context.Context, owner access.Owner, body []byte) error {
		reports = append(reports, owner.Name+" "+string(body))
		if string(body) == "late" {
			return errors.New("another attempt has begun")
		}
		return nil
	}})
	for _, test := range []struct {
		why, method, body string
		chart             bool
		code              int
		answer            string
	}{
		{"a report", http.MethodPost, "one", true, http.StatusOK, ""},
		{"one that the ledger refuses", http.MethodPost, "late", true, http.StatusConflict, "another attempt has begun"},
		{"another method", http.MethodGet, "", true, http.StatusOK, "Reached"},
		{"the run of a role", http.MethodPost, "{}", false, http.StatusOK, "Reached"},
	} {
		kubeconfig, _, err := p.GrantSession(access.Session{Owner: owner(), Release: test.chart})
		if err != nil {
			t.Fatal(err)
		}
		code, answer := connect(t, kubeconfig).do(test.method, "/ensign/revision", test.body, nil)
		if code != test.code || !strings.Contains(answer, test.answer) {
			t.Errorf("%s: got %d %s", test.why, code, answer)
		}
	}
	if got := strings.Join(reports, ", "); got != "cr one, cr late" {
		t.Errorf("reports: %s", got)
	}
}
