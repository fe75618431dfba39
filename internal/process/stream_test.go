package process

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestTail(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   string
	}{
		"nothing":                     {},
		"little is kept whole":        {writes: []string{"a\n", "b\n"}, want: "a\nb\n"},
		"one large write is cut":      {writes: []string{"x" + strings.Repeat("y", MaxTailBytes)}, want: strings.Repeat("y", MaxTailBytes)},
		"many small writes are cut":   {writes: slices.Repeat([]string{"0123456789abcdef"}, 1000), want: strings.Repeat("0123456789abcdef", MaxTailBytes/16)},
		"a character is never halved": {writes: []string{"ä" + strings.Repeat("y", MaxTailBytes-1)}, want: strings.Repeat("y", MaxTailBytes-1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got Tail
			for _, w := range test.writes {
				if n, err := got.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("got %d, %v", n, err)
				}
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// idleLimit is one of the fake clock of a synctest bubble.
const idleLimit = time.Minute

// waitsForIdle runs story beside waitUntilIdle, and returns how long after its end the streams
// were idle; less than nothing if they were before. All of them wait for the run when the story
// begins.
func waitsForIdle(t *testing.T, story func(streams []*stream)) (after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		streams := []*stream{{}, {}, {}}
		for _, s := range streams {
			s.waiting.Store(true)
		}
		over := make(chan time.Time, 1)
		go func() {
			story(streams)
			over <- time.Now()
		}()
		if !waitUntilIdle(t.Context(), idleLimit, streams...) {
			t.Error("got the end of the context")
		}
		idle := time.Now()
		after = idle.Sub(<-over)
	})
	return after
}

func TestIdle(t *testing.T) {
	for name, story := range map[string]func(streams []*stream){
		"nothing comes": func([]*stream) {},
		"any stream keeps the run going": func(streams []*stream) {
			for i := range 30 {
				time.Sleep(idleLimit / 2)
				streams[i%len(streams)].reads.Add(1)
			}
		},
		"what waits for its reader is not idle": func(streams []*stream) {
			streams[1].waiting.Store(false)
			time.Sleep(10 * idleLimit)
			streams[1].waiting.Store(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if after := waitsForIdle(t, story); (after - idleLimit).Abs() > 2*idleLimit/idleTicks {
				t.Errorf("idle after %s, want %s, and two ticks more or less", after, idleLimit)
			}
		})
	}
}

func TestAwaitIdleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if waitUntilIdle(ctx, time.Hour, &stream{}) {
		t.Error("got an idle stream when nobody waited for it")
	}
}

// A reader that has come to the end waits for nothing more, and a run that has ended is idle.
func TestAStreamSaysForWhomItWaits(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := &stream{file: in}
	if s.waiting.Load() {
		t.Error("it waits for the run before it is read")
	}
	read := make(chan error)
	next := func() { _, err := s.Read(make([]byte, 1)); read <- err }
	go next()
	scratch.Eventually(t, "a reader that waits for the run", s.waiting.Load)
	if _, err := out.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil || s.waiting.Load() || s.reads.Load() != 1 {
		t.Errorf("got %v; waiting %t after %d reads, want that the run may wait for the reader", err, s.waiting.Load(), s.reads.Load())
	}
	go next()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, io.EOF) || !s.waiting.Load() {
		t.Errorf("got %v, waiting %t at the end", err, s.waiting.Load())
	}
}
