package ensign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/hooks"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// WatchOption changes how a watch is reconciled, whatever its content and wherever it comes from.
// Options are applied in their order.
//
// # Functions
//
// The functions of options are called by several attempts at once. They get copies of their
// arguments, and may keep and change them. A panic fails the attempt, or ends it: see Paused. The
// context ends with the manager, with its lease, and after the watch's timeout; a function that
// goes on nevertheless holds up the manager's stop.
//
// They have no digest by which a later manager could tell whether they have changed: after a
// restart, every resource runs once. Give CodeVersion, and only those run that it concerns, and
// those whose TranslateValues returns other values than at their last run.
//
// All of them are called for the run of a finalizer too; then the resource has a deletionTimestamp.
// An error of InvalidSpec and one about an annotation do not hold a deletion up: they are logged,
// and the run goes on. TranslateValues is not called for the deletion of a chart's release, which
// needs no values.
type WatchOption func(*operator.Watch) error

// InvalidSpec returns an error for TranslateValues that is about the resource: its status says
// so by the reason InvalidSpec, and nothing runs for it until it changes. Any other error is
// temporary: the attempt fails, and is repeated with the usual back-off. From PreHook, too,
// it gives the failure that reason; but as its answer may change, the attempt is repeated.
func InvalidSpec(err error) error { return hooks.InvalidSpec(err) }

// OverrideValues sets values that are stronger than those of the resource and of watches.yaml:
// variables of a role or playbook by their name, a tree of values of a chart. Given twice,
// trees are merged and the later one wins.
//
// They are trusted: templates in their text are evaluated. Make nothing of them that comes from a
// resource; that is for TranslateValues. Another value runs each resource once after a restart.
func OverrideValues(values map[string]any) WatchOption {
	return func(w *operator.Watch) error {
		err := w.Hooks.Override(values)
		if err != nil {
			return fmt.Errorf("OverrideValues: %w", err)
		}
		return nil
	}
}

// TranslateValues makes the values that the content gets of those of the resource: its spec, or the
// result of the TranslateValues before. Its result is as untrusted as the spec: templates in it
// stay text. It may read the cluster, through a client that f has.
//
// The keys are those of the spec. For a role or playbook they become names of variables afterwards:
// logLevel becomes log_level. (OverrideValues takes names of variables.)
//
// It is called before each look and run, may be called twice for one, and is called once for each
// resource after a restart: with CodeVersion, a resource runs then if the values are others than
// at its last run. A time or a random number in them makes every resource run.
func TranslateValues(f func(ctx context.Context, cr *unstructured.Unstructured, values map[string]any) (map[string]any, error)) WatchOption {
	return func(w *operator.Watch) error {
		if f == nil {
			return errors.New("TranslateValues: the function is nil")
		}
		w.Hooks.Translate = append(w.Hooks.Translate, f)
		return nil
	}
}

// PreHook calls f before each run, with the values that the content gets, without the overrides.
// If f returns an error, the content does not run, and the attempt fails with that message. f is not
// called where nothing runs, as for a release that is as it should be.
func PreHook(f func(ctx context.Context, cr *unstructured.Unstructured, values map[string]any) error) WatchOption {
	return func(w *operator.Watch) error {
		if f == nil {
			return errors.New("PreHook: the function is nil")
		}
		w.Hooks.Before = append(w.Hooks.Before, f)
		return nil
	}
}

// PostHook calls f after each run, successful or not, with its outcome. An error fails the attempt.
// f is not called after a run that the manager has canceled, because it stops or lost its lease:
// the next manager repeats that run. It is not called either if nothing ran, or if a PreHook ended
// the attempt.
func PostHook(f func(ctx context.Context, cr *unstructured.Unstructured, outcome content.Outcome) error) WatchOption {
	return func(w *operator.Watch) error {
		if f == nil {
			return errors.New("PostHook: the function is nil")
		}
		w.Hooks.After = append(w.Hooks.After, f)
		return nil
	}
}

