package readcache_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/readcache"
)

// of is a write to config maps in namespace a.
func of(verb, name string) access.Write {
	return access.Write{Verb: verb, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "a", Name: name}
}

func ok(objects ...*unstructured.Unstructured) access.Answer {
	return access.Answer{Code: http.StatusOK, Objects: objects}
}

// amended gives an object with other metadata.
func amended(o *unstructured.Unstructured, metadata map[string]any) *unstructured.Unstructured {
	o = o.DeepCopy()
	maps.Copy(o.Object["metadata"].(map[string]any), metadata)
	return o
}

// TestWhatARunMustSee lets a run write while no watch tells of it, and says what
// reads come to.
func TestWhatARunMustSee(t *testing.T) {
	const one, all, other, everywhere, elsewhere = configMaps + "/one", configMaps, configMaps + "/other", "/api/v1/configmaps", "/api/v1/namespaces/b/configmaps"
	// A list by a label that no object has, so that no read of it shows what was written.
	const labeled = all + "?labelSelector=app%3Dx"
	in := func(paths []string, path string) bool {
		return slices.Contains(paths, path) || path == labeled && slices.Contains(paths, all)
	}
	deleted := map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}
	for name, test := range map[string]struct {
		// write changes the API server and answers.
		write func(s *apiServer) (access.Write, access.Answer)
		// late are read live until the watch has told of the write, live after it too,
		// the rest is answered.
		late, live []string
	}{
		"a change": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("update", "one"), ok(s.put("configmaps", "a", "one", nil, "2"))
			}, []string{one, all, other, everywhere}, nil,
		},
		"a change of which a subresource answers": {
			func(s *apiServer) (access.Write, access.Answer) {
				write := of("patch", "one")
				write.Subresource = "status"
				return write, ok(s.put("configmaps", "a", "one", nil, "2"))
			}, []string{one, all, other, everywhere}, nil,
		},
		"a new object whose name the API server made": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("create", ""), ok(s.put("configmaps", "a", "made", nil, "2"))
			}, []string{one, all, other, everywhere}, nil,
		},
		"a change by another version of the kind": {
			func(s *apiServer) (access.Write, access.Answer) {
				write := of("update", "one")
				write.Resource.Version = "v0"
				return write, ok(s.put("configmaps", "a", "one", nil, "2"))
			}, []string{one, all, other, everywhere}, nil,
		},
		"a deletion, with a Status": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("delete", "one"), access.Answer{Code: http.StatusOK, UID: types.UID(s.remove("a/one"))}
			}, []string{one, all, everywhere}, nil,
		},
		"a deletion, with the object as it was": {
			func(s *apiServer) (access.Write, access.Answer) {
				object := (&unstructured.Unstructured{Object: s.resources["configmaps"].objects["a/one"]}).DeepCopy()
				s.remove("a/one")
				return of("delete", "one"), ok(object)
			}, []string{one, all, everywhere}, nil,
		},
		"a deletion that waits for finalizers": {
			func(s *apiServer) (access.Write, access.Answer) {
				object := s.put("configmaps", "a", "one", nil, "2")
				return of("delete", "one"), ok(amended(amended(object, deleted), map[string]any{"finalizers": []any{"x"}}))
			}, []string{one, all, other, everywhere}, nil,
		},
		"a deletion that waits for its grace": {
			func(s *apiServer) (access.Write, access.Answer) {
				object := s.put("configmaps", "a", "one", nil, "2")
				return of("delete", "one"), ok(amended(amended(object, deleted), map[string]any{"deletionGracePeriodSeconds": int64(30)}))
			}, []string{one, all, other, everywhere}, nil,
		},
		"the removal of the last finalizer": {
			func(s *apiServer) (access.Write, access.Answer) {
				object := (&unstructured.Unstructured{Object: s.resources["configmaps"].objects["a/one"]}).DeepCopy()
				s.remove("a/one")
				return of("patch", "one"), ok(amended(object, deleted))
			}, []string{one, all, everywhere}, nil,
		},
		"a write that changed nothing": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("patch", "one"), ok((&unstructured.Unstructured{Object: s.resources["configmaps"].objects["a/one"]}).DeepCopy())
			}, nil, nil,
		},
		"a write that was refused": {
			func(*apiServer) (access.Write, access.Answer) {
				return of("create", "one"), access.Answer{Code: http.StatusConflict}
			}, nil, nil,
		},
		"a command in a container": {
			func(*apiServer) (access.Write, access.Answer) {
				write := of("create", "one")
				write.Subresource = "exec"
				return write, access.Answer{Code: http.StatusSwitchingProtocols}
			}, nil, nil,
		},
		"a write to another kind": {
			func(s *apiServer) (access.Write, access.Answer) {
				write := of("update", "one")
				write.Resource = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
				return write, ok(s.put("widgets", "a", "one", nil, "2"))
			}, nil, nil,
		},
		"a write in another namespace": {
			func(s *apiServer) (access.Write, access.Answer) {
				write := of("update", "far")
				write.Namespace = "b"
				return write, ok(s.put("configmaps", "b", "far", nil, "2"))
			}, []string{everywhere, elsewhere}, nil,
		},
		"a write whose answer is nothing": {
			func(*apiServer) (access.Write, access.Answer) { return of("update", "one"), access.Answer{} },
			nil, []string{one, all, other, everywhere, elsewhere},
		},
		"a write that may have failed": {
			func(*apiServer) (access.Write, access.Answer) {
				return of("update", "one"), access.Answer{Code: http.StatusGatewayTimeout}
			}, nil, []string{one, all, other, everywhere, elsewhere},
		},
		"a write whose answer can't be read": {
			func(*apiServer) (access.Write, access.Answer) { return of("update", "one"), ok() },
			nil, []string{one, all, other, everywhere, elsewhere},
		},
		"an object without a version": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("update", "one"), ok(amended(s.put("configmaps", "a", "one", nil, "2"), map[string]any{"resourceVersion": ""}))
			}, nil, []string{one, all, other, everywhere, elsewhere},
		},
		"an object with a version that is no number": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("update", "one"), ok(amended(s.put("configmaps", "a", "one", nil, "2"), map[string]any{"resourceVersion": "v7"}))
			}, nil, []string{one, all, other, everywhere, elsewhere},
		},
		"a deletion of many": {
			func(s *apiServer) (access.Write, access.Answer) {
				return of("deletecollection", ""), ok(s.put("configmaps", "a", "one", nil, "2"))
			}, nil, []string{one, all, other, everywhere, elsewhere},
		},
		"a deletion of many that was refused on its way": {
			func(*apiServer) (access.Write, access.Answer) {
				return of("deletecollection", ""), access.Answer{Code: http.StatusConflict}
			}, nil, []string{one, all, other, everywhere, elsewhere},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, readcache.Options{})
			paths := []string{one, all, labeled, other, everywhere, elsewhere}
			for _, o := range []string{"a/one", "a/other", "b/far"} {
				namespace, name, _ := strings.Cut(o, "/")
				b.server.put("configmaps", namespace, name, nil, "1")
			}
			b.await(one)
			b.server.delay(1000)

			write, answer := test.write(b.server)
			own := b.session
			answered := b.Writing(own, write)
			for _, path := range paths {
				if _, ok := b.get(path); ok && write.Resource.Resource == "configmaps" && write.Subresource != "exec" {
					t.Errorf("%s was answered while the write was under way", path)
				}
			}
			answered(answer)
			for _, session := range []*access.Session{own, {}} {
				b.session = session
				for _, path := range paths {
					if _, ok := b.get(path); ok == (in(test.late, path) || in(test.live, path)) {
						t.Errorf("before the watch %s was answered: %v (to another run: %v)", path, ok, session != own)
					}
				}
			}
			b.server.delay(0)
			b.server.put("configmaps", "a", "marker", nil, "")
			b.clock.Step(90 * time.Second) // Then no write of doubt is on its way any more.
			b.await(configMaps + "/marker")
			b.session = own
			gone := b.server.resources["configmaps"].objects["a/one"] == nil
			for _, path := range paths {
				want := !in(test.live, path) && !(gone && path == one)
				if _, ok := b.get(path); ok != want {
					t.Errorf("after the watch: %s was answered: %v", path, ok)
				}
			}
		})
	}
}

