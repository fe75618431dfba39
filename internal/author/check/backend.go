package check

import (
	"context"

	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// backend is a kind of content's own part of a unit, beside the common part. Each unit has its own.
type backend interface {
	// load reads the unit's content, as far as the package source has not.
	load(ctx context.Context, p *Project, u *Unit)
	// needs adds the rights for the manager's work with this kind of content.
	needs(c *rights.Collector, u *Unit)
	// definition adds faults of the CRD of the unit's kind.
	definition(p *Project, u *Unit, crd *schema.CRD, at source.Position)
}

// newBackend returns the backend of the unit. No other place asks which kind of content a unit has.
func newBackend(unit *source.Unit) backend {
	if unit.Watch.Chart != nil {
		return &chartBackend{chart: unit.Watch.Chart}
	}
	return ansibleBackend{}
}

// ansibleBackend is for roles and playbooks, which the package source reads: the rights of tasks are
// known from there.
type ansibleBackend struct{}

func (ansibleBackend) load(context.Context, *Project, *Unit) {}
func (ansibleBackend) needs(*rights.Collector, *Unit)        {}

func (ansibleBackend) definition(p *Project, u *Unit, _ *schema.CRD, _ source.Position) { p.fields(u) }
