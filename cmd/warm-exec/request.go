package main

import (
	"encoding/binary"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/ensign-operator/ensign/cmd/warm-exec/atstart"
)

const (
	version = "2"
	// maxRequest is what a server takes.
	maxRequest = 16 << 20
	lengthSize = 4
	// notSent is NUL, which separates fields and is in none that the kernel gives.
	notSent = "\x00"
)

var errTooLong = errors.New("the request is too long")

// request is what a server needs to know of this process, with its length before it.
func request(args []string) ([]byte, error) {
	directory, err := syscall.Getwd()
	if err != nil {
		return nil, err
	}
	limits, err := atstart.Limits()
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, limit := range limits {
		pairs = append(pairs, strconv.FormatUint(limit.Soft, 10)+":"+strconv.FormatUint(limit.Hard, 10))
	}
	fields := []string{version, strconv.Itoa(umask()), directory, ignored(), strings.Join(pairs, " "), blocking(), strconv.Itoa(len(args))}
	fields = append(append(fields, args...), os.Environ()...)
	payload := strings.Join(fields, notSent) + notSent
	if len(payload) > maxRequest {
		return nil, errTooLong
	}
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, lengthSize+len(payload)), uint32(len(payload))), payload...), nil
}

func umask() int {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return mask
}

// blocking reports whether all the standard descriptors are: "1", or "0".
func blocking() string {
	for fd := range uintptr(3) {
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0); errno != 0 || flags&syscall.O_NONBLOCK != 0 {
			return "0"
		}
	}
	return "1"
}

// ignored lists the signals that this process was told to ignore, as far as Go's
// runtime lets them be: it knows of these two.
func ignored() string {
	var numbers []string
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			numbers = append(numbers, strconv.Itoa(int(s)))
		}
	}
	return strings.Join(numbers, " ")
}

func number(text string) (int, error) { return strconv.Atoi(text) }
