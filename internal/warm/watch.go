package warm

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"time"
)

const (
	// lookPause is the time between two looks whether a server answers.
	lookPause = 10 * time.Second
	// answerTime is how long it may take to answer: a machine may be very busy.
	answerTime = 10 * time.Second
)

var errSilent = errors.New("it says something else")

// watch kills the process when it does not answer, so that another one is started.
// It returns when ended is closed.
func (v *server) watch(ended <-chan struct{}) {
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		if !v.ready() {
			continue
		}
		if err := ask(v.set.socket(v.kind)); err != nil && v.ready() {
			v.log.Info("a server for warm runs does not answer, and is killed", "reason", err.Error())
			v.kill()
		}
	}
}

// ask asks the server at the socket for an answer.
func ask(socket string) error {
	conn, err := net.DialTimeout("unix", socket, answerTime)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	if _, err := conn.Write(make([]byte, 4)); err != nil { // A request of no length.
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "cold ping") {
		return errSilent
	}
	return nil
}
