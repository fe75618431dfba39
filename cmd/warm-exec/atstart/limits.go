// Package atstart knows how the process was started, as far as Go's runtime changes
// that before main: package os raises the limit of open files.
package atstart

import "syscall"

// resources is how many limits Linux has.
const resources = 16

// limits is set before package os is, of which this package needs nothing: packages
// that are ready are initialized in the order of their import paths.
var limits, errLimits = read() //nolint:gochecknoglobals // It must be read before main.

// Limits are the soft and hard limits, by the number of the resource.
func Limits() ([resources]syscall.Rlimit, error) { return limits, errLimits }

func read() ([resources]syscall.Rlimit, error) {
	var all [resources]syscall.Rlimit
	for i := range all {
		if err := syscall.Getrlimit(i, &all[i]); err != nil {
			return all, err
		}
	}
	return all, nil
}
