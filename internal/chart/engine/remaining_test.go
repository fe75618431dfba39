package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// The API server answers what it has, and then the run is ended, or its time is over.
func TestWhatWasNotSeenIsNotGone(t *testing.T) {
	for why, cause := range map[string]error{"ended": context.Canceled, "too late": context.DeadlineExceeded} {
		t.Run(why, func(t *testing.T) {
			ctx := &endable{Context: t.Context(), done: make(chan struct{}), cause: cause}
			answers := map[string]string{
				"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
				"/apis":   `{"kind":"APIGroupList","groups":[]}`,
				"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"things","kind":"Thing","verbs":["list","delete"]}]}`,
			}
			server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
				answer.Header().Set("Content-Type", "application/json")
				if text, ok := answers[request.URL.Path]; ok {
					_, _ = fmt.Fprint(answer, text)
					return
				}
				close(ctx.done)
				<-request.Context().Done()
			}))
			defer server.Close()
			cr := resource(nil, nil)
			cr.Object["status"] = map[string]any{deployedRelease: map[string]any{}}
			f := found{}
			f.config = &rest.Config{Host: server.URL}
			left, _, err := (&work{cr: cr}).removeRemaining(ctx, f)
			if err == nil || len(left) > 0 {
				t.Errorf("got %v, %v; want an error: nothing was seen", left, err)
			}
		})
	}
}

// endable is a context that a test ends.
type endable struct {
	context.Context //nolint:containedctx // It is one.

	done  chan struct{}
	cause error
}

func (e *endable) Done() <-chan struct{} { return e.done }

func (e *endable) Err() error {
	select {
	case <-e.done:
		return e.cause
	default:
		return nil
	}
}

func TestWhatTheClusterHasAggregatedAnew(t *testing.T) {
	const controller = "clusterrole-aggregation-controller"
	aggregates := map[string]any{"aggregationRule": map[string]any{}}
	for why, test := range map[string]struct {
		recorded map[string]any
		writers  []string
		want     bool
	}{
		"the controller has brought back rules":    {aggregates, []string{controller}, true},
		"it has brought back a role without rules": {aggregates, nil, true},
		"somebody has written it":                  {aggregates, []string{controller, "kubectl"}, false},
		"a role that does not aggregate":           {map[string]any{}, []string{controller}, false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		var fields []metav1.ManagedFieldsEntry
		for _, writer := range test.writers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: writer})
		}
		live.SetManagedFields(fields)
		if got := aggregatedAnew(&unstructured.Unstructured{Object: test.recorded}, live); got != test.want {
			t.Errorf("%s: got %v", why, got)
		}
	}
}
