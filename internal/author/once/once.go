package once

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// ErrFailed is returned for a run that did not succeed. The screen has said why.
var ErrFailed = errors.New("the run did not succeed")

// Options say which CR the content runs for, and how.
type Options struct {
	// File is a file with the CR, "-" for Input. Name is "KIND/NAME" of a CR in the cluster.
	// One of the two is set.
	File, Name string
	// Namespace is that of a CR that names none.
	Namespace string
	// Finalize runs the content of the watch's finalizer.
	Finalize bool
	// Status writes the result to the status of a CR in the cluster.
	Status bool
	// Diffs shows what tasks changed, as far as their modules tell.
	Diffs bool
	// Watch runs again when a file of the content, or File, changes, until the context ends.
	Watch bool

	Input []byte
	// Out gets the output of runs, Err further messages for the reader.
	Out, Err io.Writer
	// Palette has the colours of Out.
	Palette terminal.Palette
}

// LocalRunner makes the parts that runs need.
type LocalRunner interface {
	Watches() []watches.Watch
	// ContentPaths are the files and directories that runs may read.
	ContentPaths() []string
	Reconciler(watch watches.Watch, owned bool, observer engine.Observer) (*controller.Reconciler, error)
	// NotFound reports whether a run of a CR that is not owned has asked for the object of a path of
	// the API server, which does not have it.
	NotFound(path string) bool
}

// Run runs the content once, or with o.Watch again and again. It returns nil if the last
// run succeeded, ErrFailed if it did not, and another error if none could begin.
func Run(ctx context.Context, o Options, c client.Client, bench LocalRunner) error {
	r := reader{options: o, client: c, watches: bench.Watches()}
	if !o.Watch {
		return runOnce(ctx, o, &r, bench)
	}
	files, err := newFiles()
	if err != nil {
		return err
	}
	defer files.close()
	for {
		if err := files.watch(o, bench.ContentPaths()); err != nil {
			return err
		}
		err := runOnce(ctx, o, &r, bench)
		if err != nil && !errors.Is(err, ErrFailed) {
			if r.last == nil || ctx.Err() != nil { // Nothing has run: an edit of a role would not help.
				return err
			}
			fmt.Fprintln(o.Err, sanitize.Text(err.Error()))
		}
		fmt.Fprintln(o.Err, "waiting for a change of a file; Ctrl-C ends")
		changed, ok := files.changed(ctx)
		if !ok {
			return err
		}
		fmt.Fprintf(o.Err, "\n%s has changed\n", sanitize.Text(changed))
	}
}

// Check returns why no run can begin, as far as that is known without the content.
func Check(ctx context.Context, o Options, c client.Client, list []watches.Watch) error {
	r := reader{options: o, client: c, watches: list}
	_, err := r.read(ctx)
	return err
}

func runOnce(ctx context.Context, o Options, r *reader, bench LocalRunner) error {
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	for _, note := range s.notes {
		fmt.Fprintln(o.Err, "note:", sanitize.Text(note))
	}
	screen := newScreen(o)
	reconciler, err := bench.Reconciler(s.watch, s.owned, screen)
	if err != nil {
		return err
	}
	outcome, err := reconciler.RunOnce(ctx, controller.Once{CR: s.cr, Finalizing: o.Finalize, ReportStatus: o.Status})
	if err != nil {
		return err
	}
	if !screen.ran {
		screen.refused(outcome)
	}
	if !s.owned && bench.NotFound(pathOf(r.client, s.cr)) {
		fmt.Fprintln(o.Err, "note:", sanitize.Text(wayOut(o, s.cr)))
	}
	if outcome.Verdict != content.Succeeded {
		return ErrFailed
	}
	return nil
}

// pathOf returns the path of the CR at the API server; "" if that does not serve its kind.
func pathOf(c client.Client, cr *unstructured.Unstructured) string {
	gvk := cr.GroupVersionKind()
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return ""
	}
	path := "/apis/" + gvk.GroupVersion().String()
	if gvk.Group == "" {
		path = "/api/" + gvk.Version
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		path += "/namespaces/" + cr.GetNamespace()
	}
	return path + "/" + mapping.Resource.Resource + "/" + cr.GetName()
}

// wayOut says what to do about a run that needs its CR to be in the cluster.
func wayOut(o Options, cr *unstructured.Unstructured) string {
	name, place := strings.ToLower(cr.GetKind())+"/"+cr.GetName(), ""
	if cr.GetNamespace() != "" {
		place = " -n " + cr.GetNamespace()
	}
	return fmt.Sprintf("a task asked the API server for %s itself, to read it or to write its status. run-once -f does not create it. "+
		"Apply it first, where no manager runs for it (kubectl apply%s -f %s), then give its name: run-once %s%s", name, place, o.File, name, place)
}
