package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-sql-driver/mysql"
)

// shown is how many visits the page shows.
const shown = 10

// visits is where a backend keeps them.
type visits interface {
	add(ctx context.Context, from string) error
	last(ctx context.Context, most int) (total int, visits []visit, err error)
	// busy returns how many of mostConnections are at work.
	busy() int
}

// counted is what the backend answers to a visit.
type counted struct {
	Total  int     `json:"total"`
	Visits []visit `json:"visits"`
}

// backend counts visits.
type backend struct {
	visits  visits
	signals *signals
}

func newBackend(v visits) http.Handler {
	b := &backend{visits: v, signals: &signals{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /visits", b.visit)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", b.metrics)
	mux.HandleFunc("POST /signals", b.take)
	return mux
}

// visit counts a visit and answers with all that the page shows.
func (b *backend) visit(w http.ResponseWriter, r *http.Request) {
	var asked visit
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1024)).Decode(&asked); err != nil || len(asked.From) > mostAddress {
		http.Error(w, "Invalid visit.", http.StatusBadRequest)
		return
	}
	began := time.Now()
	answer, err := b.count(r.Context(), asked.From)
	b.signals.answered(time.Since(began), err != nil, b.visits.busy())
	if err != nil {
		slog.Error("visit is not counted", "error", err)
		http.Error(w, faultOf(err), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, answer)
}

func (b *backend) count(ctx context.Context, from string) (answer counted, err error) {
	if err := b.visits.add(ctx, from); err != nil {
		return answer, err
	}
	answer.Total, answer.Visits, err = b.visits.last(ctx, shown)
	return answer, err
}

// faultOf says to visitors what an error of the database means, without its details.
func faultOf(err error) string {
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered {
		return "The database refuses."
	}
	return "The database does not answer."
}

// metrics shows the totals of this process, for Prometheus.
func (b *backend) metrics(w http.ResponseWriter, _ *http.Request) {
	total := b.signals.total()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = fmt.Fprintf(w, `# TYPE visitors_backend_requests_total counter
visitors_backend_requests_total %d
# TYPE visitors_backend_errors_total counter
visitors_backend_errors_total %d
# TYPE visitors_backend_request_seconds_total counter
visitors_backend_request_seconds_total %g
# TYPE visitors_backend_connections gauge
visitors_backend_connections %d
# TYPE visitors_backend_connections_limit gauge
visitors_backend_connections_limit %d
`, total.Requests, total.Errors, total.Seconds, b.visits.busy(), mostConnections)
}

// take answers with what was counted since it was last asked, for a reader that adds it up for all
// backends: the operator.
func (b *backend) take(w http.ResponseWriter, _ *http.Request) { writeJSON(w, b.signals.take()) }

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Error("answer is not sent", "error", err)
	}
}
