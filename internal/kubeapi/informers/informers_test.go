package informers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
)

var (
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobs  = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	kinds = map[schema.GroupVersionResource]string{pods: "PodList", jobs: "JobList"}
)

func object(kind, name string) *unstructured.Unstructured {
	version := map[string]string{"Pod": "v1", "Job": "batch/v1"}[kind]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"namespace": "a", "name": name},
	}}
}

// cluster is a fake API server whose answers can be errors.
type cluster struct {
	*fake.FakeDynamicClient

	mu      sync.Mutex
	refused map[string]error // by "list pods"
	asked   map[string]int
	streams []*watch.RaceFreeFakeWatcher
	frozen  chan struct{} // Watches wait for its end; nil lets them through.
}

func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{
		FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...),
		refused:           map[string]error{}, asked: map[string]int{},
	}
	c.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := c.ask("list " + action.GetResource().Resource)
		return err != nil, nil, err
	})
	c.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if err := c.ask("watch " + action.GetResource().Resource); err != nil {
			return true, nil, err
		}
		c.mu.Lock()
		frozen := c.frozen
		c.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		stream := watch.NewRaceFreeFake()
		c.streams = append(c.streams, stream)
		return true, stream, nil
	})
	return c
}

func (c *cluster) ask(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[what]++
	return c.refused[what]
}

// refuse makes both ways to follow pods fail; nil lets them work again.
func (c *cluster) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused["list pods"], c.refused["watch pods"] = err, err
}

func (c *cluster) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[what]
}

func (c *cluster) stream() *watch.RaceFreeFakeWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[len(c.streams)-1]
}

// story notes what a Set says and tells.
type story struct {
	mu     sync.Mutex
	states map[informers.Key][]informers.State
	lines  []string
	told   []string
}

func (s *story) observe(key informers.Key, state informers.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = map[informers.Key][]informers.State{}
	}
	s.states[key] = append(s.states[key], state)
}

func (s *story) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, args)
	}, funcr.Options{})
}

func (s *story) handler() toolscache.ResourceEventHandler {
	note := func(verb string, object any) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, verb+" "+accessor.GetName())
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note("added", object) },
		UpdateFunc: func(_, object any) { note("updated", object) },
		DeleteFunc: func(object any) { note("deleted", object) },
	}
}

// has counts the log lines with the text.
func (s *story) has(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, line := range s.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// play runs a Set for a test in a bubble, in which time passes at once.
func play(t *testing.T, c *cluster, options informers.Options, test func(t *testing.T, set *informers.Set, told *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		told := &story{}
		if options.Client == nil {
			options.Client = c
		}
		options.Logger, options.OnStateChange = told.logger(), told.observe
		set := informers.New(options)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- set.Start(ctx) }()
		test(t, set, told)
		cancel()
		began := time.Now()
		if err := <-ended; err != nil || time.Since(began) > time.Second {
			t.Errorf("want an end at once, got %v after %s", err, time.Since(began))
		}
	})
}

func names(i *informers.Informer) []string {
	keys := i.Store().ListKeys()
	slices.Sort(keys)
	return keys
}

