// Command warm-exec stands in for ansible-runner, ansible-playbook and python in a
// warm run: it has a server, which has imported what they need, fork a process that
// becomes the program with everything that this process was given, and then is that
// process to whoever started it: it passes signals on and ends as that one ends.
//
// It is called by a link DIR/bin/NAME. DIR/NAME.sock is the server's socket and
// DIR/real/NAME a link to the real program, which it becomes itself when the server
// is not there or refuses: before anything of the program has run, and never after.
//
// internal/ansible/warm/server/ensign_warm/wire.py has the protocol.
package main

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

func main() {
	// There is never more than one thing to do. With more places for that Go looks out
	// for work for 20 ms, which is most of what this process would cost.
	runtime.GOMAXPROCS(1)
	os.Exit(run(os.Args))
}

// run returns the exit code, if it returns.
func run(args []string) int {
	bin, name := filepath.Split(args[0])
	dir := filepath.Dir(filepath.Clean(bin))
	if code, warm := tryWarm(filepath.Join(dir, name+".sock"), args[1:]); warm {
		return code
	}
	return becomeReal(filepath.Join(dir, "real", name), args)
}

// becomeReal runs the program that the link names, in this process.
func becomeReal(link string, args []string) int {
	const notFound = 127
	program, err := os.Readlink(link)
	if err == nil {
		err = syscall.Exec(program, append([]string{program}, args[1:]...), os.Environ()) //nolint:gosec // It is what was asked for.
	}
	complain(args[0] + ": " + err.Error() + "\n")
	return notFound
}

func complain(text string) {
	_, _ = os.Stderr.WriteString(text) // There is nobody else to tell.
}
