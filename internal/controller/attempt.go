package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/extravars"
	"github.com/ensign-operator/ensign/internal/jobevent"
)

// attempt is one pass over one CR.
type attempt struct {
	request   reconcile.Request
	cr        *unstructured.Unstructured // as it was read; later reads do not change it
	memory    *memory
	edition   edition
	step      step
	settings  settings
	variables extravars.Variables
	// digest is that of Reconciler.digestWith when the attempt began.
	digest string
	// related is what has changed of the CR's related objects, where that asked for the
	// attempt.
	related string
	// rest is how long a CR that needs no run may be left alone; 0 is until it
	// changes.
	rest time.Duration
	// verdict is what the attempt came to; nil while there is nothing to say.
	verdict *verdict
}

// edition is one state of what a CR says: a generation or, where the kind has none, a
// digest.
type edition struct {
	generation int64
	digest     string
}

func editionOf(cr *unstructured.Unstructured) edition {
	e := edition{generation: cr.GetGeneration()}
	if e.generation == 0 {
		e.digest, _ = contentDigest(cr) // What came as JSON can be JSON again.
	}
	return e
}

// verdict is what one attempt came to. It outlives the attempt until it is
// written to the API server.
type verdict struct {
	edition

	finalizing bool
	// refused is true when nothing was run.
	refused bool
	outcome jobevent.Outcome
	summary jobevent.Summary
	// period is the pause until the next run after a success; 0 is none.
	period time.Duration
	// digest stands for what a success came about with.
	digest string
	// refusals counts how often the API server has refused to take it.
	refusals int
}

func (a *attempt) finalizing() bool { return a.step == finalize }

// again tells whether this manager has reported the CR as it stands before.
func (a *attempt) again() bool { return a.memory.met && a.memory.edition == a.edition }

// resume takes up the verdict of an earlier attempt that could not be written.
func (a *attempt) resume() { a.verdict = a.memory.pending }

// refuse ends the attempt without a run. It gives false, for prepare.
func (a *attempt) refuse(ctx context.Context, reason jobevent.Reason, why error) bool {
	log.FromContext(ctx).Info("nothing is run until the resource changes", "reason", reason, "message", why.Error())
	a.conclude(verdict{
		refused: true,
		outcome: jobevent.Outcome{Verdict: jobevent.Failed, Reason: reason, Message: why.Error()},
	})
	return false
}

func (a *attempt) conclude(v verdict) {
	v.edition = a.edition
	v.finalizing = a.finalizing()
	a.verdict = &v
}
