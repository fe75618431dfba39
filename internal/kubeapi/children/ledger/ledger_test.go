package ledger

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

var (
	cr      = CR{schema.GroupKind{Group: "g.io", Kind: "W"}, types.NamespacedName{Namespace: "ns", Name: "w"}}
	other   = CR{schema.GroupKind{Group: "g.io", Kind: "W"}, types.NamespacedName{Namespace: "ns", Name: "v"}}
	configs = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func digest(content string) strip.Digest {
	var d strip.Digest
	copy(d[:], content)
	return d
}

func writing(verb, name string) access.Write {
	return access.Write{Verb: verb, Resource: configs, Namespace: "ns", Name: name}
}

func wrote(uid, version, content string) WrittenObject {
	d := digest(content)
	return WrittenObject{UID: types.UID(uid), ResourceVersion: version, Digest: &d}
}

func shown(uid, version, content string) Change {
	return Change{Resource: configs.GroupResource(), Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version, Digest: digest(content)}
}

func with(change Change, edits ...func(*Change)) Change {
	for _, edit := range edits {
		edit(&change)
	}
	return change
}

func ofPods(c *Change)  { c.Resource = pods.GroupResource() }
func first(c *Change)   { c.Initial = true }
func deleted(c *Change) { c.Deleted = true }
func same(c *Change)    { c.Unchanged = true }

func versions(changes []Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.ResourceVersion)
	}
	return strings.Join(all, " ")
}

