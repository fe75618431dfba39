package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/kinds"
)

// pageSize bounds the answers of the API server.
const pageSize = 500

// Target is the selection of CRs: all CRs of a kind, or those of a name.
type Target struct {
	kinds.Kind

	Name string // "": all
}

// View says which CRs are looked at.
type View struct {
	Client  client.WithWatch
	Targets []Target
	// Namespaces are those to look in; none is all of them.
	Namespaces []string
	// Period is the manager's --reconcile-period.
	Period time.Duration
}

// ErrNotServed is wrapped by the error of a kind that the cluster does not serve.
var ErrNotServed = errors.New("its CustomResourceDefinition is missing")

// Look returns a row for each CR, by kind in the order of the targets, then by namespace and
// name. It goes on with the other targets after an error, and returns the errors of all.
func (v View) Look(ctx context.Context) (rows []Row, errs []error) {
	seen := map[types.UID]bool{} // A cluster-scoped object is found for each namespace.
	for _, target := range v.Targets {
		before := len(rows)
		var failed error
		for _, namespace := range v.namespaces() {
			found, err := v.list(ctx, target, namespace)
			failed = errors.Join(failed, err)
			for i := range found {
				if uid := found[i].GetUID(); !seen[uid] {
					seen[uid] = true
					rows = append(rows, RowOf(target.Kind, v.Period, &found[i]))
				}
			}
		}
		slices.SortFunc(rows[before:], func(a, b Row) int { return strings.Compare(a.label(), b.label()) })
		switch {
		case failed != nil:
			errs = append(errs, failed)
		case target.Name != "" && len(rows) == before && !target.seenIn(rows):
			errs = append(errs, fmt.Errorf("there is no %s %q%s", target.GVK.Kind, target.Name, v.Place()))
		}
	}
	return rows, errs
}

// seenIn reports whether an earlier target has brought the CR.
func (t Target) seenIn(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Kind == t.GVK.Kind && r.Name == t.Name })
}

func (v View) namespaces() []string {
	if len(v.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return v.Namespaces
}

// Place says where the view looks; "" is everywhere.
func (v View) Place() string {
	if len(v.Namespaces) == 0 {
		return ""
	}
	return " in namespace " + strings.Join(v.Namespaces, ", ")
}

func (v View) list(ctx context.Context, target Target, namespace string) (all []unstructured.Unstructured, err error) {
	page := listOf(target)
	for {
		options := append(target.options(namespace), client.Limit(pageSize), client.Continue(page.GetContinue()))
		switch err := v.Client.List(ctx, page, options...); {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the cluster does not serve %s: %w", target.GVK, ErrNotServed)
		case err != nil:
			return nil, fmt.Errorf("list the %s objects: %w", target.GVK.Kind, err)
		}
		all = append(all, page.Items...)
		if page.GetContinue() == "" {
			return all, nil
		}
	}
}

func listOf(target Target) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(target.GVK.GroupVersion().WithKind(target.GVK.Kind + "List"))
	return list
}

func (t Target) options(namespace string) []client.ListOption {
	options := []client.ListOption{client.InNamespace(namespace)}
	if t.Name != "" {
		options = append(options, client.MatchingFields{"metadata.name": t.Name})
	}
	return options
}
