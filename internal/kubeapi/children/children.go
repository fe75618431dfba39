package children

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
)

const (
	// defaultUnusedKindTimeout is how long a kind without children stays watched.
	defaultUnusedKindTimeout = 10 * time.Minute
	// recordTimeout is how long a controller's start waits for the record of an earlier manager.
	recordTimeout = 10 * time.Second
	// refusedBackoff is the pause after the API server has refused a request for which it needs
	// other rights or content.
	refusedBackoff = 10 * time.Minute
)

// Watch has the settings of a watches.yaml entry that concern its CRs' children.
type Watch struct {
	GVK schema.GroupVersionKind
	// Dependents is true where changes of children trigger a reconcile of their CR.
	// ClusterScoped extends that to cluster-scoped children that only an annotation links to
	// the CR.
	Dependents, ClusterScoped bool
	// Blacklist has the kinds of children that do not trigger a reconcile.
	Blacklist []schema.GroupKind
	// Health is nil where the health of children does not count for their CR's Ready.
	Health *HealthRule
	// StatusFrom has the fields of children that the status of their CR shows.
	StatusFrom map[string]ChildField
	// StatusFields are the status fields of objects to which CRs refer that trigger a reconcile.
	StatusFields strip.StatusFields
}

// Scope is the kind of a watch. Namespaced is true where its CRs have a namespace.
type Scope = struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// Discovery returns the resources that the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Record saves the kinds of children for the next manager.
type Record interface {
	// Load returns the kinds of each watch. The key is the watch's GroupKind as a string.
	Load(ctx context.Context) (map[string][]Kind, error)
	// Save replaces the kinds of one watch.
	Save(ctx context.Context, watch string, kinds []Kind) error
}

// Options are the settings of Children. Informers and Transformer are required, and
// Discovery where watches have references.
type Options struct {
	// Informers must have Transformer.Transform as their transform, and Indexers.
	Informers   *informers.Set
	Transformer *strip.Transformer
	Watches     []Watch
	// Namespaces are the namespaces in which kinds are watched; none means all.
	Namespaces []string
	Discovery  Discovery
	// Record may be nil. The next manager then watches a kind only once a run has written a
	// child of it.
	Record Record
	// UnusedKindTimeout is how long a kind without children stays watched; 0 means 10 minutes.
	UnusedKindTimeout time.Duration
	// OnUnknownWrite is called for each write of a run whose result is not known; nil for none.
	OnUnknownWrite func(access.Cause)
	Logger         logr.Logger
}

// timing has the durations that tests change.
type timing struct {
	// tick is the interval of the loop in Start.
	tick time.Duration
	// refusalGrace is how long the API server may refuse a kind before it counts as refused.
	// An API server that starts may not know roles and kinds yet, and the replicas of an API
	// server learn of a new kind at different times.
	refusalGrace time.Duration
	// saveRetry is the first pause after a failure to read or write the record.
	saveRetry time.Duration
	// recordCheck is how often the record is read, to find changes that others made to it.
	recordCheck time.Duration
	// unidentified is how long a write whose result is not known explains an event, at least.
	unidentified time.Duration
	// ownership is the shortest pause between two saves of new ownership records.
	ownership time.Duration
}

// Children watches the children of CRs, and the objects to which CRs refer. It is a
// manager.Runnable and an access.WriteObserver.
type Children struct {
	options Options
	timing  timing
	watches map[schema.GroupKind]Watch
	queues  map[schema.GroupKind]*notificationQueue
	ledger  ledger.Ledger
	// recordLoaded is closed once the kinds of the record are watched, or cannot be read soon.
	recordLoaded chan struct{}
	// wake starts the next round of the loop in Start at once.
	wake chan struct{}

	mu    sync.Mutex
	kinds map[schema.GroupResource]*watchedKind
	// refused has the time since when the API server does not allow a kind to be watched.
	refused    map[schema.GroupResource]time.Time
	references references
	ownership  ownershipRecords
	healths    healths
	// namespaced says for each watch whether its CRs have a namespace. It has no entry before
	// the watch's controller calls Subscribe.
	namespaced map[schema.GroupKind]bool

	// recordOutdated is true where savedKinds may differ from the kinds to be saved.
	recordOutdated bool
	// savedKinds is the content of the record.
	savedKinds map[string][]Kind
	// recordRead is true once savedKinds has been read.
	recordRead      bool
	lastRecordCheck time.Time
	// nextSave is the earliest time of the next attempt after a failure to save, saveBackoff
	// the pause before it.
	nextSave    time.Time
	saveBackoff time.Duration

	// lastSweep and lastUnidentifiedSweep are those of the ledger.
	lastSweep, lastUnidentifiedSweep time.Time
	// loggedUnknown has the causes of unknown results that the log has.
	loggedUnknown map[access.Cause]bool
	// uncounted has the kinds of children that do not count for Ready, in words.
	uncounted map[uncounted]string
}

