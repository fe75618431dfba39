package once

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/changes"
	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Previewer tells what a run would do.
type Previewer interface {
	Watches() []watches.Watch
	Preview(ctx context.Context, watch watches.Watch, cr *unstructured.Unstructured, owned bool) (engine.Preview, error)
}

// Previews calls show with what a run would do for each CR: those of names, as KIND/NAME, that of o.File, or with all
// those of the charts' watches, in o.Namespace if it is set. The error says why there is none.
func Previews(ctx context.Context, o Options, c client.Client, p Previewer, names []string, all bool, show func(changes.Resource)) error {
	subjects, err := subjectsOf(ctx, o, c, p.Watches(), names, all)
	if err != nil {
		return err
	}
	for _, s := range subjects {
		if ctx.Err() != nil {
			break // The others would say the same.
		}
		for _, note := range s.notes {
			fmt.Fprintln(o.Err, "note:", sanitize.Text(note))
		}
		r := changes.Resource{Resource: strings.ToLower(s.cr.GetKind()) + "/" + s.cr.GetName(), Namespace: s.cr.GetNamespace()}
		if s.cr.GetDeletionTimestamp() != nil {
			err = errors.New("the resource is being deleted: its release is uninstalled")
		} else {
			r.Preview, err = p.Preview(ctx, s.watch, s.cr, s.owned)
		}
		if err != nil {
			r.Error = err.Error()
		}
		show(r)
	}
	return ctx.Err()
}

func subjectsOf(ctx context.Context, o Options, c client.Client, list []watches.Watch, names []string, all bool) (found []subject, err error) {
	if all {
		return allOf(ctx, o, c, list)
	}
	if o.File != "" {
		names = []string{""}
	}
	for _, name := range names {
		o.Name = name
		s, err := (&reader{options: o, client: c, watches: list}).find(ctx)
		switch {
		case err != nil:
			return nil, err
		case !s.watch.ContentKind().Previews:
			return nil, fmt.Errorf("the content of %s is a role or playbook, which only a run can try: ensign run-once %s --check", s.watch.GVK.Kind, strings.TrimSpace(name+" "+fileFlag(o.File)))
		case s.cr.GetUID() == "":
			s.cr.SetUID(notStored)
		}
		found = append(found, s)
	}
	return found, nil
}

func fileFlag(file string) string {
	if file == "" {
		return ""
	}
	return "-f " + file
}

// allOf returns the CRs of charts that a manager would reconcile.
func allOf(ctx context.Context, o Options, c client.Client, list []watches.Watch) (found []subject, err error) {
	charts := 0
	for _, watch := range list {
		if !watch.ContentKind().Previews {
			fmt.Fprintf(o.Err, "note: %s is left out: its content is a role or playbook; ensign run-once --check tries one of its resources\n", sanitize.Text(watch.GVK.Kind))
			continue
		}
		charts++
		crs := &unstructured.UnstructuredList{}
		crs.SetGroupVersionKind(watch.GVK)
		if _, err := c.RESTMapper().RESTMapping(watch.GVK.GroupKind(), watch.GVK.Version); meta.IsNoMatchError(err) {
			fmt.Fprintf(o.Err, "note: the cluster does not serve %s\n", sanitize.Text(watch.GVK.String()))
			continue
		}
		if err := c.List(ctx, crs, client.InNamespace(o.Namespace)); err != nil {
			return nil, fmt.Errorf("list the resources of %s: %w", watch.GVK, err)
		}
		for i := range crs.Items {
			if one := &crs.Items[i]; watch.Selector.Matches(labels.Set(one.GetLabels())) {
				found = append(found, subject{cr: one, watch: watch, owned: true})
			}
		}
	}
	if charts == 0 {
		return nil, errors.New("watches.yaml has no chart, and diff is for charts: ensign run-once --check tries a role or playbook")
	}
	return found, nil
}
