package warm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays Python, that is, a server, when FAKE says how.
func TestMain(m *testing.M) {
	if how := os.Getenv("FAKE"); how != "" {
		note("started", os.Getpid())
		serve(how)
		scratch.Leave(0)
	}
	os.Exit(m.Run())
}

// note writes a line for the test to read.
func note(words ...any) { scratch.Note("NOTES", words...) }

// serve obeys the manager until it is gone. The server may be
//   - "broken": it complains and ends,
//   - "killed": the same, by a signal,
//   - "unsettled": it ends because its files have changed,
//   - "slow": it does not get ready,
//   - "frozen": it does not answer once it has forked, nor end.
func serve(how string) {
	switch how {
	case "broken", "killed":
		fmt.Fprintln(os.Stderr, "no such module")
		if how == "killed" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		scratch.Leave(1)
	case "unsettled":
		scratch.Leave(unsettled)
	}
	control := connected(os.Stdin)
	if how != "slow" {
		fmt.Fprintln(control, "off modules ansible.x:y z\nready")
	}
	var forks sync.WaitGroup
	for frozen := false; ; {
		switch order, files := hear(control, 1); {
		case order == orderFork:
			frozen = how == "frozen"
			forks.Go(func() { answer(connected(files[0])) })
		case frozen, order == 0 && how == "frozen":
			time.Sleep(time.Second) // It is killed.
		case order == orderAnswer:
			note("asked")
			fmt.Fprintln(control, "alive")
		case order == orderRetire:
			note("retired", os.Getpid())
			go func() { forks.Wait(); scratch.Leave(0) }()
		default:
			return
		}
	}
}

func connected(file *os.File) *net.UnixConn {
	conn, err := net.FileConn(file)
	if err != nil {
		panic(err)
	}
	_ = file.Close()
	return conn.(*net.UnixConn)
}

// hear returns one byte and the descriptors that came with it; 0 if the other side is gone.
func hear(conn *net.UnixConn, descriptors int) (said byte, files []*os.File) {
	read, space := make([]byte, 1), make([]byte, syscall.CmsgSpace(4*descriptors))
	_, size, _, _, _ := conn.ReadMsgUnix(read, space) //nolint:dogsled // Without a byte the other side is gone.
	messages, _ := syscall.ParseSocketControlMessage(space[:size])
	for _, message := range messages {
		numbers, _ := syscall.ParseUnixRights(&message)
		for _, number := range numbers {
			files = append(files, os.NewFile(uintptr(number), "received"))
		}
	}
	return read[0], files
}

// answer answers a request by what its first argument is: "hang up", "say LINE", or what a shell
// does as the fork, with its output to the manager.
func answer(conn *net.UnixConn) {
	defer func() { _ = conn.Close() }()
	head := make([]byte, 4)
	_, _ = io.ReadFull(conn, head)
	payload := make([]byte, binary.LittleEndian.Uint32(head))
	_, _ = io.ReadFull(conn, payload)
	does := string(bytes.Split(payload, []byte{0})[2])
	if does == "hang up" {
		return
	}
	fork := exec.Command("/bin/sh", "-c", "cat; "+does)
	fork.Stdout = os.Stdout
	stdin, errIn := fork.StdinPipe()
	line, says := strings.CutPrefix(does, "say ")
	if err := fork.Start(); err != nil || errIn != nil {
		panic(err)
	}
	if !says {
		line = fmt.Sprintln("ready", fork.Process.Pid)
	}
	fmt.Fprint(conn, line)
	said, outputs := hear(conn, 2)
	note("heard", string(said))
	if said != goAhead {
		_ = fork.Process.Kill()
	} else {
		_, _ = outputs[0].Write(payload)
		fmt.Fprint(outputs[1], "errors")
	}
	_ = stdin.Close() // The fork begins.
	_ = fork.Wait()
	if status := fork.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		fmt.Fprintln(conn, "signal", int(status.Signal()))
	} else {
		fmt.Fprintln(conn, "exit", status.ExitStatus())
	}
}
