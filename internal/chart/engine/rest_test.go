package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// informed is the informers of a world. They show each change at once, but for what the test says.
type informed struct {
	*world

	// dead is true if no watch is open, behind if the informers show an older version of the object.
	dead, behind bool
}

// Object implements Informers.
func (i *informed) Object(_ string, resource schema.GroupVersionResource, namespace, name string) (Known, bool) {
	if slices.Contains([]string{"login", "sizes"}, name) {
		source := i.sources[resource.Resource+"/"+name]
		if source == nil {
			return Known{}, true
		}
		return Known{Content: i.text(source)}, true
	}
	if resource.Resource != "configmaps" || namespace != "ns" || name != "a" {
		i.t.Errorf("asked for %s %s/%s", resource, namespace, name)
	}
	if i.object == nil {
		return Known{}, !i.dead
	}
	live := &unstructured.Unstructured{Object: i.object}
	known := Known{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Content: i.text(i.object["data"])}
	if i.behind {
		known.ResourceVersion = "0"
	}
	return known, !i.dead
}

// Series implements Informers.
func (i *informed) Series(_ string, resource schema.GroupVersionResource, namespace, base string) (map[string]Known, bool) {
	if resource.Resource != "secrets" || namespace != "ns" || base != "sh.helm.release.v1.r" {
		i.t.Errorf("asked for %s %s/%s", resource, namespace, base)
	}
	all := map[string]Known{}
	for _, secret := range i.secrets() {
		all[secret.Name] = Known{UID: secret.UID, ResourceVersion: secret.ResourceVersion, Content: i.text([]string{secret.Labels["status"], secret.Labels[order.DigestLabel]})} // The world makes them anew each time, with the time.
	}
	return all, !i.dead
}

func (i *informed) text(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		i.t.Error(err)
	}
	return string(text)
}

// changeObject gives the object another text, and the next version.
func (w *world) changeObject(text string) {
	w.object = maps.Clone(w.object)
	w.object["data"] = map[string]any{"a": text}
	(&unstructured.Unstructured{Object: w.object}).SetResourceVersion("2")
}

// newInformedWorld returns a world with a release that is as it should be.
func newInformedWorld(t *testing.T, change func(*watches.Watch)) (*world, *informed) {
	t.Helper()
	w := newWorld(t, change)
	w.has(common.StatusDeployed, w.digest())
	live := &unstructured.Unstructured{Object: w.object}
	live.SetUID("o1")
	live.SetResourceVersion("1")
	i := &informed{world: w}
	w.engine.Informers = i
	return w, i
}

// rests asks whether the CR's release rests, as the controller does before it looks.
func (w *world) rests(cr *unstructured.Unstructured, finalizing bool) (content.Result, bool) {
	w.t.Helper()
	return w.prepare(cr, finalizing).UpToDate()
}

func TestAReleaseRestsWhileNothingChanges(t *testing.T) {
	cr := resource(nil, nil)
	for why, c := range map[string]struct {
		watch  func(*watches.Watch)
		before func(w *world, i *informed) // before the comparison
		change func(w *world, i *informed) // after it
		cr     *unstructured.Unstructured
		want   bool
	}{
		"nothing has changed":                              {want: true},
		"drift is not looked for":                          {watch: func(w *watches.Watch) { w.Chart.Drift = watches.DriftOff }, want: true},
		"an object has changed":                            {change: func(w *world, _ *informed) { w.changeObject("c") }},
		"an object is gone":                                {change: func(w *world, _ *informed) { w.object = nil }},
		"a revision was marked by Helm":                    {change: func(w *world, _ *informed) { w.releases[0].Info.Status = common.StatusFailed }},
		"somebody has written another revision":            {change: func(w *world, _ *informed) { w.found(common.StatusDeployed) }},
		"the record is gone":                               {change: func(w *world, _ *informed) { w.releases = nil }},
		"the values are others":                            {cr: resource(map[string]any{"size": int64(2)}, nil)},
		"the chart cannot be loaded":                       {change: func(w *world, _ *informed) { w.breakChart() }},
		"the CR is another one of its name":                {cr: func() *unstructured.Unstructured { other := cr.DeepCopy(); other.SetUID("u2"); return other }()},
		"the CR is gone":                                   {change: func(w *world, _ *informed) { _ = w.engine.Remove("u1") }},
		"no watch is open":                                 {change: func(_ *world, i *informed) { i.dead = true }},
		"no watch was open when the release was looked at": {before: func(_ *world, i *informed) { i.dead = true }, change: func(_ *world, i *informed) { i.dead = false }},
		"the informers were behind then":                   {before: func(_ *world, i *informed) { i.behind = true }, change: func(_ *world, i *informed) { i.behind = false }},
		"an object was being deleted then": {before: func(w *world, _ *informed) {
			w.object["metadata"].(map[string]any)["deletionTimestamp"] = "2020-01-01T00:00:00Z"
		}},
		"an hour has passed": {change: func(w *world, _ *informed) {
			w.engine.now = func() time.Time { return time.Now().Add(maxRest + time.Second) }
		}},
		"nobody follows objects": {change: func(w *world, _ *informed) { w.engine.Informers = nil }},
	} {
		t.Run(why, func(t *testing.T) {
			w, i := newInformedWorld(t, c.watch)
			if c.before != nil {
				c.before(w, i)
			}
			if _, rests := w.rests(cr, false); rests {
				t.Error("it rests before anybody has looked")
			}
			settled, ok := w.run(t.Context(), cr, false)
			if !ok {
				t.Fatalf("it is not as it should be: %+v", settled)
			}
			if c.change != nil {
				c.change(w, i)
			}
			asked := c.cr
			if asked == nil {
				asked = cr
			}
			result, rests := w.rests(asked, false)
			if rests != c.want || rests && shownAs(result) != shownAs(settled) {
				t.Errorf("got %t, want %t; %s", rests, c.want, shownAs(result))
			}
			if _, rests := w.rests(asked, true); rests {
				t.Error("a deletion rests")
			}
		})
	}
}

