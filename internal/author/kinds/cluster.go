package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Finder finds kinds.
type Finder struct {
	// Watches are those of watches.yaml; nil if there is none.
	Watches []watches.Watch
	// Config reaches the cluster, which names the kinds that are not in Watches: those without a
	// watches.yaml, and those that a program watches in Go. nil: only Watches count.
	Config *rest.Config

	client discovery.CachedDiscoveryInterface
}

// All returns all watched kinds, or those of an API group that are watched or served.
func (f *Finder) All(group string) ([]Kind, error) {
	switch {
	case f.Watches != nil && group == "":
		return Watched(f.Watches), nil
	case f.Watches != nil:
		return f.watchedAndServedOf(group)
	case group == "":
		return nil, errors.New("there is no watches.yaml here that says which kinds to look at: name them (greetings, or greetings.demo.example.com), give their API group by --group, or the file by --watches-file")
	}
	return f.servedOf(group)
}

func (f *Finder) watchedAndServedOf(group string) ([]Kind, error) {
	found := slices.DeleteFunc(Watched(f.Watches), func(k Kind) bool { return k.GVK.Group != group })
	var err error
	if f.Config != nil {
		var others []Kind
		others, err = f.servedOf(group)
		for _, other := range others {
			if !slices.ContainsFunc(found, func(k Kind) bool { return k.GVK.Kind == other.GVK.Kind }) {
				found = append(found, other)
			}
		}
	}
	if len(found) > 0 {
		return found, nil // Those of watches.yaml need not be served yet.
	}
	var groups []string
	for _, watch := range f.Watches {
		groups = append(groups, watch.GVK.Group)
	}
	return nil, errors.Join(fmt.Errorf("--group=%s: watches.yaml has no kind of this group%s", group, suggest.DidYouMean(group, groups)), err)
}

func (f *Finder) servedOf(group string) ([]Kind, error) {
	if err := f.connect(); err != nil {
		return nil, err
	}
	// An aggregated API that does not answer is not asked for.
	lists, err := discovery.ServerPreferredResources(f.client)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the cluster for its kinds: %w", err)
	}
	var found []Kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || version.Group != group {
			continue
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !strings.Contains(resource.Name, "/") {
				found = append(found, served(version.WithKind(resource.Kind)))
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--group=%s: the cluster serves no kind of this group", group)
	}
	return found, nil
}

// Find returns the kind that people mean by the word. A kind that is not watched may also be named
// by its short name.
func (f *Finder) Find(word string) (Kind, error) {
	if f.Watches == nil {
		return f.served(word)
	}
	watch, err := Of(word, f.Watches)
	if err == nil || f.Config == nil {
		return Kind{Watch: watch, Known: true}, err
	}
	kind, other := f.served(word)
	if other != nil {
		return Kind{}, fmt.Errorf("%w; and %w", err, other)
	}
	return kind, nil
}

// served returns the kind that the cluster means by the word.
func (f *Finder) served(word string) (Kind, error) {
	if err := f.connect(); err != nil {
		return Kind{}, err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(f.client), f.client, nil)
	full, resource := schema.ParseResourceArg(strings.ToLower(word))
	candidates := []schema.GroupVersionResource{resource.WithVersion("")}
	if full != nil {
		candidates = append(candidates, *full)
	}
	var errs []error
	for _, candidate := range candidates {
		gvk, err := mapper.KindFor(candidate)
		if err == nil {
			return served(gvk), nil
		}
		if !meta.IsNoMatchError(err) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Kind{}, fmt.Errorf("ask the cluster for the kind %q: %w", word, err)
	}
	return Kind{}, fmt.Errorf("the cluster does not serve a kind %q%s", word, suggest.DidYouMean(word, f.names()))
}

// names returns the kinds and resources that the cluster serves, as far as it says.
func (f *Finder) names() []string {
	lists, _ := discovery.ServerPreferredResources(f.client) // Without an answer there is no suggestion.
	var names []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			names = append(names, resource.Name, resource.Kind)
		}
	}
	return names
}

func (f *Finder) connect() error {
	if f.client != nil {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(f.Config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	f.client = memory.NewMemCacheClient(client)
	return nil
}