func TestAnInformerLivesAsLongAsItIsUsed(t *testing.T) {
	play(t, newCluster(object("Pod", "one")), informers.Options{}, func(t *testing.T, set *informers.Set, told *story) {
		key := informers.Key{Resource: pods}
		first, release := set.Use(key, told.handler())
		second, releaseSecond := set.Use(key, nil)
		synctest.Wait()
		if first != second {
			t.Error("two users have two informers")
		}
		if diff := cmp.Diff([]string{"a/one"}, names(first)); diff != "" || !first.Synced() || first.Err() != nil {
			t.Errorf("want the informer filled and live: %s, %v, %v", diff, first.Synced(), first.Err())
		}
		release()
		release() // A second call is none of the other user's.
		synctest.Wait()
		if first.Err() != nil || len(set.Keys()) != 1 {
			t.Errorf("want the informer to go on for the second user, got %v, %v", first.Err(), set.Keys())
		}
		releaseSecond()
		synctest.Wait()
		if first.Err() == nil || len(set.Keys()) != 0 {
			t.Errorf("want the informer ended, got %v, %v", first.Err(), set.Keys())
		}
		if diff := cmp.Diff(map[informers.Key][]informers.State{key: {informers.Starting, informers.Live, informers.Ended}}, told.states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		third, releaseThird := set.Use(key, nil)
		defer releaseThird()
		synctest.Wait()
		if third == first || third.Err() != nil {
			t.Errorf("want a new informer for a new use, got %v", third.Err())
		}
	})
}

func TestAnInformerUsedBeforeStartBeginsThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(object("Pod", "one"))
		set := informers.New(informers.Options{Client: c})
		informer, _ := set.Use(informers.Key{Resource: pods, Namespace: "a"}, nil)
		synctest.Wait()
		if c.count("list pods") > 0 || informer.Synced() || informer.Err() == nil {
			t.Errorf("want nothing before the start, got %d lists, synced %v, %v", c.count("list pods"), informer.Synced(), informer.Err())
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = set.Start(ctx) }()
		synctest.Wait()
		if !informer.Synced() || informer.Err() != nil {
			t.Errorf("want the informer filled and live, got %v, %v", informer.Synced(), informer.Err())
		}
		cancel()
		synctest.Wait()
		late, release := set.Use(informers.Key{Resource: jobs}, nil)
		defer release()
		synctest.Wait()
		if c.count("list jobs") > 0 || late.Synced() {
			t.Error("an informer began after the end")
		}
	})
}

func TestHandlersGetExistingObjectsAndChanges(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, told *story) {
		key := informers.Key{Resource: pods}
		_, release := set.Use(key, nil)
		defer release()
		synctest.Wait()
		_, releaseLate := set.Use(key, told.handler())
		c.stream().Add(object("Pod", "two"))
		c.stream().Modify(object("Pod", "two"))
		c.stream().Delete(object("Pod", "one"))
		synctest.Wait()
		releaseLate()
		synctest.Wait()
		c.stream().Add(object("Pod", "three"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"added one", "added two", "updated two", "deleted one"}, told.told); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestAFailingKindIsRetriedAndAffectsNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		is     func(error) bool
		remedy string
	}{
		"the service account may not": {
			apierrors.NewForbidden(pods.GroupResource(), "", errors.New("no")), apierrors.IsForbidden, "verbs list and watch on pods by a ClusterRole",
		},
		"the kind is not served": {
			apierrors.NewNotFound(pods.GroupResource(), ""), apierrors.IsNotFound, "install its CustomResourceDefinition",
		},
		"the kind can't be listed": {
			apierrors.NewMethodNotSupported(pods.GroupResource(), "list"), apierrors.IsMethodNotSupported, "does not support list and watch",
		},
		"the credentials are wrong": {
			apierrors.NewUnauthorized("who?"), apierrors.IsUnauthorized, "credentials",
		},
		"the API server is away": {
			syscall.ECONNREFUSED, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, "see whether the API server works",
		},
		"the API server has too much to do": {
			apierrors.NewTooManyRequests("later", 1), apierrors.IsTooManyRequests, "see whether the API server works",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(object("Pod", "one"), object("Job", "two"))
			c.refuse(test.err)
			play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, told *story) {
				key := informers.Key{Resource: pods}
				bad, release := set.Use(key, nil)
				defer release()
				good, releaseGood := set.Use(informers.Key{Resource: jobs}, nil)
				defer releaseGood()
				time.Sleep(10*time.Minute + 30*time.Second)
				synctest.Wait()
				if bad.Synced() || !test.is(bad.Err()) {
					t.Errorf("want the reason of the failure, got %v (synced: %v)", bad.Err(), bad.Synced())
				}
				if !good.Synced() || good.Err() != nil || c.count("list jobs") != 1 {
					t.Errorf("want the other kind untouched, got %v after %d lists", good.Err(), c.count("list jobs"))
				}
				if n := told.has(test.remedy); n < 7 || n > 11 || told.has(`"resource"="pods"`) != n {
					t.Errorf("want about one line a minute with the remedy, got %d of %d:\n%s", n, len(told.lines), strings.Join(told.lines, "\n"))
				}
				if n := c.count("list pods"); n < 12 || n > 40 {
					t.Errorf("want attempts with pauses of up to a minute, got %d", n)
				}
				c.refuse(nil)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if !bad.Synced() || bad.Err() != nil || told.has("watched again") != 1 {
					t.Errorf("want the kind watched again, got %v; %v", bad.Err(), told.lines)
				}
				if diff := cmp.Diff([]informers.State{informers.Starting, informers.Failing, informers.Live}, told.states[key]); diff != "" {
					t.Errorf("states (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAKindThatCanBeListedButNotWatchedIsNotLive(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	c.refused["watch pods"] = apierrors.NewForbidden(pods.GroupResource(), "", errors.New("no"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, _ *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, nil)
		defer release()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !informer.Synced() || !apierrors.IsForbidden(informer.Err()) {
			t.Errorf("want the list, and that it grows old, got %v, %v", informer.Synced(), informer.Err())
		}
	})
}

func TestAnInformerIsNotLiveBetweenWatches(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, told *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, nil)
		defer release()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		c.refuse(syscall.ECONNRESET)
		c.stream().Stop() // As the API server does now and then.
		synctest.Wait()
		if !errors.Is(informer.Err(), syscall.ECONNRESET) {
			t.Errorf("want the reason, got %v", informer.Err())
		}
		c.refuse(apierrors.NewResourceExpired("too old"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		lines := told.has("cannot watch the kind")
		c.refuse(nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if informer.Err() != nil || lines != 2 {
			t.Errorf("want it live again and a line for what failed, not for what has expired; got %v, %v", informer.Err(), told.lines)
		}
	})
}

// An API server ends each watch after ten minutes at most. One that stays open longer may have
// been forgotten by it.
func TestAnInformerWithAnOldWatchIsNotLive(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, _ *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, nil)
		defer release()
		if informer.Live() {
			t.Error("live before it has a watch")
		}
		for _, wait := range []struct {
			time.Duration
			live bool
		}{{5 * time.Second, true}, {10 * time.Minute, true}, {10 * time.Minute, false}} {
			time.Sleep(wait.Duration)
			synctest.Wait()
			if informer.Live() != wait.live {
				t.Errorf("want %t after another %s", wait.live, wait)
			}
		}
		c.stream().Stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !informer.Live() {
			t.Error("not live with a new watch")
		}
	})
}

