package warm

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// serve plays a server until the manager is gone or lets it end. It may be
//   - "broken": it complains and ends,
//   - "killed": the same, by a signal,
//   - "frozen": it does not answer the manager,
//   - "deaf": it answers the manager, and nobody at its socket,
//   - "busy": it does not end before the manager does.
func serve(how string) {
	if how == "broken" {
		fmt.Fprintln(os.Stderr, "no such module")
		return
	}
	if how == "killed" {
		fmt.Fprintln(os.Stderr, "no such module")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	var socket string
	for _, arg := range os.Args {
		if path, found := strings.CutPrefix(arg, "socket="); found {
			socket = path
		}
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	fmt.Println("ready")
	if how != "deaf" {
		go answer(listener, "cold ping")
	}
	for order := make([]byte, 1); ; {
		switch _, err := os.Stdin.Read(order); {
		case err != nil || order[0] == 'r' && how != "busy":
			return
		case order[0] == 'p' && how != "frozen":
			fmt.Println("alive")
		}
	}
}

// answer says the line to whoever asks.
func answer(listener net.Listener, line string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(conn, make([]byte, 4)) // As the real one: a request first.
		fmt.Fprintln(conn, line)
		_ = conn.Close()
	}
}

const (
	// short is a pause between two looks at servers that are replaced anyhow.
	short = 200 * time.Millisecond
	// ample is one within which a server answers.
	ample = 3 * time.Second
)
