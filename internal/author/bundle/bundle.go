// Package bundle makes the bundle by which the Operator Lifecycle Manager installs an operator: of the
// objects that are deployed, samples of its kinds, and words for people. It reads and writes no file, and
// does not validate the bundle.
package bundle

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Bundle is the input of a bundle.
type Bundle struct {
	// Words is the ClusterServiceVersion without the parts that come from Objects. Its name is that of the package,
	// followed by .v and the version.
	Words *unstructured.Unstructured
	// Icon is an SVG; nil is none.
	Icon []byte
	// Objects are those of the deployment, and Samples custom resources of its kinds. Samples of other
	// kinds are left out.
	Objects, Samples []*unstructured.Unstructured
	// Version replaces that of Words; "" keeps it.
	Version string
	// Channel is the one that the bundle belongs to.
	Channel string
}

// Files returns contents by their paths below the bundle's directory, which is the context of its
// image too.
func (b Bundle) Files() (map[string][]byte, error) {
	pack, version, _ := strings.Cut(b.Words.GetName(), ".v")
	if b.Version != "" {
		version = b.Version
	}
	number := strings.TrimPrefix(semver.Canonical("v"+strings.TrimPrefix(version, "v")), "v")
	if number == "" {
		return nil, fmt.Errorf("the version %q: write one such as 1.2.3 (make: VERSION=1.2.3)", version)
	}
	s := &service{roles: map[string]*unstructured.Unstructured{}, bound: map[string]bool{}}
	for _, object := range b.Objects {
		if err := s.take(object.DeepCopy()); err != nil {
			return nil, err
		}
	}
	switch {
	case len(s.owned) == 0:
		return nil, errors.New("there is no CustomResourceDefinition, and a bundle is for kinds: create api adds one")
	case len(s.deployments) == 0:
		return nil, errors.New("there is no Deployment: a bundle is made of all objects of config/default")
	}
	if err := s.permit(); err != nil {
		return nil, err
	}
	whole, err := s.complete(b, pack, number)
	if err != nil {
		return nil, err
	}
	labels := func(format string) string { return labels(format, pack, b.Channel) }
	made := map[string][]byte{
		"metadata/annotations.yaml": []byte("---\nannotations:\n" + labels("  %s: %s\n")),
		"Dockerfile": []byte("# The bundle's image: docker build -t NAME DIRECTORY. Made by `ensign bundle`.\nFROM scratch\n" +
			labels("LABEL %s=%s\n") + "COPY manifests /manifests/\nCOPY metadata /metadata/\n"),
	}
	for _, object := range append(s.rest(), whole) {
		object.SetNamespace("") // That of the Lifecycle Manager's choice.
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		made[fmt.Sprintf("manifests/%s.%s.yaml", strings.ToLower(object.GetKind()), object.GetName())] = append([]byte("---\n"), text...)
	}
	return made, nil
}

// labels formats each name and value that describe the bundle. The Lifecycle Manager reads in the
// image's metadata, and in a file of it, the kind of the image.
func labels(format, pack, channel string) string {
	var text strings.Builder
	for _, label := range [][2]string{
		{"mediatype.v1", "registry+v1"},
		{"manifests.v1", "manifests/"},
		{"metadata.v1", "metadata/"},
		{"package.v1", pack},
		{"channels.v1", channel},
		{"channel.default.v1", channel},
	} {
		fmt.Fprintf(&text, format, "operators.operatorframework.io.bundle."+label[0], label[1])
	}
	return text.String()
}