// New returns Children that watch no kinds yet.
func New(o Options) *Children {
	if o.UnusedKindTimeout == 0 {
		o.UnusedKindTimeout = defaultUnusedKindTimeout
	}
	c := &Children{
		options:       o,
		timing:        timing{tick: time.Second, refusalGrace: 30 * time.Second, saveRetry: 10 * time.Second, recordCheck: time.Minute, unidentified: time.Minute, ownership: 2 * time.Second},
		watches:       map[schema.GroupKind]Watch{},
		queues:        map[schema.GroupKind]*notificationQueue{},
		recordLoaded:  make(chan struct{}),
		wake:          make(chan struct{}, 1),
		kinds:         map[schema.GroupResource]*watchedKind{},
		refused:       map[schema.GroupResource]time.Time{},
		references:    newReferences(),
		namespaced:    map[schema.GroupKind]bool{},
		savedKinds:    map[string][]Kind{},
		loggedUnknown: map[access.Cause]bool{},
		uncounted:     map[uncounted]string{},
		lastSweep:     time.Now(),
	}
	for _, watch := range o.Watches {
		c.watches[watch.GVK.GroupKind()] = watch
		c.queues[watch.GVK.GroupKind()] = newNotificationQueue()
	}
	return c
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Children) NeedLeaderElection() bool { return true }

// Start watches the kinds of the record, and then maintains the watched kinds and the record
// until ctx ends.
func (c *Children) Start(ctx context.Context) error {
	go c.loadRecord(ctx)
	ticker := time.NewTicker(min(c.timing.tick, c.options.UnusedKindTimeout/4))
	defer ticker.Stop()
	for {
		c.maintain(time.Now())
		c.maintainReferences(ctx)
		c.notifyHealth(time.Now())
		c.saveRecord(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-c.wake:
		}
	}
}

// wakeUp starts the next round of the loop in Start at once.
func (c *Children) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Changed is called for a CR that has a changed child or referenced object. The third argument describes
// the change: "Secret shop/hello-tls changed by cert-manager (data.tls.crt)"; it is "" if only the
// status of children has changed. current is how many children have become Current for kstatus. The UID
// is "" if the object does not name it. There may be no such CR.
type Changed = func(cr types.NamespacedName, uid types.UID, what string, current int)

// Subscribe returns once the kinds of the record are watched, or after 10 seconds. From then on
// it calls changed, one call at a time, for the CRs of the watch, until ctx ends.
func (c *Children) Subscribe(ctx context.Context, watch Scope, changed Changed) {
	queue := c.queues[watch.GVK.GroupKind()]
	if queue == nil {
		return
	}
	c.mu.Lock()
	c.namespaced[watch.GVK.GroupKind()] = watch.Namespaced
	c.mu.Unlock()
	select {
	case <-c.recordLoaded:
	case <-time.After(recordTimeout):
	case <-ctx.Done():
		return
	}
	go queue.deliver(ctx, changed)
}

// notify adds a notification about the CR to its watch's queue.
func (c *Children) notify(cr ledger.CR, uid types.UID, what string) {
	if queue := c.queues[cr.Kind]; queue != nil {
		queue.add(notification{cr: cr.NamespacedName, uid: uid, what: what})
	}
}

// kindName returns the kind of a watched resource, or the resource's own name.
func (c *Children) kindName(resource schema.GroupResource) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.kinds[resource]; f != nil {
		return f.kind.Kind
	}
	return resource.Resource
}

// describeChange returns a text about the change, for the log.
func describeChange(kind string, change ledger.Change) string {
	verb := "changed"
	switch {
	case change.Deleted:
		verb = "was deleted"
	case change.Created && !change.Initial:
		verb = "was created"
	case change.By != "":
		verb += " by " + change.By
	}
	return kind + " " + storeKey(change.Namespace, change.Name) + " " + verb
}
