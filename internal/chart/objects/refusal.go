package objects

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
)

// Refused is an object that could not be compared for a permanent reason.
type Refused struct {
	// Name is the kind with namespace and name, for people.
	Name string
	// Reason is a stable word. Message is for people, and may have text of other writers.
	Reason  string
	Message string
	// Warnings are the API server's about a patch.
	Warnings []string
}

// The reasons that the API server has no word for.
const (
	notServed = "NotServed"
	noName    = "NoName"
	unfit     = "Unfit"
	noAnswer  = "WebhookFailed"
)

// inTexts are the reasons of errors with the API server's code of internal errors. Some are errors of
// server-side apply about an object that does not fit its schema, such as a list with two entries of
// one key. The others are errors of a webhook that does not answer, maybe for days.
var inTexts = map[string]string{ //nolint:gochecknoglobals // A constant.
	"to create typed patch object":  unfit,
	"to create typed live object":   unfit,
	"failed to convert live object": unfit,
	"failed calling webhook":        noAnswer,
}

// Reason returns the reason of a refusal; "" for a temporary error, such as a timeout or an internal
// error of the API server.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	if meta.IsNoMatchError(err) {
		return notServed
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	code := int(status.Status().Code)
	switch {
	case code == http.StatusNotFound && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return notServed // The kind is unknown, not the object.
	case code == http.StatusInternalServerError:
		for text, reason := range inTexts {
			if strings.Contains(status.Status().Message, text) {
				return reason
			}
		}
		return ""
	case code >= http.StatusInternalServerError, code == http.StatusUnauthorized, code == http.StatusRequestTimeout,
		code == http.StatusTooManyRequests, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ""
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return http.StatusText(code)
}

// newRefused returns the description of an object that the API server refuses.
func newRefused(object *unstructured.Unstructured, err error) Refused {
	return Refused{Name: manifest.Name(object), Reason: Reason(err), Message: err.Error()}
}

// remedied adds a remedy to a refusal of fields that other managers have changed and the chart has
// not: leave the fields to them. The API server does not accept the chart's value any more.
func (a *application) remedied(refusal error) error {
	var lines []string
	for _, cause := range detailsOf(refusal) {
		pointer := Pointer(strings.Split(cause.Field, "."))
		wanted, last, live := pointer.values(a.want.Object), pointer.values(a.lastText.Object), pointer.values(a.live.Object)
		if strings.ContainsAny(cause.Field, "[]") || len(wanted) != 1 || len(live) != 1 || !isScalar(wanted[0]) {
			continue
		}
		if equality.Semantic.DeepEqual(wanted, last) && !equality.Semantic.DeepEqual(wanted, live) {
			lines = append(lines, Line(a.want, pointer.String()))
		}
	}
	if len(lines) == 0 {
		return refusal
	}
	return fmt.Errorf("%w. Another client has changed this, and the API server does not take the chart's value any more. To leave it so, add to the watch: driftIgnore: [%s]", refusal, strings.Join(lines, ", "))
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}
