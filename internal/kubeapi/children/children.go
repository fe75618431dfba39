package children

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
)

const (
	// defaultUnused is how long a kind is watched of which there is no child.
	defaultUnused = 10 * time.Minute
	// restoreLimit is how long controllers wait for the record of an earlier manager.
	restoreLimit = 10 * time.Second
	// longPause is how long what the API server refuses is left alone.
	longPause = 10 * time.Minute
)

// Watch is what counts here of an entry of watches.yaml.
type Watch struct {
	GVK schema.GroupVersionKind
	// Dependents lets children bring their CR back, ClusterScoped those without a
	// namespace too that only an annotation ties to it.
	Dependents, ClusterScoped bool
	// Blacklist are kinds of children that are left alone.
	Blacklist []schema.GroupKind
}

// Scope is a watched kind, and whether its CRs have a namespace.
type Scope = struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// Discovery tells what the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Record keeps the kinds of children beyond a manager's end.
type Record interface {
	// Load returns the kinds of each watch, by its name.
	Load(ctx context.Context) (map[string][]Kind, error)
	// Save keeps the kinds of one watch in place of what it kept.
	Save(ctx context.Context, watch string, kinds []Kind) error
}

// Options are the settings of Children. Informers and Reducer are required, and
// Discovery where watches have references.
type Options struct {
	// Informers have Reducer's transform.
	Informers *informers.Set
	Reducer   *reduce.Reducer
	Watches   []Watch
	// Namespaces are the only ones that are watched; none for all.
	Namespaces []string
	Discovery  Discovery
	// Record may be nil: a manager's successor then knows no kinds before its runs
	// write to children.
	Record Record
	// Unused is how long a kind is watched of which there is no child; 0 for 10
	// minutes.
	Unused time.Duration
	Logger logr.Logger
}

// limits are times that differ in tests.
type limits struct {
	// tick is how often failures and unused kinds are looked for.
	tick time.Duration
	// refusal is how long a kind may seem to be forbidden, or not served, that is to be
	// followed: an API server that starts may not know roles and kinds yet, and not
	// every one knows a new kind at once.
	refusal time.Duration
	// missed is how long a child may be absent of which no event has told: the store is
	// ahead of what is told of it by far less.
	missed time.Duration
	// retry is the first pause after a record could not be read or written, check how
	// often it is compared with what it should say.
	retry, check time.Duration
}

// Children follows the objects that CRs have to do with. It is a manager.Runnable
// and an access.Follower.
type Children struct {
	options  Options
	limits   limits
	watches  map[schema.GroupKind]Watch
	inboxes  map[schema.GroupKind]*inbox
	ledger   ledger.Ledger
	restored chan struct{}
	prodded  chan struct{}

	mu    sync.Mutex
	kinds map[schema.GroupResource]*followed
	// refused are the kinds that may not be followed, and since when.
	refused    map[schema.GroupResource]time.Time
	references references
	// scopes tell whether the CRs of a watch are namespaced, once that is known.
	scopes map[schema.GroupKind]bool
	// changed asks for the record to be written, saved is what it says.
	changed bool
	saved   map[string][]Kind
	// adopted is true once the kinds of an earlier manager are known.
	adopted bool
	// swept is when the ledger was swept last.
	swept time.Time
	// checked is when the record was read last, retry when it may be written again after
	// a failure, and pause how long that is then.
	checked, retry time.Time
	pause          time.Duration
}

// New returns Children that know no kinds yet.
func New(o Options) *Children {
	if o.Unused == 0 {
		o.Unused = defaultUnused
	}
	c := &Children{
		options: o, limits: limits{tick: time.Second, refusal: 30 * time.Second, missed: time.Second, retry: 10 * time.Second, check: time.Minute}, watches: map[schema.GroupKind]Watch{}, inboxes: map[schema.GroupKind]*inbox{}, restored: make(chan struct{}), prodded: make(chan struct{}, 1),
		kinds: map[schema.GroupResource]*followed{}, refused: map[schema.GroupResource]time.Time{}, saved: map[string][]Kind{},
		swept: time.Now(), references: newReferences(), scopes: map[schema.GroupKind]bool{},
	}
	for _, watch := range o.Watches {
		c.watches[watch.GVK.GroupKind()] = watch
		c.inboxes[watch.GVK.GroupKind()] = newInbox()
	}
	return c
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Children) NeedLeaderElection() bool { return true }

// Start takes up the kinds of an earlier manager, and then looks after those that
// are followed, until ctx ends.
func (c *Children) Start(ctx context.Context) error {
	go c.load(ctx)
	ticker := time.NewTicker(min(c.limits.tick, c.options.Unused/4))
	defer ticker.Stop()
	for {
		c.tend(time.Now())
		c.resolve(ctx)
		c.save(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-c.prodded:
		}
	}
}

// prod lets Start look at once.
func (c *Children) prod() {
	select {
	case c.prodded <- struct{}{}:
	default:
	}
}

// Follow calls changed for each CR of the watch of whose children, or of the
// objects to which it refers, there is news, one at a time, until ctx ends, and says
// what has changed, such as "Secret shop/hello-tls changed". The UID
// is "" where the object does not tell it; there may be no such CR. It returns once
// the kinds are followed that an earlier manager knew, or after a while.
func (c *Children) Follow(ctx context.Context, watch Scope, changed func(cr types.NamespacedName, uid types.UID, what string)) {
	inbox := c.inboxes[watch.GVK.GroupKind()]
	if inbox == nil {
		return
	}
	c.mu.Lock()
	c.scopes[watch.GVK.GroupKind()] = watch.Namespaced
	c.mu.Unlock()
	select {
	case <-c.restored:
	case <-time.After(restoreLimit):
	case <-ctx.Done():
		return
	}
	go inbox.deliver(ctx, changed)
}

// tell puts news of a CR where whoever follows its watch finds it.
func (c *Children) tell(cr ledger.CR, uid types.UID, what string) {
	if inbox := c.inboxes[cr.Kind]; inbox != nil {
		inbox.put(news{cr.NamespacedName, uid, what})
	}
}

// kindOf returns the name of a kind that is followed, or of its resource.
func (c *Children) kindOf(resource schema.GroupResource) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.kinds[resource]; f != nil {
		return f.kind.Kind
	}
	return resource.Resource
}

// whatOf says what a change is about, for the log.
func whatOf(kind string, change ledger.Change, created bool) string {
	verb := "changed"
	switch {
	case change.Deleted:
		verb = "was deleted"
	case created:
		verb = "was created"
	}
	return kind + " " + storeKey(change.Namespace, change.Name) + " " + verb
}
