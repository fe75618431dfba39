package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing/synctest"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
)

// apiServer keeps the object of one name, and all that it ever was. Its reads and
// writes can be made to fail, and its answers to take their time.
type apiServer struct {
	client.Client

	mu      sync.Mutex
	version int
	object  *unstructured.Unstructured
	history []moment
	// facts are what users did to the object, by resource version.
	facts          map[string]facts
	gains, resumes int
	// asked is the last generation that no run made.
	asked int64

	readError, writeError error
	// lossy answers a write that it has applied with an error.
	lossy bool
	// slow keeps reads, "before" or "after" they have seen the object, until released.
	slow    string
	release chan struct{}
}

// moment is the object after a change; gone is set where it went, as it was then.
type moment struct{ object, gone *unstructured.Unstructured }

// facts are those of a CR that may ask for a run.
type facts struct {
	uid        types.UID
	generation int64
	// asked is the last generation until then that no run made.
	asked      int64
	annotation string
	paused     bool
	// gains and resumes count how often it was given its labels, and taken out of a pause.
	gains, resumes int
}

// The annotations as a CR has them.
const (
	periodAnnotation    = watches.AnsibleAnnotations + periodSuffix
	pausedAnnotation    = watches.AnsibleAnnotations + pausedSuffix
	verbosityAnnotation = watches.AnsibleAnnotations + "verbosity"
	requestedAnnotation = watches.AnsibleAnnotations + "reconcile-requested-at"
)

func newAPIServer() *apiServer {
	return &apiServer{facts: map[string]facts{}, release: make(chan struct{})}
}

// store makes cr what the name is, nil for nothing. It is called with the lock held.
func (s *apiServer) store(cr *unstructured.Unstructured) {
	s.version++
	version := strconv.Itoa(s.version)
	if cr == nil || cr.GetDeletionTimestamp() != nil && len(cr.GetFinalizers()) == 0 {
		gone := s.object.DeepCopy()
		gone.SetResourceVersion(version)
		s.object = nil
		s.history = append(s.history, moment{gone: gone})
		return
	}
	cr.SetResourceVersion(version)
	s.object = cr
	s.history = append(s.history, moment{object: cr.DeepCopy()})
	s.facts[version] = facts{
		uid: cr.GetUID(), generation: cr.GetGeneration(), asked: s.asked, annotation: cr.GetAnnotations()[requestedAnnotation],
		paused: cr.GetAnnotations()[pausedAnnotation] == "true", gains: s.gains, resumes: s.resumes,
	}
}

func (s *apiServer) set(change func(s *apiServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *apiServer) factsOf(cr *unstructured.Unstructured) facts {
	return s.factsAt(cr.GetResourceVersion())
}

func (s *apiServer) factsAt(version string) facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts[version]
}

// label takes the labels away, or gives them where there are none.
func (s *apiServer) label(labels map[string]string) {
	s.change(func(cr *unstructured.Unstructured) {
		if len(cr.GetLabels()) > 0 {
			cr.SetLabels(nil)
			return
		}
		s.gains++
		cr.SetLabels(labels)
	})
}

// annotate gives an annotation a value, "" for none.
func (s *apiServer) annotate(name, value string) {
	s.change(func(cr *unstructured.Unstructured) {
		annotations := cr.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[name] = value
		if value == "" {
			delete(annotations, name)
		}
		cr.SetAnnotations(annotations)
	})
}

// pause takes the object out of a pause, or begins one.
func (s *apiServer) pause() (begun bool) {
	if s.now().GetAnnotations()[pausedAnnotation] == "true" {
		s.set(func(s *apiServer) { s.resumes++ })
		s.annotate(pausedAnnotation, "")
		return false
	}
	s.annotate(pausedAnnotation, "true")
	return true
}

func (s *apiServer) labels() map[string]string { return s.now().GetLabels() }

// change is what a user does to the object as it is.
func (s *apiServer) change(edit func(cr *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cr := s.object.DeepCopy()
	edit(cr)
	s.store(cr)
}

// advance makes a new generation, of a run's own or a user's, and returns the object.
func (s *apiServer) advance(own bool) *unstructured.Unstructured {
	s.change(func(cr *unstructured.Unstructured) {
		cr.SetGeneration(cr.GetGeneration() + 1)
		if !own {
			s.asked = cr.GetGeneration()
		}
	})
	return s.now()
}

func (s *apiServer) create(labels map[string]string, finalizers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cr := widget(withUID(types.UID(fmt.Sprintf("uid-%d", s.version+1))), withLabels(labels), withFinalizers(finalizers...))
	cr.SetCreationTimestamp(metav1.Now())
	s.asked = cr.GetGeneration()
	s.store(cr)
}

func (s *apiServer) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.object.GetFinalizers()) == 0 {
		s.store(nil)
		return
	}
	cr := s.object.DeepCopy()
	now := metav1.Now()
	cr.SetDeletionTimestamp(&now)
	cr.SetGeneration(cr.GetGeneration() + 1)
	s.store(cr)
}

