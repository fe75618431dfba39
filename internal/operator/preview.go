package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// OnlyDryRuns returns a transport that sends only requests that change nothing. The body of a deletion can
// have options, for which the API server ignores those of the URL: none is sent.
func OnlyDryRuns(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reads && (r.Method == http.MethodDelete || r.URL.Query().Get("dryRun") != "All") {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("%s %s is not sent: it is not a dry run", r.Method, r.URL.Path)
		}
		return next.RoundTrip(r)
	})
}

// NewPreviewer returns a LocalRunner for Preview and Values. It needs no Python environment, whatever the watches have.
func NewPreviewer(o config.Options, c client.Client, server *rest.Config) (*LocalRunner, error) {
	list, err := chartWatches(o)
	if err != nil {
		return nil, err
	}
	b := newLocalRunner(o, list, &ansible.Python{}, c, server)
	b.dirs, err = openRunDirs(o)
	return b, err
}

// Values returns the values that a run of the chart would have for a CR, and a function that hides those of Secrets in
// a text. The LocalRunner may have no cluster.
func (b *LocalRunner) Values(ctx context.Context, cr *unstructured.Unstructured) (map[string]any, func(text string) string, error) {
	index := slices.IndexFunc(b.watches, func(w watches.Watch) bool { return w.GVK == cr.GroupVersionKind() })
	engine, err := b.chart(b.watches[index])
	if err != nil {
		return nil, nil, err
	}
	return engine.Values(ctx, cr, b.server)
}

// Preview returns the changes that a run of the chart would make for a CR. The caller has made all connections by OnlyDryRuns.
func (b *LocalRunner) Preview(ctx context.Context, watch watches.Watch, cr *unstructured.Unstructured, owned bool) (made chart.Preview, err error) {
	engine, err := b.chart(watch)
	if err != nil {
		return made, err
	}
	r, err := b.Reconciler(watch, owned, nil)
	if err != nil {
		return made, err
	}
	r.Observers, r.Content = nil, &chart.Previews{Engine: engine, Show: func(p chart.Preview) { made = p }}
	outcome, err := r.RunOnce(ctx, controller.Once{CR: cr})
	if err == nil && outcome.Verdict != content.Succeeded {
		err = errors.New(outcome.Message)
	}
	return made, err
}