func TestAReleaseRestsAfterItsInstallation(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.Informers = &informed{world: w}
	cr := resource(nil, nil)
	result, settled := w.run(t.Context(), cr, false)
	if settled || len(w.orders) != 1 {
		t.Fatalf("want an installation; settled %t, %d orders", settled, len(w.orders))
	}
	if rested, rests := w.rests(cr, false); !rests || shownAs(rested) != shownAs(result) {
		t.Errorf("rests %t: %s", rests, shownAs(rested))
	}
}

// A warning in each period would say nothing new, and neither would a comparison.
func TestADriftThatIsLeftIsToldOnce(t *testing.T) {
	w, _ := newInformedWorld(t, func(w *watches.Watch) { w.Chart.Drift = watches.DriftWarn })
	w.changeObject("theirs")
	if _, settled := w.run(t.Context(), resource(nil, nil), false); !settled {
		t.Error("drift that is left is not settled")
	}
	if _, rests := w.rests(resource(nil, nil), false); !rests {
		t.Error("it is compared again although nothing has changed")
	}
	w.changeObject(strings.Repeat("theirs", 2))
	if _, rests := w.rests(resource(nil, nil), false); rests {
		t.Error("another change is not compared")
	}
}

// What counts is what is there, and not how it came about.
func TestWhatComesBackRests(t *testing.T) {
	w, _ := newInformedWorld(t, nil)
	cr := resource(nil, nil)
	w.run(t.Context(), cr, false)
	before := w.object
	w.changeObject("theirs")
	if _, rests := w.rests(cr, false); rests {
		t.Error("what has drifted rests")
	}
	w.object = before
	if _, rests := w.rests(cr, false); !rests {
		t.Error("what is as it was when it was compared does not rest")
	}
}

func TestObjectsWithValuesCount(t *testing.T) {
	cr := resource(map[string]any{"login": "login"}, nil)
	for why, c := range map[string]struct {
		change func(w *world)
		want   bool
	}{
		"nothing has changed":          {func(*world) {}, true},
		"a Secret with values":         {func(w *world) { w.sources["secrets/login"] = secretWith(map[string]string{"password": "b"}) }, false},
		"an object that was not there": {func(w *world) { w.sources["configmaps/sizes"] = configMapWith("size: 1") }, false},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t, fromObjects)
			w.engine.Informers = &informed{world: w}
			w.sources = map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": "a"})}
			w.run(t.Context(), cr, false)
			if _, settled := w.run(t.Context(), cr, false); !settled {
				t.Fatal("the release is not as it should be after its installation")
			}
			c.change(w)
			if _, rests := w.rests(cr, false); rests != c.want {
				t.Errorf("got %t, want %t", rests, c.want)
			}
			other := resource(map[string]any{"login": "login", "size": int64(2)}, nil)
			if _, rests := w.rests(other, false); rests {
				t.Error("another spec rests")
			}
		})
	}
}
