package guard

import (
	"crypto/rand"
	"os"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

func newWatcher(t *testing.T) (*watcher, *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = out.Close() // The test may have.
		_ = in.Close()
	})
	return &watcher{owner: proctree.NewOwner("/nowhere", rand.Text()), pipe: int(in.Fd())}, out
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestReceive(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   orders
	}{
		"one order":                                    {[]string{"5 7\n"}, orders{5, 7}},
		"the last of several counts":                   {[]string{"5 7\n6 8\n", "9 10\n"}, orders{9, 10}},
		"half an order is none yet":                    {[]string{"5 7\n12 1"}, orders{5, 7}},
		"an order in two halves":                       {[]string{"12 1", "4\n"}, orders{12, 14}},
		"an instant does not fit into 32 bits":         {[]string{"9000000000000000 9000000002000000\n"}, orders{9000000000000000, 9000000002000000}},
		"what is no order changes nothing":             {[]string{"5 7\nx y\n\n8\n"}, orders{5, 7}},
		"a deadline is taken back":                     {[]string{"5 7\n0 0\n"}, orders{}},
		"what this package writes is what it can read": {[]string{orders{3, 4}.line()}, orders{3, 4}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, out := newWatcher(t)
			for _, text := range test.writes {
				write(t, out, text)
				if err := w.wait(forever); err != nil {
					t.Fatal(err)
				}
			}
			if w.orders != test.want || w.gone {
				t.Errorf("got %+v, gone %t, want %+v", w.orders, w.gone, test.want)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if err := w.wait(forever); err != nil || !w.gone {
				t.Errorf("got gone %t, error %v after the end of the pipe", w.gone, err)
			}
		})
	}
}

// Runs must be spared from the moment on at which the manager has renewed, and for
// no other reason.
func TestRelieved(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
	}{
		"nothing has come":         {"", false},
		"an order to go on ending": {orders{1, 1}.line(), false},
		"a later deadline":         {orders{proctree.Now() + time.Hour, proctree.Now() + time.Hour}.line(), true},
		"no deadline any more":     {orders{}.line(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, out := newWatcher(t)
			w.orders = orders{1, 1}
			write(t, out, test.text)
			if got := w.relieved(); got != test.want {
				t.Errorf("got %t", got)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if !w.relieved() {
				t.Error("not relieved by the manager's end, which ends runs in another way")
			}
		})
	}
}

// Pauses are short enough for the deadline, and never so short that the guard is
// busy.
func TestPause(t *testing.T) {
	tests := map[string]struct {
		ahead     time.Duration
		low, high time.Duration
	}{
		"a deadline far ahead, while the machine may sleep":                {time.Hour, look, look},
		"a deadline that is near":                                          {look / 2, 0, look / 2},
		"a deadline that has passed, for what was just being started then": {-time.Second, again, again},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := watcher{orders: orders{term: proctree.Now() + test.ahead}}
			if got := w.pause(); got < test.low || got > test.high {
				t.Errorf("got %v", got)
			}
		})
	}
	if got := (&watcher{}).pause(); got != forever {
		t.Errorf("got %v without a deadline", got)
	}
}

func TestAWaitIsNeverShorterThanItShouldBe(t *testing.T) {
	w, _ := newWatcher(t)
	for _, limit := range []time.Duration{time.Nanosecond, time.Millisecond, 15 * time.Millisecond} {
		since := time.Now()
		if err := w.wait(limit); err != nil || w.gone {
			t.Errorf("got error %v, gone %t", err, w.gone)
		}
		if took := time.Since(since); took < limit {
			t.Errorf("a wait of %v took %v", limit, took)
		}
	}
}
