package content_test

import (
	"context"
	"errors"
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

// Content may make an outcome without the functions that make its message fit to be shown.
func TestEveryMessageIsFitToBeShown(t *testing.T) {
	for _, verdict := range []content.Verdict{content.Succeeded, content.Failed, content.Canceled} {
		got := content.Outcome{Verdict: verdict, Message: "\x1b[2J" + strings.Repeat("€", 2000)}.Explained(content.Job{}).Message
		if len(got) > 4<<10 || !utf8.ValidString(got) || !strings.HasPrefix(got, `\x1b[2J€`) || !strings.HasSuffix(got, "€… [cut]") {
			t.Errorf("%s: %d bytes: %.20q", verdict, len(got), got)
		}
	}
}

func TestResultOf(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for why, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // The case's.
		err  error
		want content.Outcome
	}{
		"no error":                     {t.Context(), nil, content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}},
		"a success at the last moment": {ended, nil, content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}},
		"an error":                     {t.Context(), errors.New("a\x1b[2Jb\x00"), content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "a\\x1b[2Jb\\x00"}},
		"an end before its time":       {ended, errors.New("a"), content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "run canceled"}},
	} {
		t.Run(why, func(t *testing.T) {
			if got := content.ResultOf(c.ctx, c.err).Outcome; got != c.want {
				t.Errorf("want %+v, got %+v", c.want, got)
			}
		})
	}
	long := content.Refusal(content.ReasonInvalidSpec, errors.New(strings.Repeat("€", 2000)))
	if got := long.Message; len(got) > 4<<10 || !utf8.ValidString(got) || !strings.HasSuffix(got, "€… [cut]") || long.Reason != content.ReasonInvalidSpec {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// An engine and a work that only do what they must.
type (
	leastEngine struct{ content.EngineDefaults }
	leastWork   struct{ content.WorkDefaults }
)

func (leastEngine) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return leastWork{}, nil
}

func (leastWork) Run(ctx context.Context, _ content.Job) content.Result {
	return content.ResultOf(ctx, nil)
}

func TestTheLeastKindOfContent(t *testing.T) {
	var engine content.Engine = leastEngine{}
	work, refusal := engine.Prepare(t.Context(), content.Request{})
	_, settled := work.Settled(t.Context(), content.Job{})
	_, upToDate := work.UpToDate()
	if refusal != nil || settled || upToDate || work.Resumable() || work.Labels() != nil || work.Abandon(t.Context(), content.Job{}) == "" {
		t.Error("the defaults are not those of content that knows nothing")
	}
	work.ResultStored()
	if engine.Digest() != "" || engine.FinalizesWithoutValues() || engine.Remove("uid") != nil || engine.Terminate(t.Context(), "uid") != nil {
		t.Error("the defaults are not those of an engine that keeps nothing")
	}
}

func TestTheLeastObserver(t *testing.T) {
	var observer content.Observer = content.ObserverDefaults{}
	if ctx, id := observer.Trace(t.Context(), content.Run{ID: "run"}); ctx != t.Context() || id != "" {
		t.Errorf("it traces: %v, %q", ctx, id)
	}
}