func (s *apiServer) now() *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object.DeepCopy()
}

func (s *apiServer) hold(ctx context.Context, when string) error {
	s.mu.Lock()
	slow, release := s.slow, s.release
	s.mu.Unlock()
	if slow != when {
		return nil
	}
	select {
	case <-release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hurry lets all reads go on that are held.
func (s *apiServer) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = ""
	close(s.release)
	s.release = make(chan struct{})
}

// Get implements client.Reader.
func (s *apiServer) Get(ctx context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if err := s.hold(ctx, "before"); err != nil {
		return err
	}
	s.mu.Lock()
	object, err := s.object.DeepCopy(), s.readError
	s.mu.Unlock()
	if err == nil {
		err = s.hold(ctx, "after")
	}
	switch {
	case err != nil:
		return err
	case object == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, "w")
	}
	into.(*unstructured.Unstructured).Object = object.Object
	return nil
}

// Patch implements client.Writer.
func (s *apiServer) Patch(_ context.Context, cr client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.patch(cr, patch, func(before, after *unstructured.Unstructured) { after.Object["status"] = before.Object["status"] })
}

// Status implements client.StatusClient.
func (s *apiServer) Status() client.SubResourceWriter { return statusOf{server: s} }

type statusOf struct {
	client.SubResourceWriter

	server *apiServer
}

// Patch implements client.SubResourceWriter.
func (w statusOf) Patch(_ context.Context, cr client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.server.patch(cr, patch, func(before, after *unstructured.Unstructured) { after.Object["metadata"] = before.Object["metadata"] })
}

func (s *apiServer) patch(cr client.Object, patch client.Patch, keep func(before, after *unstructured.Unstructured)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.object == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, "w")
	case s.writeError != nil && !s.lossy:
		return s.writeError
	}
	after, err := patched(s.object, cr, patch)
	if err != nil {
		return apierrors.NewInvalid(schema.GroupKind{}, "w", nil)
	}
	keep(s.object.DeepCopy(), after)
	s.store(after)
	if s.writeError == nil {
		cr.(*unstructured.Unstructured).Object = after.DeepCopy().Object
	}
	return s.writeError
}

func patched(object *unstructured.Unstructured, cr client.Object, patch client.Patch) (*unstructured.Unstructured, error) {
	data, err := patch.Data(cr)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	changed, err := operations.Apply(before)
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, json.Unmarshal(changed, after)
}

// view is what an informer of the name tells, which may lag behind.
type view struct {
	server  *apiServer
	next    int // of the server's history
	cached  *unstructured.Unstructured
	uids    []types.UID // of all that was told of
	handler *handler
	queue   queue
	// gained is called when the handler is told that the CR gained its labels.
	gained func()
}

// behind is how many moments are to be told.
func (v *view) behind() int {
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	return len(v.server.history) - v.next
}

// advance tells of the next n moments: one after the other, or as a list tells of
// them that finds the last only.
func (v *view) advance(ctx context.Context, n int, relist bool) {
	v.server.mu.Lock()
	moments := slices.Clone(v.server.history[v.next : v.next+n])
	v.next += n
	v.server.mu.Unlock()
	if relist && n > 0 {
		moments = moments[n-1:]
		if moments[0].object == nil && v.cached != nil {
			moments[0].gone = v.cached // An informer knows what it knew.
		}
	}
	for _, m := range moments {
		v.show(ctx, m)
		synctest.Wait() // What follows depends on nothing but the seed.
	}
}

func (v *view) show(ctx context.Context, m moment) {
	before := v.cached
	v.cached = nil
	predicate := triggers(v.handler.watch)
	if m.object == nil {
		if before == nil {
			return // It was never told of.
		}
		v.handler.Delete(ctx, crDeleted{Object: must(StripTransform()(m.gone)).(*unstructured.Unstructured)}, v.queue)
		return
	}
	v.uids = append(v.uids, m.object.GetUID())
	v.cached = must(StripTransform()(m.object)).(*unstructured.Unstructured)
	created, updated := crCreated{Object: v.cached}, crUpdated{ObjectOld: before, ObjectNew: v.cached}
	switch {
	case before == nil && predicate.Create(created):
		v.handler.Create(ctx, created, v.queue)
	case before != nil && predicate.Update(updated):
		if !isWatched(v.handler.watch, before) {
			v.gained()
		}
		v.handler.Update(ctx, updated, v.queue)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var errNotNow = errors.New("not now")
