package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestAttempts(t *testing.T) {
	group := NewAttempts()
	runCtx, leave, ok := group.Enter(t.Context())
	if !ok {
		t.Fatal("an open group refused")
	}
	expired, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("still live"))
	defer cancel()
	if err := group.Wait(expired); err == nil || err.Error() != "still live" {
		t.Errorf("want the cause of the context, got %v", err)
	}
	group.Stop()
	<-runCtx.Done()
	if !errors.Is(context.Cause(runCtx), errStopped) {
		t.Errorf("want errStopped, got %v", context.Cause(runCtx))
	}
	if _, _, ok := group.Enter(t.Context()); ok {
		t.Error("a stopped group admitted an attempt")
	}
	leave()
	if err := group.Wait(t.Context()); err != nil {
		t.Errorf("everyone has left, got %v", err)
	}
}

func TestAnAttemptEndsWithItsOwnContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runCtx, leave, _ := NewAttempts().Enter(ctx)
	defer leave()
	cancel()
	<-runCtx.Done()
	if !errors.Is(context.Cause(runCtx), context.Canceled) {
		t.Errorf("want the context's own end, got %v", context.Cause(runCtx))
	}
}

func TestNotesOfEventsFitTheAPI(t *testing.T) {
	for name, text := range map[string]string{
		"short": "short", "just fits": strings.Repeat("x", maxNote), "one too long": strings.Repeat("x", maxNote+1),
		"runes are not cut": strings.Repeat("€", maxNote), "shifted runes": "x" + strings.Repeat("😀", maxNote),
	} {
		t.Run(name, func(t *testing.T) {
			got := cutNote(text, maxNote)
			if len(got) > maxNote || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			if len(text) <= maxNote && got != text {
				t.Errorf("a note that fits became %q", got)
			}
			if len(text) > maxNote && (!strings.HasSuffix(got, "…") || len(got) < maxNote-6) {
				t.Errorf("cut to %d bytes: %q", len(got), got[len(got)-6:])
			}
		})
	}
}
