//go:build !linux

package proctree

import (
	"os"
	"syscall"
)

// inGroup is for Linux only, and is not called elsewhere.
func inGroup(*syscall.SysProcAttr, *os.File) {}
