package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// memory keeps visits as long as it has no fault.
type memory struct {
	visits []visit
	fault  error
}

func (m *memory) add(_ context.Context, from string) error {
	if m.fault == nil {
		m.visits = append([]visit{{Time: time.Unix(0, 0).UTC(), From: from}}, m.visits...)
	}
	return m.fault
}

func (m *memory) last(_ context.Context, most int) (int, []visit, error) {
	return len(m.visits), m.visits[:min(most, len(m.visits))], m.fault
}

func (*memory) busy() int { return 1 }

// open serves a site on such a memory, and returns what gets its page.
func open(t *testing.T, title string, m *memory) (look func() (int, string), backendURL string) {
	t.Helper()
	back := httptest.NewServer(newBackend(m))
	t.Cleanup(back.Close)
	front := httptest.NewServer(newFrontend(back.URL, title))
	t.Cleanup(front.Close)
	return func() (int, string) {
		t.Helper()
		return ask(t, http.MethodGet, front.URL)
	}, back.URL
}

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := w.Body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, w.Body.String()
}

func TestThePageCountsVisits(t *testing.T) {
	look, _ := open(t, "Our visitors", &memory{})
	for _, total := range []string{"1", "2"} {
		status, text := look()
		for _, want := range []string{"<title>Our visitors</title>", `<strong id="total">` + total + "</strong>", "<td>127.0.0.1</td>"} {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("status %d, page without %q:\n%s", status, want, text)
			}
		}
	}
}

func TestTheTitleIsText(t *testing.T) {
	look, _ := open(t, `<script>alert(1)</script>{{.Title}}`, &memory{})
	if _, text := look(); strings.Contains(text, "<script>") || !strings.Contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;{{.Title}}") {
		t.Errorf("the title is not shown as text:\n%s", text)
	}
}

func TestThePageSaysWhatIsDown(t *testing.T) {
	m := &memory{}
	look, _ := open(t, "Up", m)
	for want, fault := range map[string]error{
		"The database does not answer.": errors.New("dial tcp: no such host"),
		"The database refuses.":         &mysql.MySQLError{Number: 1045, Message: "Access denied for user"},
	} {
		m.fault = fault
		status, text := look()
		if status != http.StatusServiceUnavailable || !strings.Contains(text, want) || !strings.Contains(text, "<title>Up</title>") || strings.Contains(text, fault.Error()) {
			t.Errorf("%v: status %d\n%s", fault, status, text)
		}
	}
	m.fault = nil
	if status, text := look(); status != http.StatusOK || !strings.Contains(text, `id="total">1<`) {
		t.Errorf("the database is back: status %d\n%s", status, text)
	}
	w := httptest.NewRecorder()
	newFrontend("http://127.0.0.1:1", "Up").ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "The backend does not answer.") {
		t.Errorf("without a backend: status %d\n%s", w.Code, w.Body)
	}
}

func TestNothingElseIsAVisit(t *testing.T) {
	m := &memory{}
	_, url := open(t, "", m)
	w := httptest.NewRecorder()
	front := newFrontend(url, "")
	for _, path := range []string{"/favicon.ico", "/healthz"} {
		front.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	back := newBackend(m)
	for _, body := range []string{"", "[]", `{"from":"` + strings.Repeat("x", mostAddress+1) + `"}`} {
		w := httptest.NewRecorder()
		back.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/visits", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%.20q: status %d", body, w.Code)
		}
	}
	if len(m.visits) > 0 {
		t.Errorf("visits: %v", m.visits)
	}
}

func TestSignalsAreTakenOnce(t *testing.T) {
	m := &memory{}
	look, url := open(t, "", m)
	look()
	m.fault = errors.New("down")
	look()
	var taken counts
	_, text := ask(t, http.MethodPost, url+"/signals")
	if err := json.Unmarshal([]byte(text), &taken); err != nil || taken.Requests != 2 || taken.Errors != 1 || taken.Seconds <= 0 || taken.Saturation != 0.2 {
		t.Errorf("taken %v, %v", taken, err)
	}
	if _, text := ask(t, http.MethodPost, url+"/signals"); !strings.Contains(text, `"requests":0`) {
		t.Errorf("taken twice: %s", text)
	}
	if _, text := ask(t, http.MethodGet, url+"/metrics"); !strings.Contains(text, "\nvisitors_backend_requests_total 2\n") || !strings.Contains(text, "\nvisitors_backend_errors_total 1\n") {
		t.Errorf("metrics:\n%s", text)
	}
}
