package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

//go:embed page.html
var pageText string

// page has the title of whoever writes the resource, and addresses that come from outside: the
// template writes both as text.
var page = template.Must(template.New("page").Parse(pageText))

// shows is what the page shows.
type shows struct {
	Title string
	counted
	// Fault says why there are no visits.
	Fault string
}

// frontend serves the page.
type frontend struct {
	backend, title string
	client         *http.Client
}

func newFrontend(backend, title string) http.Handler {
	f := &frontend{backend: backend, title: title, client: &http.Client{Timeout: 10 * time.Second}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", f.show)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// show counts a visit and shows the page, also where the visit cannot be counted.
func (f *frontend) show(w http.ResponseWriter, r *http.Request) {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	visits, fault := f.visit(r.Context(), from)
	status := http.StatusOK
	if fault != "" {
		status = http.StatusServiceUnavailable
	}
	var text bytes.Buffer
	if err := page.Execute(&text, shows{Title: f.title, counted: visits, Fault: fault}); err != nil {
		slog.Error("page is not made", "error", err)
		http.Error(w, "The page cannot be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

// visit has the backend count a visit. The fault is a sentence for visitors, and empty if there is none.
func (f *frontend) visit(ctx context.Context, from string) (answer counted, fault string) {
	const away = "The backend does not answer."
	body, err := json.Marshal(visit{From: from})
	if err != nil {
		slog.Error("visit is not written", "error", err)
		return answer, away
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.backend+"/visits", bytes.NewReader(body))
	if err != nil {
		slog.Error("backend has no address", "error", err)
		return answer, away
	}
	response, err := f.client.Do(request)
	if err != nil {
		slog.Error("backend does not answer", "error", err)
		return answer, away
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	switch {
	case err != nil:
	case response.StatusCode == http.StatusServiceUnavailable:
		return answer, string(bytes.TrimSpace(text))
	case response.StatusCode == http.StatusOK:
		err = json.Unmarshal(text, &answer)
	default:
		err = errors.New(response.Status)
	}
	if err != nil {
		slog.Error("answer of the backend", "error", err)
		return counted{}, away
	}
	return answer, ""
}
