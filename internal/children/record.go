package children

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// requestTimeout ends a request that nobody answers.
	requestTimeout = 15 * time.Second
	// retryPause is the pause after a record could not be written.
	retryPause = 10 * time.Second
)

// ConfigMap is a Record in a ConfigMap: for each watch, as Kind.group, a JSON list
// of its kinds of children. Operators may share one.
type ConfigMap struct {
	// Client is that of ConfigMaps in the record's namespace.
	Client dynamic.ResourceInterface
	Name   string
}

// Load implements Record. Where there is no ConfigMap yet, or an entry is not
// ours, there are no kinds.
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
	all := map[string][]Kind{}
	for watch, text := range data {
		var kinds []Kind
		if json.Unmarshal([]byte(text), &kinds) == nil {
			all[watch] = kinds
		}
	}
	return all, nil
}

// Save implements Record.
func (m ConfigMap) Save(ctx context.Context, watch string, kinds []Kind) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var value any // null takes the entry away
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

// load follows the kinds that an earlier manager knew. What does not answer is
// asked again.
func (c *Children) load(ctx context.Context) {
	defer close(c.restored)
	pause := time.Second
	for c.options.Record != nil && ctx.Err() == nil {
		all, err := c.options.Record.Load(ctx)
		if err == nil {
			c.adopt(all)
			return
		}
		if apierrors.IsForbidden(err) {
			c.options.Logger.Info("no children are watched until a run writes to one", "error", err.Error())
			return
		}
		c.options.Logger.V(1).Info("could not read which children to watch", "error", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, absentLimit)
		}
	}
}

func (c *Children) adopt(all map[string][]Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watch := range c.options.Watches {
		name := watch.GVK.GroupKind()
		c.saved[name.String()] = all[name.String()]
		for _, kind := range all[name.String()] {
			if watch.Dependents && kind.Resource != "" && kind.Version != "" {
				c.use(name, kind).recorded = true
			}
		}
	}
	c.changed = true // Some may not be wanted any more.
}

// save writes the record where it has changed. What can't be written is tried
// again, but for what the API server refuses.
func (c *Children) save(ctx context.Context) {
	select {
	case <-c.restored:
	default:
		return // Nothing is written before it is known what is there.
	}
	wanted := c.unsaved()
	for watch, kinds := range wanted {
		err := c.options.Record.Save(ctx, watch, kinds)
		if err != nil && ctx.Err() == nil {
			c.options.Logger.Info("could not note which children to watch: after a restart they are not until a run writes to one", "error", err.Error())
		}
		// An absent namespace, and what is forbidden, is not asked for again.
		final := err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
		c.mu.Lock()
		if final {
			c.saved[watch] = kinds
		} else {
			c.changed, c.retry = true, time.Now().Add(retryPause)
		}
		c.mu.Unlock()
	}
}

// unsaved are the watches, with their kinds, of which the record says something
// else.
func (c *Children) unsaved() map[string][]Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string][]Kind{}
	if !c.changed || c.options.Record == nil || time.Now().Before(c.retry) {
		return wanted
	}
	c.changed = false
	for name := range c.watches {
		if kinds := c.kindsOf(name); !slices.Equal(kinds, c.saved[name.String()]) {
			wanted[name.String()] = kinds
		}
	}
	return wanted
}

// kindsOf needs the lock.
func (c *Children) kindsOf(watch schema.GroupKind) []Kind {
	var kinds []Kind
	for _, f := range c.kinds {
		if _, ok := f.uses[watch]; ok {
			kinds = append(kinds, f.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return kinds
}
