package values

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const plainChart = "apiVersion: v2\nname: c\nversion: 1.0.0\n"

// TestWhoseFaultItIs: a refusal stays until the CR changes, so that it is for what a change of the
// CR's spec mends.
func TestWhoseFaultItIs(t *testing.T) {
	const sizes = `{"type":"object","required":["name"],"properties":{"size":{"type":"integer"},"name":{"type":"string"},"list":{"items":{"type":"integer"}}}}`
	named := map[string]any{"name": "a"}
	for why, test := range map[string]struct {
		files     map[string]string
		overrides []watches.Override
		spec      map[string]any
		// chart is true for a fault of the chart, want is in the error; "" for none.
		chart bool
		want  string
	}{
		"a value of the spec":               {map[string]string{"values.schema.json": sizes}, nil, map[string]any{"name": "a", "size": "big"}, false, "at '/size'"},
		"one in a list":                     {map[string]string{"values.schema.json": sizes}, nil, map[string]any{"name": "a", "list": []any{int64(1), "b"}}, false, "at '/list/1'"},
		"one that the spec lacks":           {map[string]string{"values.schema.json": sizes}, nil, nil, false, "name"},
		"a default":                         {map[string]string{"values.schema.json": sizes, "values.yaml": "size: big\n"}, nil, named, true, "the chart's values.yaml or the watch's overrideValues"},
		"a default that the spec mends":     {map[string]string{"values.schema.json": sizes, "values.yaml": "size: big\n"}, nil, map[string]any{"name": "a", "size": int64(1)}, false, ""},
		"a default, and the spec's own":     {map[string]string{"values.schema.json": sizes, "values.yaml": "size: big\n"}, nil, map[string]any{"name": int64(1)}, false, "at '/name'"},
		"the spec says what a default says": {map[string]string{"values.schema.json": sizes, "values.yaml": "size: big\n"}, nil, map[string]any{"name": "a", "size": "huge"}, false, "at '/size'"},
		"overrideValues":                    {map[string]string{"values.schema.json": sizes}, []watches.Override{{Key: "size", Value: "big"}}, named, true, "at '/size'"},
		"overrideValues over the spec":      {map[string]string{"values.schema.json": sizes}, []watches.Override{{Key: "size", Value: "big"}}, map[string]any{"name": "a", "size": "huge"}, true, "at '/size'"},
		"a schema that is no JSON":          {map[string]string{"values.schema.json": "{"}, nil, named, true, "values.schema.json of the chart c"},
		"a schema that is none":             {map[string]string{"values.schema.json": `{"type":"strange"}`}, nil, named, true, "values.schema.json of the chart c"},
		"a $ref to nothing":                 {map[string]string{"values.schema.json": `{"$ref":"#/$defs/nothing"}`}, nil, named, true, "values.schema.json of the chart c"},
		"a $ref to a file":                  {map[string]string{"values.schema.json": `{"$ref":"file:///nothing.json"}`}, nil, named, true, "nothing.json"},
		"a name that nobody resolves":       {map[string]string{"values.schema.json": `{"$ref":"urn:example:a"}`}, nil, named, false, ""},
		"a dependency that is not there": {map[string]string{"Chart.yaml": plainChart + "dependencies: [{name: db, version: 1.x.x, condition: db.enabled}]\n"}, nil,
			map[string]any{"db": map[string]any{"enabled": true}}, true, "depends on db, which is not in its directory charts/"},
		"one that is switched off": {map[string]string{"Chart.yaml": plainChart + "dependencies: [{name: db, version: 1.x.x, condition: db.enabled}]\n"}, nil,
			map[string]any{"db": map[string]any{"enabled": false}}, false, ""},
		"the schema of a subchart": {map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json": sizes, "charts/sub/values.yaml": "name: a\n"}, nil,
			map[string]any{"sub": map[string]any{"size": "big"}}, false, "sub:\n- at '/size'"},
		"a subchart's default":  {map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json": sizes, "charts/sub/values.yaml": "{name: a, size: big}\n"}, nil, nil, true, "sub:\n- at '/size'"},
		"no map for a subchart": {map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, nil, map[string]any{"sub": "text"}, false, "sub"},
		"none in the chart":     {map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "values.yaml": "sub: text\n"}, nil, nil, true, "sub"},
	} {
		t.Run(why, func(t *testing.T) {
			if test.files["Chart.yaml"] == "" {
				test.files["Chart.yaml"] = plainChart
			}
			s := sourceOf(t, written(t, test.files))
			s.overrides = test.overrides
			_, err := s.Build(test.spec, nil)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrChart) != test.chart {
				t.Fatalf("got %v, a fault of the chart: %v", err, errors.Is(err, ErrChart))
			}
			if fault, ok := errors.AsType[*FaultError](err); ok && fault.Reason != ReasonInvalidChart {
				t.Errorf("got the reason %s", fault.Reason)
			}
		})
	}
}

// TestASchemaIsFetchedOnce: attempts share what was fetched, and wait after a failure.
func TestASchemaIsFetchedOnce(t *testing.T) {
	var asked atomic.Int64
	var there atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if !there.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(`{"type":"integer"}`))
	}))
	defer server.Close()
	s := sourceOf(t, written(t, map[string]string{"Chart.yaml": plainChart, "values.schema.json": `{"properties":{"size":{"$ref":"` + server.URL + `/size.json"}}}`}))
	now := time.Now().Add(time.Hour)
	s.now = func() time.Time { return now }
	build := func(size any, reason content.Reason, requests int64) {
		t.Helper()
		_, err := s.Build(map[string]any{"size": size}, nil)
		got := content.Reason("")
		if fault, ok := errors.AsType[*FaultError](err); ok {
			got = fault.Reason
		} else if err != nil {
			got = content.ReasonInvalidSpec
		}
		if got != reason || asked.Load() != requests {
			t.Errorf("got %v after %d requests, want %q after %d", err, asked.Load(), reason, requests)
		}
	}
	build(int64(1), ReasonSchemaUnreachable, 1)
	build(int64(2), ReasonSchemaUnreachable, 1)
	there.Store(true)
	now = now.Add(fetchPause)
	build(int64(1), "", 2)
	build("big", content.ReasonInvalidSpec, 2)
}

func TestAFetchEndsWithItsTime(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := fetcher{ctx}.Load(server.URL)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