func TestWhatASessionLeavesBehind(t *testing.T) {
	for name, test := range map[string]struct {
		answers func(answered func(access.Answer))
		doubt   bool
	}{
		"a write without an answer":     {func(func(access.Answer)) {}, true},
		"a write of unknown outcome":    {func(answered func(access.Answer)) { answered(access.Answer{}) }, true},
		"a write that was not made":     {func(answered func(access.Answer)) { answered(access.Answer{Code: http.StatusForbidden}) }, false},
		"an answer that comes too late": {func(answered func(access.Answer)) { time.AfterFunc(0, func() { answered(access.Answer{Code: 500}) }) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, readcache.Options{})
			b.server.put("configmaps", "a", "one", nil, "1")
			b.await(configMaps + "/one")
			test.answers(b.Writing(b.session, of("update", "one")))
			b.Ended(b.session)
			b.session = &access.Session{}
			if _, ok := b.get(configMaps + "/one"); ok == test.doubt {
				t.Errorf("answered: %v", ok)
			}
			b.clock.Step(89 * time.Second)
			if _, ok := b.get(configMaps + "/one"); ok == test.doubt {
				t.Errorf("answered 89 s later: %v", ok)
			}
			eventually(t, "the end of doubt", func() bool {
				b.clock.Step(time.Second)
				_, ok := b.get(configMaps + "/one")
				return ok
			})
		})
	}
}

