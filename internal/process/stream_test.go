package process

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestAwaitIdleEndsWithItsContext(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if waitUntilIdle(ctx, time.Hour, &stream{file: in}) {
		t.Error("got an idle stream when nobody waited for it")
	}
}
