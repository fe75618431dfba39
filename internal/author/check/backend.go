package check

import (
	"context"

	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// wing is a kind of content's own part of a unit, beside the common part. Each unit has its own.
type wing interface {
	// load reads the unit's content, as far as the package source has not.
	load(ctx context.Context, p *Project, u *Unit)
	// needs adds the rights for the manager's work with this kind of content.
	needs(c *rights.Collector, u *Unit)
	// definition adds faults of the CRD of the unit's kind.
	definition(p *Project, u *Unit, crd *schema.CRD, at source.Position)
	// hasVariables reports whether the fields of a spec become variables of Ansible.
	hasVariables() bool
}

// newWing returns the wing of the unit. No other place asks which kind of content a unit has.
func newWing(unit *source.Unit) wing {
	if unit.Watch.Chart != nil {
		return &chartWing{chart: unit.Watch.Chart}
	}
	return ansibleWing{}
}

// ansibleWing is for roles and playbooks, which the package source reads: the rights of tasks are
// known from there.
type ansibleWing struct{}

func (ansibleWing) load(context.Context, *Project, *Unit) {}
func (ansibleWing) needs(*rights.Collector, *Unit)        {}
func (ansibleWing) hasVariables() bool                    { return true }

func (ansibleWing) definition(p *Project, u *Unit, _ *schema.CRD, _ source.Position) { p.fields(u) }
