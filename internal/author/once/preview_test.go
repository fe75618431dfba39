package once

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/author/changes"
	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/watches"
)

// previewer knows nothing about any CR.
type previewer []watches.Watch

// Watches implements Previewer.
func (p previewer) Watches() []watches.Watch { return p }

// Preview implements Previewer.
func (previewer) Preview(_ context.Context, _ watches.Watch, cr *unstructured.Unstructured, owned bool) (engine.Preview, error) {
	if owned || cr.GetUID() == "" {
		return engine.Preview{}, errors.New("the cluster cannot have it")
	}
	return engine.Preview{Release: cr.GetName()}, nil
}

func TestPreviewsAreForCharts(t *testing.T) {
	var shown []changes.Resource
	show := func(r changes.Resource) { shown = append(shown, r) }
	var notes bytes.Buffer
	o := Options{File: "-", Input: []byte(greeting), Namespace: "demo", Err: &notes}
	roles, charts := previewer(greetings()), previewer(greetings())
	charts[0].Chart = &watches.Chart{Path: "charts/hello"}
	if err := Previews(t.Context(), o, nil, roles, nil, false, show); err == nil || !strings.Contains(err.Error(), "ensign run-once -f - --check") {
		t.Errorf("got %v", err)
	}
	if err := Previews(t.Context(), Options{Err: &notes}, nil, roles, nil, true, show); err == nil || !strings.Contains(err.Error(), "watches.yaml has no chart") || !strings.Contains(notes.String(), "Greeting is left out") {
		t.Errorf("got %v and %q", err, notes.String())
	}
	if err := Previews(t.Context(), o, nil, charts, nil, false, show); err != nil || len(shown) != 1 || shown[0].Resource != "greeting/hello" || shown[0].Namespace != "demo" || shown[0].Error != "" {
		t.Errorf("got %+v, %v", shown, err)
	}
}
