package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine says where this runs, with what, and whether it had the machine to itself.
func (b *bench) machine() string {
	text := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b.warm.About != "" {
		text += ", " + b.warm.About
	}
	return text + b.load
}

func load() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "" // Not a Linux machine.
	}
	return describeLoad(string(load), runtime.NumCPU())
}

// describeLoad reads /proc/loadavg, and says when others use the machine too.
func describeLoad(loadavg string, cores int) string {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(first, 64)
	switch {
	case err != nil:
		return ""
	case load > float64(cores)/2:
		return fmt.Sprintf(", load %.1f at the start: BUSY, so that times are rough", load)
	default:
		return fmt.Sprintf(", load %.1f at the start", load)
	}
}