// Annotation gives resources an annotation of the program's own. f makes values of its text, which
// go over those of the resource and of TranslateValues, and are as untrusted as these. Their keys
// are those of the spec, as with TranslateValues: logLevel, not log_level. An error
// says what is wrong with the text: the reason is InvalidAnnotation, and nothing runs until the
// resource changes. A change of the annotation triggers a run.
func Annotation(name string, f func(text string) (values map[string]any, err error)) WatchOption {
	return func(w *operator.Watch) error {
		if f == nil {
			return errors.New("Annotation: the function is nil")
		}
		if faults := validation.IsQualifiedName(name); len(faults) > 0 {
			return fmt.Errorf("Annotation: invalid name of an annotation: %q: %s", name, strings.Join(faults, "; "))
		}
		if slices.ContainsFunc(append(watches.AnnotationPrefixes(), w.AnnotationPrefix()), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return fmt.Errorf("Annotation: %q has the prefix of the manager's own annotations; choose another prefix", name)
		}
		w.Hooks.Annotations = append(w.Hooks.Annotations, hooks.Annotation{Name: name, Values: f})
		w.TriggerAnnotations = append(w.TriggerAnnotations, name)
		return nil
	}
}

// CodeVersion says which version of the functions of the other options this is. A resource that
// succeeded with the same version, and with the same content, does not run after a restart. It is
// the author's word: change it whenever their behavior changes, as with the version of the program.
func CodeVersion(version string) WatchOption {
	return func(w *operator.Watch) error {
		w.Hooks.Version = version
		return nil
	}
}

// Paused holds the runs of a resource back while f returns true for it, as its annotation paused
// does. f is asked at each attempt, and not for a resource that is being deleted. While f panics,
// nothing runs for the resource: the log says so, and f is asked again after ever longer pauses.
//
// If the pause ends by something else than an event of the resource, give the watch that event: see
// Watches.
func Paused(f func(cr *unstructured.Unstructured) bool) WatchOption {
	return func(w *operator.Watch) error {
		if f == nil {
			return errors.New("Paused: the function is nil")
		}
		if before := w.Watch.Paused; before != nil {
			also := f
			f = func(cr *unstructured.Unstructured) bool { return before(cr) || also(cr) }
		}
		w.Watch.Paused = f
		return nil
	}
}

// Watches adds a source of events. Its requests name resources of the watch, which then run again
// with the pauses that also hold for changes of children:
//
//	ensign.Watches(source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, handler.TypedEnqueueRequestsFromMapFunc(f)))
//
// Objects that exist when the manager starts trigger nothing. Content that compares for itself, as
// charts do, finds changes that happened while no manager ran; other content runs after the
// period.
func Watches(s source.Source) WatchOption {
	return func(w *operator.Watch) error {
		if s == nil {
			return errors.New("Watches: the source is nil")
		}
		w.Sources = append(w.Sources, s)
		return nil
	}
}

// Selector selects the resources that content runs for.
func Selector(selector metav1.LabelSelector) WatchOption {
	return func(w *operator.Watch) (err error) {
		if w.Watch.Selector, err = metav1.LabelSelectorAsSelector(&selector); err != nil {
			return fmt.Errorf("Selector: %w", err)
		}
		return nil
	}
}

// ReconcilePeriod is the pause after which content runs again although nothing triggers it; 0 is
// that of the manager.
func ReconcilePeriod(period time.Duration) WatchOption {
	return func(w *operator.Watch) error {
		w.ReconcilePeriod = period
		return notNegative("ReconcilePeriod", period)
	}
}

// Timeout ends a run that takes longer, and a function of the options; 0 means no limit.
func Timeout(limit time.Duration) WatchOption {
	return func(w *operator.Watch) error {
		w.Timeout = limit
		return notNegative("Timeout", limit)
	}
}

// MaxConcurrentReconciles limits the runs of the watch at the same time; 0 is the manager's limit.
func MaxConcurrentReconciles(limit int) WatchOption {
	return func(w *operator.Watch) error {
		w.MaxConcurrentReconciles = limit
		return notNegative("MaxConcurrentReconciles", limit)
	}
}

// MaxHistory is how many revisions are kept of the release of a chart; 0 is all.
func MaxHistory(revisions int) WatchOption {
	return func(w *operator.Watch) error {
		if err := w.Watch.SetMaxHistory(revisions); err != nil {
			return fmt.Errorf("MaxHistory: %w", err)
		}
		return notNegative("MaxHistory", revisions)
	}
}

// MaxRunnerArtifacts is how many runs of a role or playbook keep their artifacts, for each
// resource; 0 is all.
func MaxRunnerArtifacts(runs int) WatchOption {
	return func(w *operator.Watch) error {
		w.MaxRunnerArtifacts = runs
		return notNegative("MaxRunnerArtifacts", runs)
	}
}

func notNegative[number int | time.Duration](option string, value number) error {
	if value < 0 {
		return fmt.Errorf("%s: %v is less than 0", option, value)
	}
	return nil
}
