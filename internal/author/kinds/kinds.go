// Package kinds finds the kinds that people name on the command line: among those of
// watches.yaml, or where there is none, among those that the cluster serves.
//
// It reads no objects.
package kinds

import (
	"fmt"
	"strings"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Kind is a kind of CRs.
type Kind struct {
	watches.Watch

	// Known is true if the watch is that of watches.yaml. Otherwise the cluster named the
	// kind, and nothing is known of its watch.
	Known bool
}

// Watched returns the kinds of watches.yaml.
func Watched(list []watches.Watch) []Kind {
	all := make([]Kind, len(list))
	for i, watch := range list {
		all[i] = Kind{Watch: watch, Known: true}
	}
	return all
}

// served returns a kind that the cluster named.
func served(gvk schema.GroupVersionKind) Kind {
	return Kind{Watch: watches.Watch{GVK: gvk, Selector: labels.Everything(), ManageStatus: true}}
}

// Words returns how people write a kind: mysqlclusters, mysqlcluster. It is the only guess of a plural, and is
// that of kubebuilder and controller-gen.
func Words(kind string) (plural, singular string) {
	singular = strings.ToLower(kind)
	return flect.Pluralize(singular), singular
}

// Full returns how people write a kind that has namesakes: mysqlclusters.myapp.myorg.tld.
func Full(kind schema.GroupKind) string {
	plural, _ := Words(kind.Kind)
	return strings.TrimSuffix(plural+"."+kind.Group, ".")
}

// Is reports whether people mean the kind by the word: mysqlcluster, mysqlclusters or
// mysqlcluster.myapp.myorg.tld. Capitals make no difference.
func Is(word string, kind schema.GroupKind) bool {
	name, group, hasGroup := strings.Cut(strings.ToLower(word), ".")
	plural, singular := Words(kind.Kind)
	return (name == plural || name == singular) && (!hasGroup || group == kind.Group)
}

// Of finds the watch of the kind that people mean by the word.
func Of(word string, list []watches.Watch) (watches.Watch, error) {
	known := make([]string, len(list))
	for i, watch := range list {
		if Is(word, watch.GVK.GroupKind()) {
			return watch, nil
		}
		known[i] = watch.GVK.Kind
	}
	return watches.Watch{}, fmt.Errorf("kind %q is not watched: watches.yaml has %s%s", word, strings.Join(known, ", "), suggest.DidYouMean(word, known))
}

// Split splits an argument KIND/NAME. The name is "" if the argument is a KIND.
func Split(arg string) (kind, name string, err error) {
	kind, name, named := strings.Cut(arg, "/")
	if kind == "" || named && name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is neither KIND nor KIND/NAME", arg)
	}
	return kind, name, nil
}
