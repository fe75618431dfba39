package children

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/children/ledger"
	"github.com/ensign-operator/ensign/internal/children/reduce"
	"github.com/ensign-operator/ensign/internal/informers"
)

const (
	// defaultUnused is how long a kind is watched of which there is no child.
	defaultUnused = 10 * time.Minute
	// restoreLimit is how long controllers wait for the record of an earlier manager.
	restoreLimit = 10 * time.Second
	// tendInterval is how often failures and unused kinds are looked for.
	tendInterval = time.Second
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
	// Load gives the kinds of each watch, by its name.
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

// Children follows the objects that CRs have to do with. It is a manager.Runnable
// and an access.Follower.
type Children struct {
	options  Options
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
	// retry is when the record may be written again after a failure.
	retry time.Time
}

// New returns Children that know no kinds yet.
func New(o Options) *Children {
	if o.Unused == 0 {
		o.Unused = defaultUnused
	}
	c := &Children{
		options: o, watches: map[schema.GroupKind]Watch{}, inboxes: map[schema.GroupKind]*inbox{}, restored: make(chan struct{}), prodded: make(chan struct{}, 1),
		kinds: map[schema.GroupResource]*followed{}, refused: map[schema.GroupResource]time.Time{}, saved: map[string][]Kind{},
		references: newReferences(), scopes: map[schema.GroupKind]bool{},
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
	ticker := time.NewTicker(min(tendInterval, c.options.Unused/4))
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
// objects to which it refers, there is news, one at a time, until ctx ends. The UID
// is "" where the object does not tell it; there may be no such CR. It returns once
// the kinds are followed that an earlier manager knew, or after a while.
func (c *Children) Follow(ctx context.Context, watch Scope, changed func(cr types.NamespacedName, uid types.UID)) {
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

// Writing implements access.Follower.
func (c *Children) Writing(session *access.Session, write access.Write) (answered func(access.Answer)) {
	owner := session.Owner
	watch, ok := c.watches[owner.GVK.GroupKind()]
	if !ok {
		return func(access.Answer) {}
	}
	if write.Resource.Group == "" && write.Resource.Resource == "namespaces" {
		write.Namespace = "" // RequestInfo has the name there.
	}
	cr := ledger.CR{Kind: owner.GVK.GroupKind(), NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}}
	flight := c.ledger.Begin(cr, write)
	return func(answer access.Answer) {
		for _, change := range c.ledger.Answered(flight, c.own(watch, owner, write, answer)...) {
			c.tell(cr, change.Owner)
		}
	}
}

// Ended implements access.Follower. What the run wrote is remembered for as long
// as its events may come.
func (c *Children) Ended(*access.Session) {}

// own is what the answer says of the CR's own write. A kind that is not followed
// by then needs no notes.
func (c *Children) own(watch Watch, owner access.Owner, write access.Write, answer access.Answer) []ledger.Own {
	if !answer.OK() {
		return nil // Refused, or nobody knows.
	}
	ends := write.Verb == "delete" || write.Verb == "deletecollection"
	if !ends && write.Subresource == "" {
		for _, object := range answer.Objects {
			if by, ok := tie(owner, object); ok {
				c.child(watch, write, object, by)
			}
		}
	}
	if !c.follows(write.Resource.GroupResource()) {
		return nil
	}
	var own []ledger.Own
	for _, object := range answer.Objects {
		o := ledger.Own{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
			// The write that takes the last finalizer away is the one that ends it.
			Deleted: ends || object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0,
		}
		if reduced, err := c.options.Reducer.Object(object); err == nil && write.Subresource == "" && !ends {
			o.Digest = &reduced.Digest
		}
		own = append(own, o)
	}
	if ends && len(own) == 0 && answer.UID != "" {
		own = append(own, ledger.Own{Namespace: write.Namespace, Name: write.Name, UID: answer.UID, Deleted: true})
	}
	return own
}

// tell puts news of a CR where whoever follows its watch finds it.
func (c *Children) tell(cr ledger.CR, uid types.UID) {
	if inbox := c.inboxes[cr.Kind]; inbox != nil {
		inbox.put(news{cr.NamespacedName, uid})
	}
}

// news is that something of a CR has changed.
type news struct {
	cr  types.NamespacedName
	uid types.UID
}

// inbox holds the news of one watch, each once, in the order in which it came.
type inbox struct {
	mu      sync.Mutex
	waiting []news
	arrived chan struct{}
}

func newInbox() *inbox { return &inbox{arrived: make(chan struct{}, 1)} }

func (i *inbox) put(n news) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Contains(i.waiting, n) {
		i.waiting = append(i.waiting, n)
	}
	select {
	case i.arrived <- struct{}{}:
	default:
	}
}

func (i *inbox) take() (first news, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 {
		return news{}, false
	}
	first, i.waiting = i.waiting[0], i.waiting[1:]
	return first, true
}

func (i *inbox) deliver(ctx context.Context, changed func(types.NamespacedName, types.UID)) {
	for ctx.Err() == nil {
		if n, ok := i.take(); ok {
			changed(n.cr, n.uid)
			continue
		}
		select {
		case <-ctx.Done():
		case <-i.arrived:
		}
	}
}
