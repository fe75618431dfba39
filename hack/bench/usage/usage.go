// Package usage reads what processes of Linux use of a machine: the processor time of
// whole trees of processes, and their memory, of which each page that several of them
// share counts once.
//
// What ends while it is being read is left out. The package starts no process.
package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's times of processes: USER_HZ is 100 everywhere.
const tick = 10 * time.Millisecond

// stat is what a process' stat tells of it.
type stat struct {
	parent int
	// used is its processor time, and waited that of the children which it has waited
	// for, with theirs.
	used, waited time.Duration
}

func statOf(pid int) (stat, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	content, err := os.ReadFile(path) //nolint:gosec // A number below /proc.
	if err != nil {
		return stat{}, fmt.Errorf("read what a process uses, which needs Linux: %w", err)
	}
	s, err := parseStat(string(content))
	if err != nil {
		return stat{}, fmt.Errorf("read %q: %w", path, err)
	}
	return s, nil
}

// parseStat reads the fields that follow the name in parentheses, which may hold some
// too.
func parseStat(text string) (stat, error) {
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	const parent, first, last = 1, 11, 14
	if len(fields) <= last {
		return stat{}, errors.New("it is too short")
	}
	var numbers [1 + last - first + 1]int
	for i, field := range append([]string{fields[parent]}, fields[first:last+1]...) {
		var err error
		if numbers[i], err = strconv.Atoi(field); err != nil {
			return stat{}, fmt.Errorf("a field is no number: %w", err)
		}
	}
	return stat{
		parent: numbers[0],
		used:   time.Duration(numbers[1]+numbers[2]) * tick,
		waited: time.Duration(numbers[3]+numbers[4]) * tick,
	}, nil
}

// Time is the processor time of a live process, in user and system mode.
func Time(pid int) (time.Duration, error) {
	s, err := statOf(pid)
	return s.used, err
}

// Tree lists a process and all live ones that descend from it.
func Tree(root int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if s, err := statOf(pid); err == nil {
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree, nil
}

// TreeTime is the processor time of a process and of all that ever descended from it,
// but for what ended and was waited for by nobody of the tree. Differences of it are
// true to a tick for each live process.
func TreeTime(root int) (time.Duration, error) {
	if _, err := statOf(root); err != nil {
		return 0, err
	}
	tree, err := Tree(root)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range tree {
		if s, err := statOf(pid); err == nil {
			sum += s.used + s.waited
		}
	}
	return sum, nil
}

// Memory is the proportional set size of processes, in MiB: a page that n processes
// share counts as an n-th of one in each.
func Memory(pids []int) float64 {
	var sum float64
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) //nolint:gosec // A number below /proc.
		if err != nil {
			continue
		}
		if size, err := Size(string(content), "Pss"); err == nil {
			sum += size
		}
	}
	return sum
}

// Size finds a line such as "VmRSS:   61440 kB" in what the kernel tells of a process'
// memory, and gives its MiB.
func Size(text, field string) (float64, error) {
	for line := range strings.Lines(text) {
		size, found := strings.CutPrefix(line, field+":")
		if !found {
			continue
		}
		kib, found := strings.CutSuffix(strings.TrimSpace(size), " kB")
		if !found {
			return 0, fmt.Errorf("%q is not in kB", strings.TrimSpace(line))
		}
		value, err := strconv.ParseFloat(kib, 64)
		if err != nil {
			return 0, fmt.Errorf("size in %q: %w", strings.TrimSpace(line), err)
		}
		return value / 1024, nil
	}
	return 0, fmt.Errorf("it has no %s", field)
}

// Named lists those of the processes whose command line holds the text.
func Named(pids []int, text string) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text)
	})
}

// Peak takes samples again and again until stop is called, which gives the highest.
func Peak(every time.Duration, sample func() float64) (stop func() float64) {
	ask, answer := make(chan struct{}), make(chan float64)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		highest := sample()
		for {
			select {
			case <-ticker.C:
				highest = max(highest, sample())
			case <-ask:
				answer <- highest
				return
			}
		}
	}()
	return func() float64 {
		close(ask)
		return <-answer
	}
}
