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
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

var (
	cr      = CR{schema.GroupKind{Group: "g.io", Kind: "W"}, types.NamespacedName{Namespace: "ns", Name: "w"}}
	other   = CR{schema.GroupKind{Group: "g.io", Kind: "W"}, types.NamespacedName{Namespace: "ns", Name: "v"}}
	configs = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func digest(content string) reduce.Digest {
	var d reduce.Digest
	copy(d[:], content)
	return d
}

func writing(verb, name string) access.Write {
	return access.Write{Verb: verb, Resource: configs, Namespace: "ns", Name: name}
}

func wrote(uid, version, content string) Own {
	d := digest(content)
	return Own{Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version, Digest: &d}
}

func shown(uid, version, content string) Change {
	return Change{Resource: configs.GroupResource(), Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version, Digest: digest(content)}
}

func with(change Change, edit func(*Change)) Change {
	edit(&change)
	return change
}

func first(c *Change)   { c.First = true }
func deleted(c *Change) { c.Deleted = true }
func same(c *Change)    { c.Same = true }

// versions are the resource versions of changes.
func versions(changes []Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.ResourceVersion)
	}
	return strings.Join(all, " ")
}

func TestAnsweredWrites(t *testing.T) {
	for why, test := range map[string]struct {
		own  []Own
		see  []Change
		want string // the resource versions of what is news
	}{
		"another's creation":                                {nil, []Change{shown("u", "5", "a")}, "5"},
		"what was there at the watch's beginning":           {nil, []Change{with(shown("u", "5", "a"), first)}, ""},
		"what says the same":                                {nil, []Change{with(shown("u", "5", "a"), same)}, ""},
		"another's deletion":                                {nil, []Change{with(shown("u", "5", "a"), deleted)}, "5"},
		"an own write":                                      {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "5", "a")}, ""},
		"an own write, shown after a controller's":          {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "6", "a")}, ""},
		"an own write, then another's":                      {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"an own write that another's overwrote":             {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "6", "b")}, "6"},
		"another's that an own write overwrote":             {[]Own{wrote("u", "6", "a")}, []Change{shown("u", "5", "b"), shown("u", "6", "a")}, "5"},
		"another's between two own writes":                  {[]Own{wrote("u", "5", "a"), wrote("u", "7", "c")}, []Change{shown("u", "5", "a"), shown("u", "6", "b"), shown("u", "7", "c")}, "6"},
		"a controller's between two own writes":             {[]Own{wrote("u", "5", "a"), wrote("u", "7", "c")}, []Change{shown("u", "6", "a"), shown("u", "7", "c")}, ""},
		"answers in another order than the writes":          {[]Own{wrote("u", "7", "c"), wrote("u", "5", "a")}, []Change{shown("u", "6", "a"), shown("u", "8", "c")}, ""},
		"another's that brings an earlier own content back": {[]Own{wrote("u", "5", "a"), wrote("u", "6", "b")}, []Change{shown("u", "7", "a")}, "7"},
		"another's after the watch has caught up":           {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), shown("u", "8", "b"), shown("u", "9", "a")}, "8 9"},
		"a first list older than the own write":             {[]Own{wrote("u", "5", "a")}, []Change{with(shown("u", "4", "z"), first), shown("u", "5", "a")}, ""},
		"a first list with the own write":                   {[]Own{wrote("u", "5", "a")}, []Change{with(shown("u", "5", "a"), first)}, ""},
		"a first list with another's change since":          {[]Own{wrote("u", "5", "a")}, []Change{with(shown("u", "6", "b"), first)}, "6"},
		"an own deletion":                                   {[]Own{{UID: "u", Deleted: true}}, []Change{with(shown("u", "6", "a"), deleted)}, ""},
		"an own deletion that waits for finalizers":         {[]Own{{UID: "u", ResourceVersion: "5", Deleted: true}}, []Change{shown("u", "5", "a"), shown("u", "6", "a"), with(shown("u", "7", "a"), deleted)}, "6"},
		"a deletion after an own write":                     {[]Own{wrote("u", "5", "a")}, []Change{with(shown("u", "6", "a"), deleted)}, "6"},
		"a deletion after an own write was shown":           {[]Own{wrote("u", "5", "a")}, []Change{shown("u", "5", "a"), with(shown("u", "6", "a"), deleted)}, "6"},
		"an own deletion and creation anew":                 {[]Own{{UID: "u", Deleted: true}, wrote("v", "7", "a")}, []Change{with(shown("u", "6", "a"), deleted), shown("v", "7", "a")}, ""},
		"an own deletion, and another's creation":           {[]Own{{UID: "u", Deleted: true}}, []Change{with(shown("u", "6", "a"), deleted), shown("v", "7", "a")}, "7"},
		"a write of which only the version is known":        {[]Own{{UID: "u", ResourceVersion: "5"}}, []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"an answer without UID":                             {[]Own{wrote("", "5", "a")}, []Change{shown("u", "5", "a")}, "5"},
		"versions without an order":                         {[]Own{wrote("u", "x", "a"), wrote("u", "w", "b")}, []Change{shown("u", "x", "a"), shown("u", "w", "b"), shown("u", "a", "c")}, "a"},
	} {
		t.Run(why, func(t *testing.T) {
			var l Ledger
			for _, own := range test.own {
				if news := l.Answered(l.Begin(cr, writing("update", "c")), own); news != nil {
					t.Error(news)
				}
			}
			var news []Change
			for _, change := range test.see {
				if l.See(cr, change) {
					news = append(news, change)
				}
			}
			if diff := cmp.Diff(test.want, versions(news)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangesWaitForTheirAnswer(t *testing.T) {
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
			flight := l.Begin(cr, test.write)
			if news := l.See(cr, shown("u", "5", "a")); news == test.waits {
				t.Errorf("news at once: %v", news)
			}
			if !l.See(other, shown("u", "5", "a")) {
				t.Error("it does not reach the other CR")
			}
			want := ""
			if test.waits {
				want = "5"
			}
			if diff := cmp.Diff(want, versions(l.Answered(flight))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnAnswerSettlesWhatWaits(t *testing.T) {
	var l Ledger
	one, two := l.Begin(cr, writing("create", "c")), l.Begin(cr, writing("create", "d"))
	l.See(cr, shown("u", "5", "a"))
	l.See(cr, shown("u", "6", "b"))
	l.See(cr, with(shown("v", "7", "x"), func(c *Change) { c.Name = "d" }))
	if diff := cmp.Diff("6", versions(l.Answered(one, wrote("u", "5", "a")))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("7", versions(l.Answered(two))); diff != "" {
		t.Error("nothing is known of the write, so that it is taken for another's: ", diff)
	}
	if len(l.open) != 0 || len(l.records) != 0 {
		t.Errorf("left: %v %v", l.open, l.records)
	}
}

// As by a role that applies the same each time: nothing changes, and no watch shows it.
func TestWritesThatChangeNothingAreKeptOnce(t *testing.T) {
	var l Ledger
	for range 10 {
		l.Answered(l.Begin(cr, writing("patch", "c")), wrote("u", "5", "a"))
	}
	l.Answered(l.Begin(cr, writing("patch", "c")), Own{Namespace: "ns", Name: "c", UID: "u", ResourceVersion: "5"})
	if kept := l.records[entry{cr, "u"}].writes; len(kept) != 1 {
		t.Errorf("%d are kept", len(kept))
	}
	if l.See(cr, shown("u", "6", "a")) {
		t.Error("what says the same is news")
	}
}

func TestWhatWasWrittenAndNeverShown(t *testing.T) {
	var l Ledger
	l.Answered(l.Begin(cr, writing("create", "c")), wrote("u", "5", "a"))
	l.Answered(l.Begin(cr, writing("create", "c")), wrote("v", "6", "a"))
	l.Answered(l.Begin(cr, writing("delete", "c")), Own{UID: "v", Deleted: true})
	want := map[CR][]Change{cr: {with(shown("u", "5", ""), deleted)}}
	if diff := cmp.Diff(want, l.Written(configs.GroupResource())); diff != "" {
		t.Error(diff)
	}
	l.Drop(configs.GroupResource())
	if got := l.Written(configs.GroupResource()); len(got) != 0 {
		t.Error(got)
	}
}

func TestWhatIsNeverShownIsForgotten(t *testing.T) {
	var l Ledger
	l.Answered(l.Begin(cr, writing("create", "c")), wrote("u", "5", "a"))
	l.Answered(l.Begin(cr, writing("create", "c")), wrote("v", "6", "a"))
	l.Sweep()
	l.Answered(l.Begin(cr, writing("update", "c")), wrote("v", "7", "b"))
	l.Sweep()
	if _, ok := l.records[entry{cr, "v"}]; len(l.records) != 1 || !ok {
		t.Errorf("left: %v", l.records)
	}
	l.Sweep()
	if len(l.records) != 0 {
		t.Errorf("left: %v", l.records)
	}
}

// world is an API server with one object at a time, and what it tells of it.
type world struct {
	t       *testing.T
	random  *rand.Rand
	ledger  Ledger
	version int
	// alive is the object, nil while there is none.
	alive *state
	// stream holds the states that the watch has not shown yet.
	stream []state
	// answers are those of own writes that are under way.
	answers []func() []Change
	shown   *state
	// idle is true once an own write has changed nothing.
	idle bool
	log  []string
	want []string
	got  []string
}

type state struct {
	uid, version, content string
	deleted               bool
	// foreign is true for a content, or an end, that is not the run's.
	foreign bool
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// store makes a state the object's own.
func (w *world) store(s state) {
	s.version = w.next()
	w.stream = append(w.stream, s)
	w.alive = &s
	if s.deleted {
		w.alive = nil
	}
}

// ownWrite begins, carries out at once, and lets the answer wait.
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
	flight := w.ledger.Begin(cr, writing(verb, name))
	var own Own
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
		own = Own{UID: types.UID(w.alive.uid), Deleted: true}
		gone := *w.alive
		gone.deleted, gone.foreign = true, false
		w.store(gone)
	}
	w.note("own %s %+v", verb, own)
	w.answers = append(w.answers, func() []Change { return w.ledger.Answered(flight, own) })
}

// foreignWrite is a person's: a content of its own each time, or a deletion.
func (w *world) foreignWrite() {
	s := state{uid: "uid-" + strconv.Itoa(w.version), content: "foreign " + strconv.Itoa(w.version), foreign: true}
	if w.alive != nil {
		s.uid = w.alive.uid
		s.deleted = w.random.IntN(4) == 0
	}
	w.store(s)
	w.note("foreign %+v", s)
}

// touch is what a controller does: the object says the same.
func (w *world) touch() {
	if w.alive != nil {
		w.store(*w.alive)
		w.note("touched %s", w.alive.version)
	}
}

// show lets the watch deliver. It may skip states of an object, as after a new
// list, but never its end.
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
	change.Deleted = s.deleted
	change.Same = !s.deleted && w.shown != nil && w.shown.uid == s.uid && w.shown.content == s.content
	if s.foreign && !change.Same {
		w.want = append(w.want, s.version)
	}
	w.shown = &s
	w.note("shown %+v", s)
	if w.ledger.See(cr, change) {
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

// However writes, answers and what the watch shows interleave, what others did is
// news, each change once, and what the run did is none.
func TestNewsIsWhatOthersDo(t *testing.T) {
	for seed := range uint64(30_000) {
		w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1))}
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
		sorted := cmp.Transformer("set", func(all []string) map[string]int {
			counts := map[string]int{}
			for _, v := range all {
				counts[v]++
			}
			return counts
		})
		if diff := cmp.Diff(w.want, w.got, sorted); diff != "" {
			t.Fatalf("seed %d: (-want +got)\n%s\n%s", seed, diff, strings.Join(w.log, "\n"))
		}
		if w.idle { // No watch shows what would end its note.
			w.ledger.Sweep()
			w.ledger.Sweep()
		}
		if len(w.ledger.open) != 0 || len(w.ledger.records) != 0 {
			t.Fatalf("seed %d: left: %v %v\n%s", seed, w.ledger.open, w.ledger.records, strings.Join(w.log, "\n"))
		}
	}
}