func TestAnInformerIsNotLiveWhileNobodyAnswers(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, _ *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, nil)
		defer release()
		time.Sleep(5 * time.Second)
		frozen := make(chan struct{})
		c.mu.Lock()
		c.frozen = frozen
		c.mu.Unlock()
		c.stream().Stop()
		time.Sleep(time.Minute)
		if !informer.Synced() || informer.Err() == nil {
			t.Errorf("want the store known to be old, got %v, %v", informer.Synced(), informer.Err())
		}
		close(frozen)
		synctest.Wait()
		if informer.Err() != nil {
			t.Errorf("want it live again, got %v", informer.Err())
		}
	})
}

// streaming is a client that lets informers begin by a watch, as real ones do: the
// fake says that it can't.
type streaming struct{ dynamic.Interface }

func TestStopDoesNotWaitForAttempts(t *testing.T) {
	for name, err := range map[string]error{
		"the API server is away":            syscall.ECONNREFUSED,
		"the API server has too much to do": apierrors.NewTooManyRequests("later", 1),
		"the API server is out of order":    apierrors.NewInternalError(errors.New("oh")),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.refuse(err)
			play(t, c, informers.Options{Client: streaming{c}}, func(_ *testing.T, set *informers.Set, _ *story) {
				set.Use(informers.Key{Resource: pods}, nil)
				time.Sleep(5 * time.Minute)
			})
		})
	}
}

func TestAnOlderAPIServerIsListed(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	c.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching, ok := action.(clienttesting.WatchActionImpl)
		if ok && watching.ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		}
		return false, nil, nil
	})
	play(t, c, informers.Options{Client: streaming{c}}, func(t *testing.T, set *informers.Set, told *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, nil)
		defer release()
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, names(informer)); diff != "" || informer.Err() != nil || len(told.lines) > 0 {
			t.Errorf("want it live without a word: %s, %v, %v", diff, informer.Err(), told.lines)
		}
	})
}

