package children

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// loadRecord watches the kinds of the record. It retries until it has read the record.
// Controllers do not wait for it once the API server has refused to show the record.
func (c *Children) loadRecord(ctx context.Context) {
	stopWaiting := sync.OnceFunc(func() { close(c.recordLoaded) })
	defer stopWaiting()
	pause := c.timing.saveRetry / 10
	for c.options.Record != nil && ctx.Err() == nil {
		kinds, err := c.options.Record.Load(ctx)
		if err == nil {
			c.watchRecorded(kinds)
			return
		}
		c.options.Logger.Info("no children are watched until a run writes to one, or the record of their kinds can be read", "error", err.Error())
		if apierrors.IsForbidden(err) {
			stopWaiting()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, maxBackoff(err))
		}
	}
}

// watchRecorded watches the kinds of the record that are still wanted.
func (c *Children) watchRecorded(recorded map[string][]Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watch := range c.options.Watches {
		name := watch.GVK.GroupKind()
		c.savedKinds[name.String()] = recorded[name.String()]
		for _, kind := range recorded[name.String()] {
			if watch.Dependents && !watch.ignores(kind) && kind.Resource != "" && kind.Version != "" {
				written := kind.Written
				kind.Written = ""
				c.watchFor(name, kind)
				c.ownership.read(written, name, kind.resource().GroupResource())
			}
		}
	}
	c.recordRead, c.lastRecordCheck = true, time.Now()
	c.recordOutdated = true // The record may have kinds that are not wanted any more.
}

// saveRecord saves the kinds of each watch for which the record is outdated. It retries a failed
// save with exponential backoff.
func (c *Children) saveRecord(ctx context.Context) {
	c.checkRecord(ctx)
	for watch, kinds := range c.unsavedKinds() {
		err := c.options.Record.Save(ctx, watch, kinds)
		if err != nil && ctx.Err() == nil {
			c.options.Logger.Info("could not note which children to watch: after a restart they are not until a run writes to one", "error", err.Error())
		}
		c.mu.Lock()
		if err == nil {
			c.savedKinds[watch], c.saveBackoff = kinds, 0
		} else {
			c.saveBackoff = min(max(c.timing.saveRetry, 2*c.saveBackoff), maxBackoff(err))
			c.recordOutdated, c.nextSave = true, time.Now().Add(c.saveBackoff)
		}
		c.mu.Unlock()
	}
}

// maxBackoff returns the longest pause after an error of the record. It is long after a refusal,
// which lasts until rights or content change. Other errors may pass at any time.
func maxBackoff(err error) time.Duration {
	if isRefusal(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return refusedBackoff
	}
	return 30 * time.Second
}

// checkRecord reads the record once per recordCheck, because it may have been changed or deleted.
func (c *Children) checkRecord(ctx context.Context) {
	c.mu.Lock()
	due := c.recordRead && time.Since(c.lastRecordCheck) > c.timing.recordCheck
	if due {
		c.lastRecordCheck = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	recorded, err := c.options.Record.Load(ctx)
	if err != nil {
		return // The next check reads it.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.watches {
		c.savedKinds[name.String()] = recorded[name.String()]
	}
	c.recordOutdated = true
}

// unsavedKinds returns the kinds of each watch for which the record has others. It returns none
// before the record has been read, and during backoff.
func (c *Children) unsavedKinds() map[string][]Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	unsaved := map[string][]Kind{}
	if !c.recordOutdated || !c.recordRead || time.Now().Before(c.nextSave) {
		return unsaved
	}
	c.recordOutdated = false
	for name := range c.watches {
		if kinds := c.kindsWatchedFor(name); !slices.Equal(kinds, c.savedKinds[name.String()]) {
			unsaved[name.String()] = kinds
		}
	}
	return unsaved
}

// kindsWatchedFor returns the kinds that are watched for a watch, sorted. The caller must hold
// the lock.
func (c *Children) kindsWatchedFor(watch schema.GroupKind) []Kind {
	var kinds []Kind
	for _, f := range c.kinds {
		if _, ok := f.uses[watch]; ok {
			kind := f.kind
			kind.Written = c.ownership.text(watch, kind.resource().GroupResource())
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return kinds
}

// requestTimeout bounds a request for the ConfigMap.
const requestTimeout = 15 * time.Second

// ConfigMap is a Record in a ConfigMap. Each key is a watch, as Kind.group, and its value is a
// JSON list of Kinds. Several operators may share a ConfigMap.
type ConfigMap struct {
	// Client is the client of ConfigMaps in the record's namespace.
	Client dynamic.ResourceInterface
	Name   string
}

// Load implements Record. A missing ConfigMap has no kinds, and neither has an entry that is not
// a list of Kinds.
func (m ConfigMap) Load(ctx context.Context) (map[string][]Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := m.Client.Get(ctx, m.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string][]Kind{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of child kinds %q: %w", m.Name, err)
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	recorded := map[string][]Kind{}
	for watch, text := range data {
		var kinds []Kind
		if json.Unmarshal([]byte(text), &kinds) == nil {
			recorded[watch] = kinds
		}
	}
	return recorded, nil
}

// Save implements Record.
func (m ConfigMap) Save(ctx context.Context, watch string, kinds []Kind) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var value any // null removes the entry
	if len(kinds) > 0 {
		text, err := json.Marshal(kinds)
		if err != nil {
			return fmt.Errorf("encode the child kinds of %s: %w", watch, err)
		}
		value = string(text)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]any{watch: value}})
	if err != nil {
		return fmt.Errorf("encode the child kinds of %s: %w", watch, err)
	}
	_, err = m.Client.Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) && value != nil {
		_, err = m.Client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": m.Name},
			"data":     map[string]any{watch: value},
		}}, metav1.CreateOptions{})
	}
	if apierrors.IsNotFound(err) && value == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the record of child kinds %q: %w", m.Name, err)
	}
	return nil
}
