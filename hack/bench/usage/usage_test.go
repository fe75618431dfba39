package usage

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// The test binary plays a program that uses the processor, and waits for a child of
// its own that does too.
func TestMain(m *testing.M) {
	switch os.Getenv("PLAY") {
	case "":
		os.Exit(m.Run())
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "PLAY=child")
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("done\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // Until it is to end.
	default:
		burn()
	}
}

// burn uses the processor for a quarter of a second.
func burn() {
	for {
		if used, err := Time(os.Getpid()); err != nil || used >= 250*time.Millisecond {
			return
		}
	}
}

func TestParseStat(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want stat
		fail bool
	}{
		"a usual one":                 {text: "12 (python3) S 7 1 1 0 -1 4194304 100 0 0 0 250 50 300 25 20 0", want: stat{7, 3 * time.Second, 3250 * time.Millisecond}},
		"a name that looks like more": {text: "12 (a (strange) 1 2) S 7 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0", want: stat{7, 3 * time.Second, 0}},
		"too short":                   {text: "12 (bench) S 1", fail: true},
		"a time that is no number":    {text: "12 (bench) S 1 1 1 0 -1 4194304 100 0 0 0 x 50 0 0 20 0", fail: true},
		"nothing":                     {fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(test.text)
			if (err != nil) != test.fail || got != test.want {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

func TestATreeHasTheTimeOfChildrenThatEnded(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PLAY=parent")
	in, inErr := parent.StdinPipe()
	out, outErr := parent.StdoutPipe()
	if err := errors.Join(inErr, outErr, parent.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	pid := parent.Process.Pid
	own, err := Time(pid)
	if err != nil || own >= 250*time.Millisecond {
		t.Errorf("the process alone has used %s, error %v", own, err)
	}
	all, err := TreeTime(pid)
	if err != nil || all < 250*time.Millisecond || all < own {
		t.Errorf("its tree has used %s, error %v", all, err)
	}
	above, err := TreeTime(os.Getpid())
	if err != nil || above < all {
		t.Errorf("the tree above has used %s, error %v", above, err)
	}
	tree, err := Tree(os.Getpid())
	if err != nil || !slices.Contains(tree, pid) || tree[0] != os.Getpid() {
		t.Errorf("got tree %v without %d, error %v", tree, pid, err)
	}
	if got := Named(tree, os.Args[0]); !slices.Contains(got, pid) {
		t.Errorf("got %v without %d", got, pid)
	}
	if got := Named(tree, "no such text in any"); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if one, both := Memory([]int{pid}), Memory([]int{pid, os.Getpid()}); one <= 0 || both <= one {
		t.Errorf("got %v MiB, and of both %v", one, both)
	}
	if err := errors.Join(in.Close(), parent.Wait()); err != nil {
		t.Error(err)
	}
	if got, err := TreeTime(pid); err == nil {
		t.Errorf("of a process that has ended: %s", got)
	}
	if got := Memory([]int{pid}); got != 0 {
		t.Errorf("of a process that has ended: %v MiB", got)
	}
}

func TestSize(t *testing.T) {
	const status = "Name:\tmanager\nVmHWM:\t   65536 kB\nVmRSS:\t   61440 kB\nThreads:\t9\nVmBad:\tmany kB\n"
	for why, c := range map[string]struct {
		field   string
		want    float64
		wantErr bool
	}{
		"what it has now":                     {field: "VmRSS", want: 60},
		"the most it had":                     {field: "VmHWM", want: 64},
		"a zombie has no such line":           {field: "VmSwap", wantErr: true},
		"the beginning of a name is no name":  {field: "Vm", wantErr: true},
		"a count is no size":                  {field: "Threads", wantErr: true},
		"a size that is no number is no size": {field: "VmBad", wantErr: true},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := Size(status, c.field)
			if (err != nil) != c.wantErr || got != c.want {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}

func TestPeak(t *testing.T) {
	samples, taken := []float64{3, 9, 4}, make(chan struct{})
	i := 0
	stop := Peak(time.Millisecond, func() float64 {
		i++
		if i == len(samples) {
			close(taken)
		}
		return samples[min(i, len(samples))-1]
	})
	<-taken
	if got := stop(); got != 9 {
		t.Errorf("got %v", got)
	}
}
