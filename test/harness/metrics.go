package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
)

// MetricsAddress is where the manager serves metrics.
func (m *Manager) MetricsAddress() string { return m.metrics }

// Metrics is what the manager's metrics endpoint serves.
func (m *Manager) Metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	// To compress them takes the manager time, which a benchmark would take for its runs'.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s", response.Status)
	}
	return string(text), err
}

// Address is where one of the manager's servers listens, "user metrics" or "health
// probe", once it does. The flag of the latter is to be given; the former has a free
// port unless it is.
func (m *Manager) Address(ctx context.Context, server string) (string, error) {
	expression, err := regexp.Compile(`starting server.*"name": ?"` + regexp.QuoteMeta(server) + `".*"addr": ?"([^"]+)"`)
	if err != nil {
		return "", err
	}
	if err := m.Logged(ctx, expression); err != nil {
		return "", err
	}
	text, err := m.Log()
	if err != nil {
		return "", err
	}
	return expression.FindStringSubmatch(text)[1], nil
}
