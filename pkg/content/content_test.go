package content_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/pkg/content"
)

func TestAFailureSaysWhichRightsWereLacking(t *testing.T) {
	lacking := content.Job{Denied: func() string { return "a right is missing" }}
	failure := content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "boom"}
	long := failure
	long.Message = strings.Repeat("€", 2000)
	success, canceled := content.Outcome{Verdict: content.Succeeded}, content.Outcome{Verdict: content.Canceled, Message: "ended"}
	for why, c := range map[string]struct {
		outcome content.Outcome
		job     content.Job
		want    string
	}{
		"a failure":              {failure, lacking, "boom\na right is missing"},
		"none was lacking":       {failure, content.Job{Denied: func() string { return "" }}, "boom"},
		"nobody knows":           {failure, content.Job{}, "boom"},
		"a success needs none":   {success, lacking, ""},
		"an end before its time": {canceled, lacking, "ended"},
		"a long message":         {long, lacking, "€… [cut]\na right is missing"},
	} {
		t.Run(why, func(t *testing.T) {
			got := c.outcome.Explained(c.job).Message
			if !strings.HasSuffix(got, c.want) || c.outcome.Message != long.Message && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(got) > 4<<10 || !utf8.ValidString(got) {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		})
	}
}
