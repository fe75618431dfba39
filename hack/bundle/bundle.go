package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// labels formats each name and value that describe the bundle. The Lifecycle Manager reads in the
// image's metadata, and in a file of it, the kind of the image.
func labels(format string) string {
	var text strings.Builder
	for _, label := range [][2]string{
		{"mediatype.v1", "registry+v1"},
		{"manifests.v1", "manifests/"},
		{"metadata.v1", "metadata/"},
		{"package.v1", "ensign"},
		{"channels.v1", "candidate"},
		{"channel.default.v1", "candidate"},
	} {
		fmt.Fprintf(&text, format, "operators.operatorframework.io.bundle."+label[0], label[1])
	}
	return text.String()
}

// bundle makes bundle/, which is the context of its image too.
func bundle(root, image, version string) (files, error) {
	s, err := newService(root)
	if err != nil {
		return nil, err
	}
	if version != "" {
		if err := s.number(version); err != nil {
			return nil, err
		}
	}
	objects, err := rendered(root, "default", image)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := s.take(object); err != nil {
			return nil, err
		}
	}
	if err := s.permit(); err != nil {
		return nil, err
	}
	var samples []*unstructured.Unstructured
	for _, dir := range []string{"samples", "samples/restore"} {
		more, err := rendered(root, dir, image)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	if err := s.exemplify(samples); err != nil {
		return nil, err
	}
	return s.files()
}

func (s *service) files() (files, error) {
	made := files{"bundle/metadata/annotations.yaml": annotations(), "bundle/Dockerfile": dockerfile()}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.ClusterServiceVersion)
	if err != nil {
		return nil, err
	}
	delete(whole, "status")
	objects := append([]*unstructured.Unstructured{{Object: whole}}, s.others...)
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		objects = append(objects, s.roles[name])
	}
	for _, object := range objects {
		object.SetNamespace("") // That of the Lifecycle Manager's choice.
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("bundle/manifests/%s.%s.yaml", strings.ToLower(object.GetKind()), object.GetName())
		made[name] = append([]byte("---\n"), text...)
	}
	return made, nil
}

func annotations() []byte { return []byte("---\nannotations:\n" + labels("  %s: %s\n")) }

func dockerfile() []byte {
	return []byte("# The bundle's image: docker build -t NAME dist/bundle. Made by `make bundle`.\nFROM scratch\n" +
		labels("LABEL %s=%s\n") + "COPY manifests /manifests/\nCOPY metadata /metadata/\n")
}
