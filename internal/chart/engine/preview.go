package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Preview describes the changes by a run, without values of Secrets.
type Preview struct {
	// Release is the release's name with its namespace.
	Release string `json:"release"`
	// Action is install, upgrade, or repair for drift; "" if nothing is to be done. Revision is the number of the
	// revision that it makes; 0 if it makes none.
	Action   string           `json:"action"`
	Revision int              `json:"revision,omitempty"`
	Changes  []objects.Change `json:"changes"`
	// Hooks run with the action.
	Hooks []order.Hook `json:"hooks,omitempty"`
}

// Renderer is a Runner that renders the chart of an order.
type Renderer interface {
	Preview(ctx context.Context, o order.Order, kubeconfig []byte) (order.Rendered, error)
}

// Previews is an Engine whose runs only show their changes. Unsealed records count, because it has
// neither the manager's ledger nor its keys.
type Previews struct {
	*Engine

	Show func(Preview)
}

// Prepare implements content.Engine.
func (p *Previews) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	p.believes = true
	prepared, refusal := p.Engine.Prepare(ctx, r)
	w, _ := prepared.(*work)
	return &preview{w, p}, refusal
}

// preview is work whose run changes nothing.
type preview struct {
	*work

	previews *Previews
}

// Run implements content.Work.
func (w *preview) Run(ctx context.Context, job content.Job) content.Result {
	made, err := w.preview(ctx, job)
	if err != nil {
		return w.hide(irreconcilable(ctx, err))
	}
	w.previews.Show(made)
	return content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}
}

func (w *preview) preview(ctx context.Context, job content.Job) (p Preview, err error) {
	if w.fault != nil {
		return p, w.fault
	}
	f, err := w.look(ctx, job)
	if err != nil {
		return p, err
	}
	p.Release = w.namespace + "/" + w.name
	switch f.State {
	case release.Foreign:
		return p, w.duplicate(f)
	case release.InSync, release.Drifted:
		w.repairs(f, &p)
	default:
		err = w.deployment(ctx, job, f, &p)
	}
	for i := range p.Changes {
		w.show(&p.Changes[i])
	}
	return p, err
}

// repairs finds the changes by a repair of drift, and the objects that could not be compared.
func (w *preview) repairs(f found, p *Preview) {
	if f.State == release.Drifted {
		for _, object := range f.compared.Drifted {
			p.Changes = append(p.Changes, object.Change())
		}
	}
	for _, one := range f.compared.Refused {
		p.Changes = append(p.Changes, objects.Change{Name: one.Name, Kind: "update", Former: true, Err: fmt.Errorf("not compared: %s", one.Message)})
	}
	if f.fault != nil {
		p.Changes = append(p.Changes, objects.Change{Name: "other objects", Kind: "update", Former: true, Err: f.fault})
	}
	if len(p.Changes) > 0 {
		p.Action = "repair"
	}
}

// deployment finds the changes of an installation or upgrade.
func (w *preview) deployment(ctx context.Context, job content.Job, f found, p *Preview) error {
	o, base, before := w.newOrder(f.Action, f.Decision), f.history.Deployed, ""
	p.Action, p.Revision, o.Revision = string(order.Install), 1, 1
	if len(f.history.Revisions) > 0 {
		p.Revision = f.history.Revisions[0].Version + 1
	}
	switch {
	case f.Action == order.Upgrade:
		p.Action, o.Revision = string(order.Upgrade), p.Revision
	case f.history.Last != nil && f.history.Last.Info.Status != order.StatusUninstalled:
		base = f.history.Last // An installation that failed: its objects stay.
	}
	if base != nil {
		before = base.Manifest
	}
	o.Action = order.Preview
	renderer, can := w.engine.Runner.(Renderer)
	if !can {
		return errors.New("this runner cannot render charts")
	}
	rendered, err := renderer.Preview(ctx, o, job.Kubeconfig)
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	p.Hooks = rendered.Hooks
	for i := range p.Hooks {
		p.Hooks[i].Name = w.mask.Text(p.Hooks[i].Name)
	}
	d := &objects.Detector{Cluster: f.cluster, Applier: w.applier(o.ApplyByClient)}
	p.Changes, err = d.Preview(ctx, rendered.CRDs, before, rendered.Manifests)
	for i := range p.Changes {
		p.Changes[i].Err = cmp.Or(w.foreign(f.Action, p.Changes[i]), p.Changes[i].Err)
	}
	return err
}

// foreign returns Helm's error for a live object that does not belong to the release; nil if it may have the
// object. An upgrade keeps the objects of the deployed revision.
func (w *preview) foreign(action order.Action, c objects.Change) error {
	if c.Live == nil || c.FromCRDs || c.Former && action == order.Upgrade || c.Kind != "update" || objects.BelongsTo(c.Live, w.namespace, w.name) {
		return nil
	}
	adopt := w.engine.Watch.Chart.Adopt
	if other := objects.OtherRelease(c.Live, w.namespace, w.name); other != "" {
		return fmt.Errorf("it belongs to the release %s", other)
	}
	other := objects.OtherOwner(c.Live, w.namespace, w.name, types.UID(w.seal.Owner.UID))
	switch {
	case adopt && other != "":
		return fmt.Errorf("it belongs to %s", other)
	case !adopt:
		return errors.New("it is there already and belongs to no release; adopt: true in the watch takes it over")
	}
	return nil
}

// show completes a change for people, without values of Secrets.
func (w *preview) show(c *objects.Change) {
	c.Name = w.mask.Text(c.Name)
	for _, texts := range [][]string{c.Fields, c.Random} {
		for i := range texts {
			texts[i] = w.mask.Text(texts[i])
		}
	}
	switch {
	case c.Err != nil:
		c.Error = w.mask.Text(short(c.Err.Error()))
		if c.Kind == "update" && w.settings.upgradeForce && apierrors.IsInvalid(c.Err) {
			cause, _, _ := strings.Cut(c.Error, ". Fields that cannot be changed:")
			c.Kind, c.Error, c.Note = "replace", "", "by upgrade-force, unless that would delete its data: "+cause
		}
	case c.Kind != "keep":
		c.Diff = w.mask.Text(diffOf(c.Live, c.Applied, w.mask.Text))
	}
}
