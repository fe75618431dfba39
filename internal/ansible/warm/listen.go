package warm

import (
	"bufio"
	"io"
	"strings"
	"time"
)

// maxComplaint is how much a server may say to its standard error at a time.
const maxComplaint = 4 << 10

// listen follows what the process says until it ends.
func (v *server) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "ready":
			v.setServing(true)
		case "renewed":
			v.setServing(false)
		case "alive":
			v.answer()
		case "cold":
			v.refusal(rest)
		case "warm":
			v.pool.onFork(nameOf(v.kind))
			if v.kind == runner {
				v.pool.forked(rest)
			}
		}
	}
}

func (v *server) setServing(serving bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.serving = serving && !v.leaving
	v.asked, v.changed = false, time.Now()
	if serving {
		v.served, v.failed = true, false
	}
}

// note takes note that the process has ended, and reports whether it has served, and
// whether the one before has not.
func (v *server) note() (served, again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	served, again = v.served, v.failed
	v.failed, v.served = !served, false
	return served, again
}

// level is at which level to log something.
func level(again bool) int {
	if again {
		return 1
	}
	return 0
}

// refusal tells why a program was started cold. Nobody has to do something about one.
func (v *server) refusal(reason string) {
	v.log.V(1).Info("a program of a warm run is started cold", "program", nameOf(v.kind), "reason", reason)
	v.pool.refused(nameOf(v.kind), reason)
}

// WithoutDetail leaves out what a reason names, of which there may be any number.
func WithoutDetail(reason string) string {
	for _, word := range []string{"variable", "defect"} {
		if strings.HasPrefix(reason, word+" ") {
			return word
		}
	}
	return reason
}

// complaints log what a server says to its standard error.
type complaints struct{ *server }

// Write never fails.
func (c *complaints) Write(b []byte) (int, error) {
	c.log.V(level(c.hasFailed())).Info("a server for warm runs complains", "output", strings.TrimSpace(string(b[:min(len(b), maxComplaint)])))
	return len(b), nil
}
