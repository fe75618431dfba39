package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The condition types that users of operator-sdk's Helm operator know.
const (
	initialized  = "Initialized"
	deployedType = "Deployed"
	releaseFails = "ReleaseFailed"
	irreconciled = "Irreconcilable"
	// comparedType is there, and False, while objects of the release cannot be compared.
	comparedType = "Compared"
)

// maxManifest bounds deployedRelease.manifest, and maxNotes the chart's notes in the condition Deployed, in bytes. A
// condition's message may have 32,768 characters.
const (
	maxManifest = 32 << 10
	maxNotes    = 16 << 10
)

// The fields of the status that name the release. attemptedRelease is set after a failed installation
// or upgrade: its objects must be found even if the CR's spec names another release by then.
const (
	deployedRelease  = "deployedRelease"
	attemptedRelease = "attemptedRelease"
)

// attempted adds the name of the release to the result of an action that failed.
func (w *work) attempted(result content.Result) content.Result {
	result.Fields = map[string]any{attemptedRelease: map[string]any{"name": w.name, "namespace": w.namespace}}
	return result
}

// deployed returns the result of a release that is up to date. It depends on the release alone, so
// that the status does not change while the release does not. manifest is the release's, as the status shows it.
func deployed(last *release.Release, manifest string) content.Result {
	reason := "UpgradeSuccessful"
	if release.Installed(last) {
		reason = "InstallSuccessful"
	}
	return content.Result{
		Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful},
		Conditions: []metav1.Condition{
			{Type: initialized, Status: "True", Reason: "Initialized"},
			{Type: deployedType, Status: "True", Reason: reason, Message: cut(sanitize.Text(last.Info.Notes), maxNotes)},
		},
		Removed: []string{releaseFails, irreconciled, comparedType},
		Fields:  map[string]any{deployedRelease: map[string]any{"name": last.Name, "namespace": last.Namespace, "manifest": manifest}, attemptedRelease: nil},
	}
}

func uninstalled() content.Result {
	return content.Result{
		Outcome:    content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful},
		Conditions: []metav1.Condition{{Type: deployedType, Status: "False", Reason: "UninstallSuccessful"}},
		Removed:    []string{releaseFails, irreconciled, comparedType},
		Fields:     map[string]any{deployedRelease: nil, attemptedRelease: nil},
	}
}

// failed returns the result of a failed action. A canceled one sets no condition.
func failed(outcome content.Outcome, action order.Action) content.Result {
	result := content.Result{Outcome: outcome}
	if outcome.Verdict == content.Canceled {
		return result
	}
	reason := map[order.Action]string{
		order.Install: "InstallError", order.Reinstall: "InstallError", order.Upgrade: "UpgradeError", order.Uninstall: "UninstallError",
	}[action]
	result.Conditions = []metav1.Condition{
		{Type: initialized, Status: "True", Reason: "Initialized"},
		{Type: releaseFails, Status: "True", Reason: reason, Message: outcome.Message},
	}
	result.Removed = []string{irreconciled}
	return result
}

// notGone returns the result of a deletion that leaves objects. If they only wait for other
// controllers, the next look is in a few seconds.
func notGone(left []string, wait bool) content.Result {
	slices.Sort(left)
	result := failed(content.Outcome{
		Verdict: content.Failed, Reason: content.ReasonFailed, Message: short("still there after the uninstallation: " + strings.Join(left, "; ")),
	}, order.Uninstall)
	if wait {
		result.RequeueAfter = 5 * time.Second
	}
	return result
}

// irreconcilable returns the result of a run that could not read or repair the release.
func irreconcilable(ctx context.Context, err error) content.Result {
	if ctx.Err() != nil {
		return content.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "run canceled"}}
	}
	message, reason := short(err.Error()), content.ReasonFailed
	if fault, ok := errors.AsType[*values.FaultError](err); ok {
		reason = fault.Reason
	}
	if _, moved := errors.AsType[*watches.MovedError](err); moved {
		reason = content.ReasonInvalidSpec
	}
	return content.Result{
		Outcome: content.Outcome{Verdict: content.Failed, Reason: reason, Message: message},
		Conditions: []metav1.Condition{
			{Type: initialized, Status: "True", Reason: "Initialized"},
			{Type: irreconciled, Status: "True", Reason: "ReconcileError", Message: message},
		},
	}
}

// short returns a message that is safe to show and has 4 KiB at most.
func short(message string) string { return cut(sanitize.Text(message), 4<<10) }

func cut(text string, limit int) string {
	const suffix = "… [cut]"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(suffix)], "") + suffix
}

// shown returns the objects of a manifest as the status may show them: without the data of Secrets, and
// bounded. A manifest that cannot be read, with an error, is not shown.
func shown(objects []*unstructured.Unstructured, err error) string {
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, object := range objects {
		if isSecret(object) {
			object = object.DeepCopy()
			redact(object)
		}
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return ""
		}
		all.WriteString("---\n")
		all.Write(document)
		if all.Len() > maxManifest {
			break
		}
	}
	return cut(all.String(), maxManifest)
}

func isSecret(object *unstructured.Unstructured) bool { return object.GetKind() == "Secret" }

// redact replaces the values of a Secret, and removes its copy in kubectl's annotation.
func redact(secret *unstructured.Unstructured) {
	for _, key := range []string{"data", "stringData"} {
		value, has := secret.Object[key]
		data, isMap := value.(map[string]any)
		for name := range data {
			data[name] = "(redacted)"
		}
		if has && !isMap {
			secret.Object[key] = "(redacted)"
		}
	}
	unstructured.RemoveNestedField(secret.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}
