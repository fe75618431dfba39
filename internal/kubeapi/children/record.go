package children

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// requestTimeout ends a request that nobody answers.
const requestTimeout = 15 * time.Second

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
