package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
)

func TestResourcesHaveTheirSize(t *testing.T) {
	for why, runnable := range map[string]bool{"one that can be run": true, "one that is refused": false} {
		t.Run(why, func(t *testing.T) {
			object, err := resource(7, runnable)
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) != resourceSize {
				t.Errorf("it has %d bytes", len(encoded))
			}
		})
	}
}

func TestOnlyOneKindOfResourceIsRefused(t *testing.T) {
	for why, runnable := range map[string]bool{"one that can be run": true, "one that is refused": false} {
		t.Run(why, func(t *testing.T) {
			object, err := resource(7, runnable)
			if err != nil {
				t.Fatal(err)
			}
			_, err = extravars.Build(object.Object, extravars.Options{GVK: benchKind(), SnakeCase: true, MarkUnsafe: true})
			if (err == nil) != runnable {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	withStatus := func(status any) map[string]any { return map[string]any{"status": status} }
	conditions := func(list ...any) map[string]any { return withStatus(map[string]any{"conditions": list}) }
	successful := map[string]any{"type": "Successful", "status": "True"}
	cases := map[string]struct {
		object map[string]any
		want   bool
	}{
		"no status yet":                {map[string]any{}, false},
		"a status without conditions":  {withStatus(map[string]any{"endpoint": "x"}), false},
		"it holds":                     {conditions(map[string]any{"type": "Running", "status": "True"}, successful), true},
		"it does not hold any more":    {conditions(map[string]any{"type": "Successful", "status": "False"}), false},
		"another condition holds":      {conditions(map[string]any{"type": "Failure", "status": "True"}), false},
		"conditions that are no list":  {withStatus(map[string]any{"conditions": "x"}), false},
		"a condition that is no map":   {conditions("x", successful), true},
		"a condition without a status": {conditions(map[string]any{"type": "Successful"}), false},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := holds(c.object, "Successful"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestIdentitiesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100 {
		seen[identity(i).GetName()] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d names for 100 resources", len(seen))
	}
	if diff := cmp.Diff(benchKind(), (&unstructured.Unstructured{Object: identity(1).Object}).GroupVersionKind()); diff != "" {
		t.Error(diff)
	}
}

func TestParallel(t *testing.T) {
	var mu sync.Mutex
	var got []int
	err := parallel(t.Context(), 3, 7, func(_ context.Context, i int) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, i)
		return nil
	})
	slices.Sort(got)
	if diff := cmp.Diff([]int{3, 4, 5, 6}, got); err != nil || diff != "" {
		t.Errorf("error %v\n%s", err, diff)
	}
	failure := errors.New("no")
	err = parallel(t.Context(), 0, 100, func(context.Context, int) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("got error %v", err)
	}
}
