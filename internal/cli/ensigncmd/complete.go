package ensigncmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/author/fleet"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/watches"
)

// completionPatience is how long a shell waits for the cluster.
const completionPatience = 2 * time.Second

// completion completes arguments KIND/NAME: kinds from watches.yaml, names from the cluster. An
// error completes nothing, without a message. everywhere looks for names in all namespaces where
// none is given.
func (f *fleetFlags) completion(everywhere bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		word, begun, named := strings.Cut(typed, "/")
		if !named {
			return f.kindsLike(word), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		names := slices.DeleteFunc(f.namesOf(ctx, word, everywhere), func(name string) bool { return !strings.HasPrefix(name, begun) })
		for i, name := range names {
			names[i] = word + "/" + name
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (f *fleetFlags) kindsLike(begun string) (words []string) {
	_, list, err := f.settings()
	if err != nil {
		return nil
	}
	for _, watch := range list {
		_, word := kinds.Words(watch.GVK.Kind)
		if slices.ContainsFunc(list, func(w watches.Watch) bool { return w.GVK.Kind == watch.GVK.Kind && w.GVK.Group != watch.GVK.Group }) {
			word = kinds.Full(watch.GVK.GroupKind())
		}
		if strings.HasPrefix(word, strings.ToLower(begun)) {
			words = append(words, word+"/")
		}
	}
	return words
}

func (f *fleetFlags) namesOf(ctx context.Context, word string, everywhere bool) (names []string) {
	c, err := f.connect()
	if err != nil {
		return nil
	}
	kind, err := c.finder.Find(word)
	if err != nil {
		return nil
	}
	view := fleet.View{Client: c.watching, Targets: []fleet.Target{{Kind: kind}}}
	switch {
	case f.namespace != "":
		view.Namespaces = []string{f.namespace}
	case !everywhere:
		view.Namespaces = []string{c.Namespace}
	}
	rows, _ := view.Look(ctx)
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return slices.Compact(names)
}