func TestWritesAreForgotten(t *testing.T) {
	b := start(t, readcache.Options{})
	object := b.server.put("configmaps", "a", "one", nil, "1")
	b.await(configMaps + "/one")
	b.Writing(b.session, of("update", "one"))(ok(amended(object, map[string]any{"resourceVersion": "100000"})))
	b.Writing(b.session, of("delete", "one"))(access.Answer{Code: http.StatusOK, UID: object.GetUID()})
	for range 9 {
		b.clock.Step(time.Minute)
		if _, ok := b.get(configMaps + "/one"); ok {
			t.Fatal("a write was forgotten too soon")
		}
	}
	eventually(t, "the end of its memory", func() bool {
		b.clock.Step(time.Minute)
		_, ok := b.get(configMaps)
		return ok
	})
}

// world is an API server with a memory of all that it held, for a random test.
type world struct {
	*bench

	random   *rand.Rand
	sessions []*access.Session
	// history is the state after each revision.
	history map[int]map[string]map[string]any
	// due is the last revision that a run made of each object, known or not.
	due  map[string]int
	hits int
}

func (w *world) remember() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.history[w.server.revision] = maps.Clone(w.server.resources["configmaps"].objects)
}

// step lets somebody write something.
func (w *world) step() {
	namespace, name := []string{"a", "b"}[w.random.IntN(2)], string(rune('p'+w.random.IntN(4)))
	key := namespace + "/" + name
	labels := map[string]string{"app": string(rune('x' + w.random.IntN(2)))}
	write := of("update", name)
	write.Namespace = namespace
	if w.random.IntN(3) == 0 {
		write.Verb = "delete"
	}
	var answer access.Answer
	act := func() {
		if write.Verb == "update" {
			answer = ok(w.server.put("configmaps", namespace, name, labels, fmt.Sprint(w.random.Int())))
			return
		}
		uid := w.server.remove(key)
		answer = access.Answer{Code: http.StatusOK, UID: types.UID(uid)}
		if uid == "" {
			answer = access.Answer{Code: http.StatusNotFound}
		}
	}
	if w.random.IntN(4) == 0 {
		act() // A stranger.
		w.remember()
		return
	}
	answered := w.Writing(w.sessions[w.random.IntN(len(w.sessions))], write)
	if w.random.IntN(2) == 0 {
		w.read()
	}
	act()
	w.remember()
	if answer.Code == http.StatusOK {
		w.due[key] = w.server.revision
	}
	if w.random.IntN(50) == 0 {
		answer = access.Answer{} // It got lost.
	}
	answered(answer)
}

// read reads something and holds an answer against history.
func (w *world) read() {
	w.session = w.sessions[w.random.IntN(len(w.sessions))]
	namespace := []string{"a", "b"}[w.random.IntN(2)]
	name := string(rune('p' + w.random.IntN(4)))
	switch w.random.IntN(4) {
	case 0:
		w.readList("/api/v1/configmaps", "", "")
	case 1:
		w.readList("/api/v1/namespaces/"+namespace+"/configmaps", namespace+"/", "")
	case 2:
		w.readList("/api/v1/namespaces/"+namespace+"/configmaps?labelSelector=app%3Dx", namespace+"/", "x")
	default:
		body, ok := w.get("/api/v1/namespaces/" + namespace + "/configmaps/" + name)
		if ok {
			w.hits++
			w.checkObject(namespace+"/"+name, body)
		}
	}
}

