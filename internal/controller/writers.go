package controller

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Writer is the CR whose run wrote something; the zero Writer is nobody that is known.
type Writer struct {
	UID types.UID
	// Name is for people: "Greeting shop/hello".
	Name string
}

// Writers remembers which specs and requests of CRs were written by runs, and which objects a
// running run has created. A spec or request that it has forgotten, or never learned of, counts as
// written by somebody else.
type Writers struct {
	marks *lru.Cache
	// seen has the resource version with which each mark was first seen in an event.
	seen *lru.Cache

	mu      sync.Mutex
	created map[types.UID][]string
}

// maxCreated is how many objects of a run are remembered.
const maxCreated = 10

// maxMarks bounds the memory that Writers takes. A run writes a few CRs at most.
const maxMarks = 10_000

// NewWriters makes Writers that know nothing yet.
func NewWriters() *Writers {
	return &Writers{marks: lru.New(maxMarks), seen: lru.New(maxMarks), created: map[types.UID][]string{}}
}

// Created records that the run of a CR has created a child that Kubernetes deletes with the CR.
func (w *Writers) Created(by types.UID, child string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.created[by]) < maxCreated {
		w.created[by] = append(w.created[by], child)
	}
}

// takeCreated returns the objects that the run of a CR has created, at most maxCreated, and forgets
// them.
func (w *Writers) takeCreated(by types.UID) []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer delete(w.created, by)
	return w.created[by]
}

// mark is one thing that was written to the object with the UID.
type mark struct {
	uid  types.UID
	kind string
	what string
}

// Wrote records that a run of by wrote the CR of the watch, as the API server answered. A version
// that an event has shown earlier was written by somebody else: the run has written another part of
// the CR.
func (w *Writers) Wrote(by Writer, watch *watches.Watch, cr *unstructured.Unstructured) {
	for _, m := range versionOf(watch, cr).marks() {
		if first, known := w.seen.Get(m); !known || first == cr.GetResourceVersion() {
			w.marks.Add(m, by)
		}
	}
}

// See records the version of a CR in an event, or in its stripped copy in the cache.
func (w *Writers) See(watch *watches.Watch, cr *unstructured.Unstructured) {
	if w == nil {
		return
	}
	for _, m := range versionOf(watch, cr).marks() {
		if _, known := w.seen.Get(m); !known {
			w.seen.Add(m, cr.GetResourceVersion())
		}
	}
}

// marks returns those of the spec and of the request.
func (v version) marks() []mark {
	if v.requested == "" {
		return []mark{v.specMark(v.generation)}
	}
	return []mark{v.specMark(v.generation), v.requestMark()}
}

// WriterOf returns whose run made the generation of the object.
func (w *Writers) WriterOf(uid types.UID, generation int64) Writer {
	value, _ := w.marks.Get(version{uid: uid}.specMark(generation))
	by, _ := value.(Writer)
	return by
}

func (v version) specMark(generation int64) mark {
	return mark{v.uid, "spec", strconv.FormatInt(generation, 10) + v.content}
}

func (v version) requestMark() mark { return mark{v.uid, "request", digestOfText(v.requested)} }

// writerOf is the writer of a spec or a request, as far as it is known.
type writerOf struct {
	Writer

	own bool // It is the CR's own run.
}

// trigger returns the class of the writer's change.
func (w writerOf) trigger() trigger {
	switch {
	case w.own:
		return bySelfOrChild
	case w.Name != "":
		return byOtherCR
	default:
		return byUser
	}
}

// cause returns for the log who wrote, "" for somebody who is not known.
func (w writerOf) cause() string {
	switch {
	case w.own:
		return causeOwnRun
	case w.Name != "":
		return causeRun + w.Name
	default:
		return ""
	}
}

// between returns whose run wrote all that is new in a version, compared with the one that ran
// last. If anything of it was written by somebody who is not known, it is the zero value.
func (w *Writers) between(last, v version) writerOf {
	if w == nil || last.uid != v.uid {
		return writerOf{}
	}
	found := writerOf{own: true}
	for _, m := range v.newMarks(last) {
		value, known := w.marks.Get(m)
		if !known {
			return writerOf{}
		}
		by, _ := value.(Writer)
		if own := by.UID == v.uid; found.Name == "" || !own {
			found.Writer, found.own = by, found.own && own
		}
	}
	if found.Name == "" {
		return writerOf{}
	}
	return found
}

// newMarks returns the marks of all generations since the last version, and of the request.
func (v version) newMarks(last version) (marks []mark) {
	const limit = 100 // A run that writes its CR more often counts as somebody else.
	switch {
	case v.generation-last.generation > limit || v.generation < last.generation:
		return []mark{{}}
	case v.content != last.content:
		marks = append(marks, v.specMark(v.generation))
	}
	for generation := last.generation + 1; generation <= v.generation; generation++ {
		marks = append(marks, v.specMark(generation))
	}
	if v.requestsAnew(last) {
		marks = append(marks, v.requestMark())
	}
	return marks
}

// The reasons for which a CR is dirty, as the log shows them. The name of an object follows
// causeRelated, that of a CR causeRun.
const (
	causeOwnRun   = "changed by its own run"
	causeRun      = "changed by a run of "
	causeRelated  = "related: "
	causeResumed  = "resumed"
	causeSelected = "selected"
)

// cause returns why the attempt's run starts, for the log.
func (a *attempt) cause(now time.Time) string {
	switch {
	case a.finalizing():
		return "deleted"
	case a.state.isNew():
		return a.firstCause()
	default:
		return a.laterCause(now)
	}
}

// firstCause returns why the first run of the CR under this manager starts.
func (a *attempt) firstCause() string {
	conditions, _, _ := unstructured.NestedSlice(a.cr.Object, "status", "conditions")
	observed, _, _ := unstructured.NestedInt64(a.cr.Object, "status", "observedGeneration")
	switch {
	case len(conditions) == 0 && !a.wasThere:
		return "created"
	case len(conditions) == 0:
		return "restart"
	case observed != a.version.generation:
		return cmp.Or(a.writer.cause(), "changed")
	case a.dirty != "":
		return a.dirty
	case a.before.Verdict == content.Failed:
		return "retry"
	case differ(status.Digest(a.cr), a.digest):
		return "content changed"
	default:
		return "restart"
	}
}

// laterCause returns why a further run of the CR under this manager starts.
func (a *attempt) laterCause(now time.Time) string {
	last := a.state.last
	switch {
	case !a.state.version.sameSpec(a.version):
		return cmp.Or(a.writer.cause(), "changed")
	case a.dirty != "":
		return a.dirty
	case last == nil:
		return "again"
	case a.state.version.annotations != a.version.annotations:
		return cmp.Or(a.writer.cause(), "annotation")
	case last.Outcome.Verdict == content.Failed:
		return "retry"
	default:
		return a.state.rerunCause(now)
	}
}

// rerunCause returns why content runs again although nothing changed since its success.
func (st *state) rerunCause(now time.Time) string {
	switch {
	case st.due.IsZero() || now.Before(st.due):
		return "again"
	case st.last.RequeueAfter > 0:
		return "requeue_after"
	default:
		return "period"
	}
}

// differ reports whether two digests are known and different; "" is unknown.
func differ(before, after string) bool { return before != "" && after != "" && before != after }