// Who sees it live expects it to notice what happens from then on.
func TestAnInformerThatIsBeingFilledIsNotLive(t *testing.T) {
	c := newCluster()
	play(t, c, informers.Options{Client: streaming{c}}, func(t *testing.T, set *informers.Set, told *story) {
		key := informers.Key{Resource: pods}
		_, release := set.Use(key, nil)
		defer release()
		states := func(want ...informers.State) {
			t.Helper()
			synctest.Wait()
			told.mu.Lock()
			defer told.mu.Unlock()
			if diff := cmp.Diff(want, told.states[key]); diff != "" {
				t.Error(diff)
			}
		}
		states(informers.Starting)
		c.stream().Add(object("Pod", "one"))
		c.refuse(syscall.ECONNRESET)
		c.stream().Stop()
		time.Sleep(time.Minute)
		states(informers.Starting, informers.Failing)
		c.refuse(nil)
		time.Sleep(2 * time.Minute)
		states(informers.Starting, informers.Failing)
		end := object("Pod", "")
		end.SetResourceVersion("7")
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		c.stream().Action(watch.Bookmark, end)
		states(informers.Starting, informers.Failing, informers.Live)
	})
}

// small is what a transform keeps.
type small struct{ name string }

func (s *small) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: s.name, Namespace: "a", ResourceVersion: "7"}
}

func reduce(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	switch {
	case !ok:
		return object, nil
	case full.GetName() == "broken":
		panic("broken")
	default:
		return &small{full.GetName()}, nil
	}
}

func TestWhatATransformKeeps(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{Transform: reduce}, func(t *testing.T, set *informers.Set, told *story) {
		informer, release := set.Use(informers.Key{Resource: pods}, told.handler())
		defer release()
		synctest.Wait()
		c.stream().Add(object("Pod", "two"))
		synctest.Wait()
		found, _, err := informer.Store().GetByKey("a/two")
		if diff := cmp.Diff(&small{"two"}, found, cmp.AllowUnexported(small{})); diff != "" || err != nil {
			t.Errorf("want what the transform keeps: %s, %v", diff, err)
		}
		if diff := cmp.Diff([]string{"a/one", "a/two"}, names(informer)); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		if version := informer.Store().LastStoreSyncResourceVersion(); version != "7" {
			t.Errorf("want the version of the last change, got %q", version)
		}
	})
}

// client-go's log of errors has a clock of its own, which no bubble can have.
func TestAPanicInATransformLosesOneObject(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	set := informers.New(informers.Options{Client: c, Transform: reduce})
	informer, release := set.Use(informers.Key{Resource: pods}, nil)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- set.Start(ctx) }()
	for informer.Err() != nil {
		time.Sleep(time.Millisecond)
	}
	c.stream().Add(object("Pod", "broken"))
	c.stream().Add(object("Pod", "two"))
	for len(names(informer)) < 2 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(informer)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAPanicInAHandlerLosesOneEvent(t *testing.T) {
	c := newCluster(object("Pod", "one"))
	play(t, c, informers.Options{}, func(t *testing.T, set *informers.Set, told *story) {
		told.told = append(told.told, "begin")
		_, release := set.Use(informers.Key{Resource: pods}, toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { panic("oh") }, UpdateFunc: func(_, _ any) { panic("oh") }, DeleteFunc: func(any) { panic("oh") },
		})
		defer release()
		_, releaseGood := set.Use(informers.Key{Resource: pods}, told.handler())
		defer releaseGood()
		synctest.Wait()
		c.stream().Modify(object("Pod", "one"))
		c.stream().Delete(object("Pod", "one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"begin", "added one", "updated one", "deleted one"}, told.told); diff != "" {
			t.Errorf("events of the other handler (-want +got):\n%s", diff)
		}
		if told.has("the event is lost") != 3 {
			t.Errorf("want a line for each panic, got %v", told.lines)
		}
	})
}

func TestKeysReadWell(t *testing.T) {
	for want, key := range map[string]informers.Key{
		"v1 pods":            {Resource: pods},
		"batch/v1 jobs in a": {Resource: jobs, Namespace: "a"},
	} {
		if got := key.String(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
