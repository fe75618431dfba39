package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

func created(c *Change)  { c.Created = true }
func deleting(c *Change) { c.Deleting, c.Unchanged = true, true }

func TestAnUnknownResultExplainsOneEvent(t *testing.T) {
	all := func(w access.Write) access.Write { w.Name = ""; return w }
	for why, test := range map[string]struct {
		write access.Write
		see   []Change
		want  string
	}{
		"a deletion":                              {writing("delete", "c"), []Change{with(shown("u", "5", "a"), deleted)}, ""},
		"a deletion, then another's creation":     {writing("delete", "c"), []Change{with(shown("u", "5", "a"), deleted), with(shown("v", "6", "a"), created)}, "6"},
		"a deletion that waits for finalizers":    {writing("delete", "c"), []Change{with(shown("u", "5", "a"), deleting), with(shown("u", "7", "a"), deleted)}, ""},
		"a deletion, but another edits":           {writing("delete", "c"), []Change{shown("u", "5", "b")}, "5"},
		"a deletion of another object":            {writing("delete", "d"), []Change{with(shown("u", "5", "a"), deleted)}, "5"},
		"an eviction":                             {access.Write{Verb: "create", Resource: pods, Subresource: "eviction", Namespace: "ns", Name: "c"}, []Change{with(shown("u", "5", "a"), deleted, ofPods)}, ""},
		"an eviction, but another edits":          {access.Write{Verb: "create", Resource: pods, Subresource: "eviction", Namespace: "ns", Name: "c"}, []Change{with(shown("u", "5", "b"), ofPods)}, "5"},
		"a creation":                              {writing("create", "c"), []Change{with(shown("u", "5", "a"), created), shown("u", "6", "b")}, "6"},
		"a creation with a generated name":        {writing("create", ""), []Change{with(shown("u", "5", "a"), created), with(shown("v", "6", "a"), created)}, "6"},
		"a creation, but another deletes":         {writing("create", "c"), []Change{with(shown("u", "5", "a"), deleted)}, "5"},
		"an update":                               {writing("update", "c"), []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"an update that ends an object":           {writing("update", "c"), []Change{with(shown("u", "5", "a"), deleted)}, ""},
		"what says the same is not an event":      {writing("update", "c"), []Change{with(shown("u", "5", "a"), same), shown("u", "6", "b"), shown("u", "7", "c")}, "7"},
		"a collection's deletion, of each object": {all(writing("deletecollection", "")), []Change{with(shown("u", "5", "a"), deleted), with(shown("v", "6", "a"), deleted), with(shown("v", "7", "a"), deleted)}, "7"},
	} {
		t.Run(why, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				var l Ledger
				var foreign []Change
				pending := l.Begin(cr, test.write)
				if !late {
					foreign = l.Complete(pending, WrittenObject{})
				}
				for _, change := range test.see {
					if l.Observe(cr, change) {
						foreign = append(foreign, change)
					}
				}
				if late {
					foreign = append(foreign, l.Complete(pending, WrittenObject{})...)
				}
				if diff := cmp.Diff(test.want, versions(foreign)); diff != "" {
					t.Errorf("the answer came after the events: %v: %s", late, diff)
				}
			}
		})
	}
}

// Server-side apply that the API server refuses with a code of 500, for example, and the patch that the run sends instead.
func TestAKnownWriteSettlesAnEarlierUnknownOne(t *testing.T) {
	for why, test := range map[string]struct {
		unknown, known access.Write
		see            []Change
		want           string
	}{
		"a later edit":                          {writing("patch", "c"), writing("patch", "c"), []Change{shown("u", "5", "a"), shown("u", "6", "b")}, "6"},
		"a later edit, whose event comes first": {writing("patch", "c"), writing("patch", "c"), []Change{shown("u", "6", "b")}, "6"},
		"the unknown write, if it was applied":  {writing("patch", "c"), writing("patch", "c"), []Change{shown("u", "4", "z"), shown("u", "5", "a")}, ""},
		"not a deletion, which may come later":  {writing("delete", "c"), writing("patch", "c"), []Change{shown("u", "5", "a"), with(shown("u", "6", "a"), deleted)}, ""},
		"not a write to another object":         {writing("patch", "d"), writing("patch", "c"), []Change{with(shown("v", "6", "b"), func(c *Change) { c.Name = "d" })}, ""},
	} {
		t.Run(why, func(t *testing.T) {
			var l Ledger
			l.Complete(l.Begin(cr, test.unknown), WrittenObject{})
			l.Complete(l.Begin(cr, test.known), wrote("u", "5", "a"))
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
	t.Run("not one that ended after it began", func(t *testing.T) {
		var l Ledger
		known := l.Begin(cr, writing("patch", "c"))
		l.Complete(l.Begin(cr, writing("patch", "c")), WrittenObject{})
		l.Complete(known, wrote("u", "5", "a"))
		if l.Observe(cr, shown("u", "6", "b")) {
			t.Error("the unknown write does not explain the next change")
		}
	})
}

func TestAnUnknownResultIsForgotten(t *testing.T) {
	for why, forget := range map[string]func(*Ledger){
		"after two sweeps":                       func(l *Ledger) { l.SweepUnidentified(); l.SweepUnidentified() },
		"with its resource":                      func(l *Ledger) { l.DropResource(configs.GroupResource()) },
		"where one CR has very many of them":     func(l *Ledger) { many(l, cr) },
		"but not after one sweep":                (*Ledger).SweepUnidentified,
		"but not where another CR has many":      func(l *Ledger) { many(l, other) },
		"but not after a sweep of what is known": func(l *Ledger) { l.Sweep(); l.Sweep() },
	} {
		t.Run(why, func(t *testing.T) {
			var l Ledger
			l.Complete(l.Begin(cr, writing("update", "c")), WrittenObject{})
			forget(&l)
			if got, want := l.Observe(cr, shown("u", "5", "a")), why[:3] != "but"; got != want {
				t.Errorf("foreign: %v", got)
			}
		})
	}
}

func many(l *Ledger, of CR) {
	for range maxUnidentified {
		l.Complete(l.Begin(of, writing("update", "d")), WrittenObject{})
	}
}