// settle gives a watch the time to tell of all but some changes.
func (w *world) settle(late int) {
	w.server.delay(late)
	eventually(w.t, "what is not late", func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return w.server.told >= len(w.server.resources["configmaps"].changes)-late
	})
	for range 10 {
		time.Sleep(500 * time.Microsecond)
		w.read()
	}
}

// arrive waits until the watch has told of everything: the last is a large object
// that comes and goes.
func (w *world) arrive() {
	const large = 300 << 10
	w.server.delay(0)
	w.server.put("configmaps", "c", "marker", nil, strings.Repeat("x", large))
	w.remember()
	eventually(w.t, "the last change", func() bool { return w.Bytes() > large })
	w.server.remove("c/marker")
	w.remember()
	eventually(w.t, "the last change", func() bool { return w.Bytes() < large })
}

func (w *world) checkObject(key, body string) {
	w.t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		w.t.Fatal(err)
	}
	for revision, state := range w.history {
		if revision >= w.due[key] && cmp.Equal(state[key], got) {
			return
		}
	}
	w.t.Fatalf("%s was never so since revision %d, when a run wrote it: %s", key, w.due[key], body)
}

func (w *world) readList(path, prefix, app string) {
	w.t.Helper()
	body, ok := w.get(path)
	if !ok {
		return
	}
	w.hits++
	var got struct {
		Metadata struct {
			ResourceVersion int `json:"resourceVersion,string"`
		} `json:"metadata"`
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		w.t.Fatal(err)
	}
	// The objects are of one state, and that is not older than the list says.
	for revision, state := range w.history {
		if revision < got.Metadata.ResourceVersion || !w.since(revision, prefix) {
			continue
		}
		var want []map[string]any
		for _, key := range slices.Sorted(maps.Keys(state)) {
			o := unstructured.Unstructured{Object: state[key]}
			if strings.HasPrefix(key, prefix) && (app == "" || o.GetLabels()["app"] == app) {
				plain := maps.Clone(state[key])
				delete(plain, "apiVersion")
				delete(plain, "kind")
				want = append(want, plain)
			}
		}
		if len(want) == len(got.Items) && (len(want) == 0 || cmp.Equal(want, got.Items)) {
			return
		}
	}
	w.t.Fatalf("%s is of no state since revision %d and the last writes of runs, %v: %s", path, got.Metadata.ResourceVersion, w.due, body)
}

// since tells whether a revision is not before any write of a run below the prefix.
func (w *world) since(revision int, prefix string) bool {
	for key, due := range w.due {
		if strings.HasPrefix(key, prefix) && revision < due {
			return false
		}
	}
	return true
}

// TestNoReadIsOlderThanTheWritesOfRuns writes at random, by runs and strangers, with
// watches that tell late and answers that get lost. Each answer must be a state that
// was, and none from before a run's write.
func TestNoReadIsOlderThanTheWritesOfRuns(t *testing.T) {
	hits := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := &world{
				bench: start(t, readcache.Options{}), random: rand.New(rand.NewPCG(seed, 7)),
				history: map[int]map[string]map[string]any{}, due: map[string]int{},
			}
			w.sessions = []*access.Session{{}, {}, {}}
			w.server.put("configmaps", "a", "p", nil, "")
			w.remember()
			w.session = w.sessions[0]
			w.await("/api/v1/configmaps")
			for range 300 {
				w.step()
				w.server.delay(w.random.IntN(6))
				for range w.random.IntN(4) {
					w.read()
				}
				switch w.random.IntN(20) {
				case 0: // A run ends and another begins.
					i := w.random.IntN(len(w.sessions))
					w.Ended(w.sessions[i])
					w.sessions[i] = &access.Session{}
				case 1: // Doubts pass. No watch is so late that they pass before it tells.
					w.arrive()
					w.clock.Step(2 * time.Minute)
				case 2, 3, 4:
					w.settle(w.random.IntN(2))
				}
			}
			hits += w.hits
		})
	}
	t.Logf("%d reads were answered", hits)
	if hits < 50*seeds {
		t.Errorf("only %d reads were answered: the test shows too little", hits)
	}
}
