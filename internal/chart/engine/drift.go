package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The reasons of the Events about objects.
const (
	eventRepaired = "Repaired"
	eventDrifted  = "Drifted"
	eventUnused   = "DriftIgnoreUnused"
	// eventPatched names an object that server-side apply refuses.
	eventPatched = "AppliedByPatch"
)

// detector returns the detector that compares the objects of the release, as they were applied. It
// notes the objects that it reads in the observation.
func (w *work) detector(f *found) *objects.Detector {
	return &objects.Detector{
		Cluster: f.cluster, Observe: w.observe(&f.observation), Held: w.isHeld, Finished: w.memory.finished,
		Applier: w.applier(f.last().ApplyMethod == string(helm.ApplyMethodClientSideApply)),
	}
}

func (w *work) applier(byClient bool) objects.Applier {
	ignored := objects.NewIgnored(w.engine.Watch.Chart.DriftIgnore)
	return objects.Applier{Name: w.name, Namespace: w.namespace, Owner: w.cr.GetUID(), Ignored: ignored, ByClient: byClient}
}

// repair repairs the objects that have drifted. An error for one does not stop the others.
func (w *work) repair(ctx context.Context, f found) content.Result {
	repaired, err := w.detector(&f).Repair(ctx, f.compared.Drifted)
	if len(repaired) > 0 {
		objects := drifted(repaired)
		w.log(ctx).Info("Repaired release", "objects", objects)
		w.event(corev1.EventTypeNormal, eventRepaired, "Repair", objects)
		w.noteRepairs(ctx, repaired)
	}
	f.compared.Drifted = nil
	if err = errors.Join(err, f.fault); err != nil {
		return irreconcilable(ctx, err)
	}
	return w.deployed(f)
}

// deployed adds the objects that could not be compared, and the fields that wait for their repair, to the
// result of the function deployed.
func (w *work) deployed(f found) content.Result {
	result := deployed(f.last(), shown(f.objects()))
	refused, waiting := f.compared.Refused, f.compared.Waiting
	result.RequeueAfter = w.nextRepair(waiting)
	for _, object := range slices.Concat(f.compared.Drifted, waiting) {
		if object.Missing {
			result.Missing = append(result.Missing, object.Name)
		}
	}
	if len(refused) == 0 && len(waiting) == 0 {
		return result
	}
	reason, message := "NotCompared", w.refusals(refused)
	if len(refused) == 0 {
		reason = eventContested
	}
	if len(waiting) > 0 {
		message = short(strings.TrimPrefix(message+"; repaired at growing intervals: "+waitsOf(waiting), "; "))
	}
	result.Removed = slices.DeleteFunc(result.Removed, func(kind string) bool { return kind == comparedType })
	result.Conditions = append(result.Conditions, metav1.Condition{Type: comparedType, Status: "False", Reason: reason, Message: message})
	return result
}

// refusals says which objects could not be compared, and why. The message does not change while the
// objects and their faults stay: the text of an admission webhook may have the time in it.
func (w *work) refusals(refused []objects.Refused) string {
	const limit = 512
	var faults, messages []string
	for _, one := range refused {
		faults = append(faults, one.Name+" "+one.Reason+" "+lasting(one.Message))
		messages = append(messages, one.Name+": "+cut(sanitize.Text(one.Message), limit))
	}
	if len(refused) == 0 {
		return ""
	}
	message, _ := w.memory.first(comparedType, strings.Join(faults, "\n"), short("not compared with the chart: "+strings.Join(messages, "; ")))
	return message
}

// lasting returns a message without its words that have digits, such as times and the names of requests.
func lasting(message string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(message), func(word string) bool { return strings.ContainsAny(word, "0123456789") }), " ")
}

// warnOfPatches logs, once for each fault, which objects are patched because server-side apply refuses them.
func (w *work) warnOfPatches(ctx context.Context, found objects.Found) {
	const limit = 300
	for _, one := range found.Patched {
		if _, first := w.memory.first(eventPatched+one.Name, lasting(one.Message), ""); !first {
			continue
		}
		refusal, warnings := w.mask.Text(sanitize.Text(one.Message)), w.mask.Text(strings.Join(one.Warnings, "; "))
		note := fmt.Sprintf("%s is patched, because server-side apply refuses it: %s", one.Name, cut(refusal, limit))
		if warnings != "" {
			note += ". The API server warns: " + warnings
		}
		w.log(ctx).Info("WARNING: an object is patched, because server-side apply refuses it", "object", one.Name, "refusal", refusal, "warnings", warnings)
		w.event(corev1.EventTypeWarning, eventPatched, "Apply", note)
	}
}

// warnOfDrift warns once of drift that is not repaired, and again when it changes.
func (w *work) warnOfDrift(ctx context.Context, found objects.Found) {
	objects := drifted(found.Drifted)
	if _, first := w.memory.first(eventDrifted, objects, ""); !first || objects == "" {
		return
	}
	w.log(ctx).Info("WARNING: drift detected, not repaired (drift: warn)", "objects", objects)
	w.event(corev1.EventTypeWarning, eventDrifted, "Compare", objects)
}

// warnOfUnused warns once of rules of driftIgnore that match nothing.
func (w *work) warnOfUnused(ctx context.Context, found objects.Found) {
	var all []string
	for _, rule := range found.Unused {
		all = append(all, rule.String())
	}
	unused := strings.Join(all, ", ")
	if _, first := w.memory.first(eventUnused, unused, ""); !first || unused == "" {
		return
	}
	w.log(ctx).Info("WARNING: driftIgnore names fields that no object of the release has", "fields", unused)
	w.event(corev1.EventTypeWarning, eventUnused, "Compare", "driftIgnore names fields that no object of the release has: "+unused)
}

func (w *work) event(kind, reason, action, note string) {
	if w.secret() {
		note = w.mask.Text(note)
	}
	if w.engine.Recorder != nil {
		w.engine.Recorder.Eventf(w.cr, nil, kind, reason, action, "%s", cut(sanitize.Text(note), maxNote))
	}
}

// drifted returns the objects with the fields that have drifted, for people. It is bounded.
func drifted(objects []objects.Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.String())
	}
	return short(strings.Join(all, ", "))
}
