package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// stopGrace is longer than the manager promises to take.
	stopGrace = 20 * time.Second
	// finalizeLimit is how long the manager may take to let go of an object.
	finalizeLimit = time.Minute
	pollInterval  = 200 * time.Millisecond
)

// strike takes everything down: in a cluster that is not the tour's own, what it
// created, while the manager still runs and can finalize it; then the processes.
func (s *stage) strike(ctx context.Context) error {
	var errs []error
	if s.cluster == nil {
		errs = append(errs, s.removeCreated(ctx))
	}
	if s.manager != nil {
		errs = append(errs, s.manager.Stop(stopGrace))
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// removeCreated deletes what the tour created, the last first.
func (s *stage) removeCreated(ctx context.Context) error {
	var errs []error
	for len(s.created) > 0 {
		object := s.created[len(s.created)-1]
		s.created = s.created[:len(s.created)-1]
		if err := s.remove(ctx, object); err != nil {
			errs = append(errs, fmt.Errorf("remove %q: %w", object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// remove deletes an object and waits until it is gone. When the manager does not
// finalize it, because it is broken or gone, its finalizers are dropped.
func (s *stage) remove(ctx context.Context, object client.Object) error {
	if definition, ok := object.(*definition); ok {
		used, err := s.inUse(ctx, definition)
		if err != nil || used {
			return err
		}
		object = definition.Unstructured
	}
	if err := s.client.Delete(ctx, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	finalizing, cancel := context.WithTimeout(ctx, finalizeLimit)
	defer cancel()
	if err := s.gone(finalizing, object); err == nil {
		return nil
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := s.client.Patch(ctx, object, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	return s.gone(ctx, object)
}

// gone waits until the object no longer exists.
func (s *stage) gone(ctx context.Context, object client.Object) error {
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), nil
	})
}

// inUse says whether somebody else has objects of a kind that the tour defined:
// the definition then stays, because it would take them with it.
func (s *stage) inUse(ctx context.Context, d *definition) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(d.kind())
	err := s.client.List(ctx, list)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for objects: %w", err)
	}
	if len(list.Items) > 0 {
		s.script.Say("  %s stays: there are objects of others", d.GetName())
	}
	return len(list.Items) > 0, nil
}

// definition is a CustomResourceDefinition of config/crd and its file.
type definition struct {
	*unstructured.Unstructured
	file string
}

// kind is the kind that it defines.
func (d *definition) kind() schema.GroupVersionKind {
	kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// readDefinitions reads what config/crd defines.
func readDefinitions() ([]*definition, error) {
	files, err := filepath.Glob("config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("no definitions in config/crd/bases"), err)
	}
	definitions := make([]*definition, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a definition: %w", err)
		}
		d := &definition{Unstructured: &unstructured.Unstructured{}, file: file}
		if err := yaml.Unmarshal(content, &d.Object); err != nil {
			return nil, fmt.Errorf("read %q: %w", file, err)
		}
		definitions = append(definitions, d)
	}
	return definitions, nil
}
