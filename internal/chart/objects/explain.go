package objects

import (
	"encoding/json"
	"regexp"
	"strings"
)

// NotReplaced is part of the error of an object that may not be replaced.
const NotReplaced = ". It is not replaced"

// nameless is a client's error for an object without a name.
const nameless = "resource name may not be empty"

// unchangeable matches the API server's errors about fields that cannot be changed.
var unchangeable = regexp.MustCompile(` is invalid: (?s:.*)(immutable|updates to .* are forbidden|may not change|(cannot|can not|can't) (be )?changed?)`)

// explainedError is an error with a short text that names the remedy.
type explainedError struct {
	error

	remedy string
}

func (e *explainedError) Error() string { return shortened(e.error.Error()) + e.remedy }

func (e *explainedError) Unwrap() error { return e.error }

// Explained returns a readable error for an error of the API server.
func Explained(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), nameless):
		return &explainedError{err, ". An object that has a generateName alone cannot be applied again or deleted: give it a name in the chart"}
	case unchangeable.MatchString(err.Error()) && !strings.Contains(err.Error(), NotReplaced):
		return &explainedError{err, ". Fields that cannot be changed: set the annotation helm.sdk.operatorframework.io/upgrade-force: \"true\" on the resource to replace the object in an upgrade, or helm.sdk.operatorframework.io/rollback-force: \"true\" to replace it in the rollback after a failed upgrade"}
	}
	return &explainedError{err, ""}
}

// shortened removes the long values, such as the template of a Job, that the API server repeats in an
// error: otherwise the reason after them would be cut.
func shortened(text string) string {
	const before, longest, shown = "Invalid value: ", 160, 60
	var short strings.Builder
	for {
		head, rest, found := strings.Cut(text, before)
		short.WriteString(head)
		if !found {
			return short.String()
		}
		short.WriteString(before)
		value := json.RawMessage{}
		text = rest
		if json.NewDecoder(strings.NewReader(rest)).Decode(&value) == nil && len(value) > longest {
			short.WriteString(strings.ToValidUTF8(string(value[:shown]), "") + "…")
			text = rest[len(value):]
		}
	}
}