func TestOnlyForeignChangesAreReported(t *testing.T) {
	for why, test := range map[string]struct {
		own  []WrittenObject
		see  []Change
		want string // the resource versions of the foreign changes
	}{
		"another's creation":                                {nil, []Change{shown("u", "5", "a")}, "5"},
		"what was there at the watch's beginning":           {nil, []Change{with(shown("u", "5", "a"), first)}, ""},
		"what says the same":                                {nil, []Change{with(shown("u", "5", "a"), same)}, ""},
		"another's deletion":                                {nil, []Change{with(shown("u", "5", "a"), deleted)}, "5"},
		"an own write":                                      {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "5", "a")}, ""},
		"an own write, shown after a controller's":          {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "6", "a")}, ""},
		"an own write, then another's":                      {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"an own write that another's overwrote":             {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "6", "b")}, "6"},
		"another's that an own write overwrote":             {[]WrittenObject{wrote("u", "6", "a")}, []Change{shown("u", "5", "b"), shown("u", "6", "a")}, "5"},
		"another's between two own writes":                  {[]WrittenObject{wrote("u", "5", "a"), wrote("u", "7", "c")}, []Change{shown("u", "5", "a"), shown("u", "6", "b"), shown("u", "7", "c")}, "6"},
		"a controller's between two own writes":             {[]WrittenObject{wrote("u", "5", "a"), wrote("u", "7", "c")}, []Change{shown("u", "6", "a"), shown("u", "7", "c")}, ""},
		"answers in another order than the writes":          {[]WrittenObject{wrote("u", "7", "c"), wrote("u", "5", "a")}, []Change{shown("u", "6", "a"), shown("u", "8", "c")}, ""},
		"another's that brings an earlier own content back": {[]WrittenObject{wrote("u", "5", "a"), wrote("u", "6", "b")}, []Change{shown("u", "7", "a")}, "7"},
		"another's after the watch has caught up":           {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), shown("u", "8", "b"), shown("u", "9", "a")}, "8 9"},
		"a first list older than the own write":             {[]WrittenObject{wrote("u", "5", "a")}, []Change{with(shown("u", "4", "z"), first), shown("u", "5", "a")}, ""},
		"a first list with the own write":                   {[]WrittenObject{wrote("u", "5", "a")}, []Change{with(shown("u", "5", "a"), first)}, ""},
		"a first list with another's change since":          {[]WrittenObject{wrote("u", "5", "a")}, []Change{with(shown("u", "6", "b"), first)}, "6"},
		"an own deletion":                                   {[]WrittenObject{{UID: "u", Deleted: true}}, []Change{with(shown("u", "6", "a"), deleted)}, ""},
		"an own deletion that waits for finalizers":         {[]WrittenObject{{UID: "u", ResourceVersion: "5", Deleted: true}}, []Change{shown("u", "5", "a"), shown("u", "6", "a"), with(shown("u", "7", "a"), deleted)}, "6"},
		"a deletion after an own write":                     {[]WrittenObject{wrote("u", "5", "a")}, []Change{with(shown("u", "6", "a"), deleted)}, "6"},
		"a deletion after an own write was shown":           {[]WrittenObject{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), with(shown("u", "6", "a"), deleted)}, "6"},
		"an own deletion and creation anew":                 {[]WrittenObject{{UID: "u", Deleted: true}, wrote("v", "7", "a")}, []Change{with(shown("u", "6", "a"), deleted), shown("v", "7", "a")}, ""},
		"an own deletion, and another's creation":           {[]WrittenObject{{UID: "u", Deleted: true}}, []Change{with(shown("u", "6", "a"), deleted), shown("v", "7", "a")}, "7"},
		"a write of which only the version is known":        {[]WrittenObject{{UID: "u", ResourceVersion: "5"}}, []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"an answer without UID":                             {[]WrittenObject{wrote("", "5", "a")}, []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"versions without an order":                         {[]WrittenObject{wrote("u", "x", "a"), wrote("u", "w", "b")}, []Change{shown("u", "x", "a"), shown("u", "w", "b"), shown("u", "a", "c")}, "a"},
	} {
		t.Run(why, func(t *testing.T) {
			var l Ledger
			for _, own := range test.own {
				if foreign := l.Complete(l.Begin(cr, writing("update", "c")), own); foreign != nil {
					t.Error(foreign)
				}
			}
			var foreign []Change
			for _, change := range test.see {
				if l.Observe(cr, change) {
					foreign = append(foreign, change)
				}
			}
			if diff := cmp.Diff(test.want, versions(foreign)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangesAreHeldUntilTheResponse(t *testing.T) {
	elsewhere := func(edit func(*access.Write)) access.Write {
		w := writing("update", "c")
		edit(&w)
		return w
	}
	for why, test := range map[string]struct {
		write access.Write
		waits bool
	}{
		"a write to the object":                    {writing("update", "c"), true},
		"a creation whose name is made":            {writing("create", ""), true},
		"a deletion of the collection":             {writing("deletecollection", ""), true},
		"a write to a subresource":                 {elsewhere(func(w *access.Write) { w.Subresource = "scale" }), true},
		"a write in another version":               {elsewhere(func(w *access.Write) { w.Resource.Version = "v2" }), true},
		"a deletion of all namespaces' collection": {elsewhere(func(w *access.Write) { w.Verb, w.Namespace, w.Name = "deletecollection", "", "" }), true},
		"a write to another object":                {writing("update", "d"), false},
		"a write in another namespace":             {elsewhere(func(w *access.Write) { w.Namespace = "other" }), false},
		"a write to another kind":                  {elsewhere(func(w *access.Write) { w.Resource.Resource = "secrets" }), false},
		"a write to another group":                 {elsewhere(func(w *access.Write) { w.Resource.Group = "g.io" }), false},
	} {
		t.Run(why, func(t *testing.T) {
			var l Ledger
			pending := l.Begin(cr, test.write)
			if foreign := l.Observe(cr, shown("u", "5", "a")); foreign == test.waits {
				t.Errorf("foreign at once: %v", foreign)
			}
			if !l.Observe(other, shown("u", "5", "a")) {
				t.Error("it does not reach the other CR")
			}
			want := ""
			if test.waits {
				want = "5"
			}
			if diff := cmp.Diff(want, versions(l.Complete(pending))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheResponseDecidesAboutHeldChanges(t *testing.T) {
	var l Ledger
	one, two := l.Begin(cr, writing("create", "c")), l.Begin(cr, writing("create", "d"))
	l.Observe(cr, shown("u", "5", "a"))
	l.Observe(cr, shown("u", "6", "b"))
	l.Observe(cr, with(shown("v", "7", "x"), func(c *Change) { c.Name = "d" }))
	if diff := cmp.Diff("6", versions(l.Complete(one, wrote("u", "5", "a")))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("7", versions(l.Complete(two))); diff != "" {
		t.Error("nothing is known of the write, so that it is taken for another's: ", diff)
	}
	if len(l.pending) != 0 || len(l.objects) != 0 {
		t.Errorf("left: %v %v", l.pending, l.objects)
	}
}

// A role that applies the same object each time changes nothing, and no watch event follows.
func TestWritesThatChangeNothingAreKeptOnce(t *testing.T) {
	var l Ledger
	for range 10 {
		l.Complete(l.Begin(cr, writing("patch", "c")), wrote("u", "5", "a"))
	}
	l.Complete(l.Begin(cr, writing("patch", "c")), WrittenObject{UID: "u", ResourceVersion: "5"})
	if kept := l.objects[objectKey{cr, "u"}].writes; len(kept) != 1 {
		t.Errorf("%d are kept", len(kept))
	}
	if l.Observe(cr, shown("u", "6", "a")) {
		t.Error("what says the same is foreign")
	}
}

func TestSweepForgetsUnobservedWrites(t *testing.T) {
	var l Ledger
	l.Complete(l.Begin(cr, writing("create", "c")), wrote("u", "5", "a"))
	l.Complete(l.Begin(cr, writing("create", "c")), wrote("v", "6", "a"))
	l.Sweep()
	l.Complete(l.Begin(cr, writing("update", "c")), wrote("v", "7", "b"))
	l.Sweep()
	if _, ok := l.objects[objectKey{cr, "v"}]; len(l.objects) != 1 || !ok {
		t.Errorf("left: %v", l.objects)
	}
	l.Sweep()
	if len(l.objects) != 0 {
		t.Errorf("left: %v", l.objects)
	}
}

// world is an API server that has one object at a time, and the watch of that object.
type world struct {
	t       *testing.T
	random  *rand.Rand
	ledger  Ledger
	version int
	// alive is the object, nil while there is none.
	alive *state
	// stream has the states that the watch has not delivered yet.
	stream []state
	// answers are the responses to pending writes of the run.
	answers []func() []Change
	shown   *state
	// idle is true once a write of the run has changed nothing.
	idle bool
	// unknown counts the writes whose answer the ledger does not get.
	unknown        int
	unknownAnswers bool
	log            []string
	want           []string
	got            []string
}

type state struct {
	uid, version, content string
	deleted               bool
	// foreign is true where somebody else than the run wrote the content, or deleted the object.
	foreign bool
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// store makes s the current state of the object.
func (w *world) store(s state) {
	s.version = w.next()
	w.stream = append(w.stream, s)
	w.alive = &s
	if s.deleted {
		w.alive = nil
	}
}

// ownWrite begins a write of the run, carries it out, and queues its response.
func (w *world) ownWrite() {
	verb := "update"
	switch {
	case w.alive == nil:
		verb = "create"
	case w.random.IntN(4) == 0:
		verb = "delete"
	}
	name := "c"
	if verb == "create" && w.random.IntN(2) == 0 {
		name = ""
	}
	pending := w.ledger.Begin(cr, writing(verb, name))
	var own WrittenObject
	switch verb {
	case "create":
		w.store(state{uid: "uid-" + strconv.Itoa(w.version), content: "own " + strconv.Itoa(w.random.IntN(3))})
		own = wrote(w.alive.uid, w.alive.version, w.alive.content)
	case "update":
		if content := "own " + strconv.Itoa(w.random.IntN(3)); content == w.alive.content {
			w.idle = true // No new version comes of it.
		} else {
			w.store(state{uid: w.alive.uid, content: content})
		}
		own = wrote(w.alive.uid, w.alive.version, w.alive.content)
	case "delete":
		own = WrittenObject{UID: types.UID(w.alive.uid), Deleted: true}
		gone := *w.alive
		gone.deleted, gone.foreign = true, false
		w.store(gone)
	}
	if w.random.IntN(8) == 0 && w.unknownAnswers {
		w.unknown++
		own = WrittenObject{}
	}
	w.note("own %s %+v", verb, own)
	w.answers = append(w.answers, func() []Change { return w.ledger.Complete(pending, own) })
}

// foreignWrite is a write by a person: new content each time, or a deletion.
func (w *world) foreignWrite() {
	s := state{uid: "uid-" + strconv.Itoa(w.version), content: "foreign " + strconv.Itoa(w.version), foreign: true}
	if w.alive != nil {
		s.uid = w.alive.uid
		s.deleted = w.random.IntN(4) == 0
	}
	w.store(s)
	w.note("foreign %+v", s)
}

// touch is a write by a controller: the digest stays the same.
func (w *world) touch() {
	if w.alive != nil {
		w.store(*w.alive)
		w.note("touched %s", w.alive.version)
	}
}

// show delivers a watch event. It may skip states of an object, as after a new
// list, but never its deletion.
func (w *world) show() {
	if len(w.stream) == 0 {
		return
	}
	if w.random.IntN(3) == 0 {
		for len(w.stream) > 1 && !w.stream[0].deleted && w.stream[0].uid == w.stream[1].uid && !w.stream[1].deleted {
			w.note("skipped %s", w.stream[0].version)
			w.stream = w.stream[1:]
		}
	}
	s := w.stream[0]
	w.stream = w.stream[1:]
	change := shown(s.uid, s.version, s.content)
	change.Deleted, change.Created = s.deleted, !s.deleted && (w.shown == nil || w.shown.uid != s.uid)
	change.Unchanged = !s.deleted && w.shown != nil && w.shown.uid == s.uid && w.shown.content == s.content
	if s.foreign && !change.Unchanged {
		w.want = append(w.want, s.version)
	}
	w.shown = &s
	w.note("shown %+v", s)
	if w.ledger.Observe(cr, change) {
		w.got = append(w.got, s.version)
	}
}

func (w *world) answer() {
	if len(w.answers) == 0 {
		return
	}
	i := w.random.IntN(len(w.answers))
	answered := w.answers[i]
	w.answers = append(w.answers[:i:i], w.answers[i+1:]...)
	w.note("answered")
	for _, change := range answered() {
		w.got = append(w.got, change.ResourceVersion)
	}
}

// play lets a world run until all answers and watch events have come.
func play(t *testing.T, seed uint64, unknownAnswers bool) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), unknownAnswers: unknownAnswers}
	for range 5 + w.random.IntN(40) {
		switch w.random.IntN(8) {
		case 0, 1:
			w.ownWrite()
		case 2:
			w.foreignWrite()
		case 3:
			w.touch()
		case 4, 5:
			w.answer()
		default:
			w.show()
		}
	}
	for len(w.answers) > 0 || len(w.stream) > 0 {
		w.answer()
		w.show()
	}
	return w
}

func counts(all []string) map[string]int {
	counts := map[string]int{}
	for _, v := range all {
		counts[v]++
	}
	return counts
}

// The ledger reports each foreign change once, and no change of the run, however writes,
// responses and watch events interleave.
func TestEveryForeignChangeIsReportedOnce(t *testing.T) {
	for seed := range uint64(30_000) {
		w := play(t, seed, false)
		if diff := cmp.Diff(counts(w.want), counts(w.got)); diff != "" {
			t.Fatalf("seed %d: (-want +got)\n%s\n%s", seed, diff, strings.Join(w.log, "\n"))
		}
		if w.idle { // No watch event comes that would make the ledger forget the write.
			w.ledger.Sweep()
			w.ledger.Sweep()
		}
		if len(w.ledger.pending) != 0 || len(w.ledger.objects) != 0 {
			t.Fatalf("seed %d: left: %v %v\n%s", seed, w.ledger.pending, w.ledger.objects, strings.Join(w.log, "\n"))
		}
	}
}

// Each write whose answer is not known hides one foreign change at most. It is reported itself
// only where it has hidden one in its place.
func TestAnUnknownAnswerHidesOneForeignChangeAtMost(t *testing.T) {
	hidden, extra := 0, 0
	for seed := range uint64(30_000) {
		w := play(t, seed, true)
		want, got := counts(w.want), counts(w.got)
		missed, more := 0, 0
		for version := range want {
			if got[version] == 0 {
				missed++
			}
		}
		for version, times := range got {
			if times > 1 {
				t.Fatalf("seed %d: %s was reported %d times\n%s", seed, version, times, strings.Join(w.log, "\n"))
			}
			if want[version] == 0 {
				more++
			}
		}
		if missed > w.unknown || more > w.unknown {
			t.Fatalf("seed %d: %d unknown answers, %d foreign changes missed, %d others reported\nwant %v\ngot %v\n%s", seed, w.unknown, missed, more, w.want, w.got, strings.Join(w.log, "\n"))
		}
		hidden, extra = hidden+missed, extra+more
		for range 2 {
			w.ledger.Sweep()
			w.ledger.SweepUnidentified()
		}
		if len(w.ledger.pending)+len(w.ledger.objects)+len(w.ledger.unidentified) != 0 {
			t.Fatalf("seed %d: left: %v %v %v", seed, w.ledger.pending, w.ledger.objects, w.ledger.unidentified)
		}
	}
	t.Logf("hidden: %d, reported instead: %d", hidden, extra)
}
