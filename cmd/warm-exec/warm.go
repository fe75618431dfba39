package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// answerTimeout is how long a server may take to say that the program can begin.
	answerTimeout = 3 * time.Second
	// goAhead is what lets the program begin.
	goAhead = 'g'
	// lost is the signal that a program died of whose server died.
	lost = syscall.SIGKILL
)

// tryWarm has the server at the socket run the program, and returns its exit code.
// It is false when the server does not, and nothing of the program has run then.
func tryWarm(socket string, args []string) (code int, warm bool) {
	terminal, fit := controls()
	if !fit {
		return 0, false
	}
	ask, err := request(args)
	if err != nil {
		return 0, false
	}
	conn, err := connect(socket)
	if err != nil {
		return 0, false
	}
	defer conn.close()
	child, err := conn.prepare(ask)
	if err != nil {
		return 0, false
	}
	if terminal {
		giveUpTerminal()
	}
	signals := forwarded()
	if err := conn.begin(); err != nil {
		child.kill()
		if terminal && !takeTerminal() {
			return dieOf(lost), true
		}
		return 0, false
	}
	return conn.follow(child, signals), true
}

// forwarded starts to catch what is passed on. What was ignored at the start stays so.
func forwarded() chan os.Signal {
	c := make(chan os.Signal, 64)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGALRM, syscall.SIGWINCH} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// follow passes signals on to the program, and ends as it ends.
func (c *connection) follow(child *process, signals chan os.Signal) int {
	go func() {
		for s := range signals {
			if number, ok := s.(syscall.Signal); ok {
				child.send(number)
			}
		}
	}()
	code, err := c.end()
	if err != nil {
		// Nobody knows how far it has come: it must not go on, and not begin again.
		child.kill()
		return dieOf(lost)
	}
	if code < 0 {
		return dieOf(syscall.Signal(-code))
	}
	return code
}
