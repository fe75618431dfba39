package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// rendered are the objects of a directory of config/, in the order in which they can be
// applied, with the image.
func rendered(root, dir, image string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	options.PluginConfig = types.DisabledPluginConfig()
	path := filepath.Join(root, "config", dir)
	found, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", path, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range found.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", path, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("render %s: %w", path, err)
		}
		if object.GetKind() == "Deployment" {
			if err := setImage(object, image); err != nil {
				return nil, fmt.Errorf("render %s: %w", path, err)
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// setImage gives the container its image, as hack/deploy.sh does.
func setImage(deployment *unstructured.Unstructured, image string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || len(containers) != 1 {
		return errors.Join(fmt.Errorf("the Deployment %s: want one container, got %d", deployment.GetName(), len(containers)), err)
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("the Deployment %s: its container is not a map", deployment.GetName())
	}
	container["image"] = image
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}
