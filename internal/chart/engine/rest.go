package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Informers return the known states of objects without a request.
type Informers interface {
	// Object returns the known state of an object, and the zero Known for one that is not there.
	// live is false where no informer sees all changes: then nothing is known.
	Object(kind string, resource schema.GroupVersionResource, namespace, name string) (known Known, live bool)
	// Series returns the known states of all objects whose name is base, ".v" and a number.
	Series(kind string, resource schema.GroupVersionResource, namespace, base string) (known map[string]Known, live bool)
}

// Known is what an informer knows of an object.
type Known struct {
	UID             types.UID
	ResourceVersion string
	// Content changes whenever a client other than Kubernetes changes the object or its owners.
	Content string
}

// maxRest is how long a comparison counts. It bounds how long drift is missed because of a bug in an
// informer, as client-go has had.
const maxRest = time.Hour

// compared is the state of a release at a comparison, and the result. While the state does not change,
// another comparison would have the same result.
type compared struct {
	// basis is that of work.basis.
	basis   [sha256.Size]byte
	until   time.Time
	objects []place
	// contents is the digest of the records and the objects as the comparison itself read them.
	contents [sha256.Size]byte
	result   content.Result
	// repair is when a waiting field may be repaired; the zero time means never.
	repair time.Time
}

// place says where an object is.
type place struct {
	resource              schema.GroupVersionResource
	kind, namespace, name string
}

// observation has the objects that a comparison has read, and those that have values.
type observation struct {
	objects []place
	known   []Known // without contents
	// unsure is true if the comparison says nothing about one of them.
	unsure bool
}

// add adds an object as it was read.
func (s *observation) add(resource schema.GroupVersionResource, kind, namespace, name string, uid types.UID, version string) {
	s.objects = append(s.objects, place{resource, kind, namespace, name})
	s.known = append(s.known, Known{UID: uid, ResourceVersion: version})
}

// observe adds an object as it was compared; nil if the comparison could not read it for sure.
func (w *work) observe(s *observation) func(live *unstructured.Unstructured) {
	return func(live *unstructured.Unstructured) {
		if live == nil {
			s.unsure = true
			return
		}
		kind := live.GroupVersionKind()
		mapping, err := w.engine.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			s.unsure = true
			return
		}
		s.add(mapping.Resource, kind.Kind, live.GetNamespace(), live.GetName(), live.GetUID(), live.GetResourceVersion())
	}
}

// UpToDate returns the result of the last comparison while neither the records of the release nor its
// values or objects have changed since. The result keeps the open points of the comparison.
func (w *work) UpToDate() (content.Result, bool) {
	if w.engine.Informers == nil || w.finalizing || w.requested || w.fault != nil {
		return content.Result{}, false
	}
	last := w.memory.rest
	if last == nil || last.basis != w.basis() || w.engine.now().After(last.until) {
		return content.Result{}, false
	}
	result := last.result
	if !last.repair.IsZero() {
		if result.RequeueAfter = last.repair.Sub(w.engine.now()); result.RequeueAfter <= 0 {
			return content.Result{}, false
		}
	}
	records, objects, live := w.known(last.objects)
	return result, live && contentsOf(records, objects) == last.contents
}

// remember keeps the result of a comparison if the informers have the same state.
func (w *work) remember(f found, result content.Result) {
	w.memory.rest = nil
	if w.engine.Informers == nil || f.observation.unsure {
		return
	}
	records, objects, live := w.known(f.observation.objects)
	if !live || !slices.EqualFunc(objects, f.observation.known, sameVersion) || !maps.EqualFunc(records, recordsOf(f.history), sameVersion) {
		return // The next period compares again.
	}
	now := w.engine.now()
	last := &compared{
		basis: w.basis(), until: now.Add(maxRest),
		objects: f.observation.objects, contents: contentsOf(records, objects), result: result,
	}
	if result.RequeueAfter > 0 {
		last.repair = now.Add(result.RequeueAfter)
	}
	w.memory.rest = last
}

// sameVersion reports whether both are of the same state of one object.
func sameVersion(a, b Known) bool { return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion }

func recordsOf(h release.History) map[string]Known {
	all := map[string]Known{}
	for _, r := range h.Revisions {
		all[r.Secret] = Known{UID: r.UID, ResourceVersion: r.ResourceVersion}
	}
	return all
}

// basis is a digest of the release, its chart, and the sources of its values other than objects.
func (w *work) basis() [sha256.Size]byte {
	text, _ := json.Marshal([]any{w.namespace, w.name, w.values.ChartDigest, w.spec, w.overrides, w.sources}) // All have the types of JSON.
	return sha256.Sum256(text)
}

// known returns the informers' states of the records of the release and of the objects; false if
// not all of them are watched.
func (w *work) known(places []place) (records map[string]Known, objects []Known, live bool) {
	informers := w.engine.Informers
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	if records, live = informers.Series("Secret", secrets, w.namespace, release.Series(w.name)); !live {
		return nil, nil, false
	}
	for _, p := range places {
		object, live := informers.Object(p.kind, p.resource, p.namespace, p.name)
		if !live {
			return nil, nil, false
		}
		objects = append(objects, object)
	}
	return records, objects, true
}

func contentsOf(records map[string]Known, objects []Known) (sum [sha256.Size]byte) {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(records)) {
		fmt.Fprintf(all, "%q %q %q\n", name, records[name].UID, records[name].Content)
	}
	for _, object := range objects {
		fmt.Fprintf(all, "%q %q\n", object.UID, object.Content)
	}
	return [sha256.Size]byte(all.Sum(nil))
}
