package leases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/faults/audit"
)

// life is what the journal tells of one run: the time between its first sign of
// life and its last one.
type life struct {
	sign // the first

	last   time.Time
	writes int64
}

// journal reads what the runs of an operator write.
type journal struct {
	path  string
	read  int64
	lives map[string]*life // by run
}

// update takes up the whole lines that were written since the last time.
func (j *journal) update() map[string]*life {
	GinkgoHelper()
	file, err := os.Open(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return j.lives
	}
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.NewSectionReader(file, j.read, 1<<40))
	Expect(err).NotTo(HaveOccurred())
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	j.read += int64(len(whole))
	for line := range bytes.Lines(whole) {
		var s sign
		Expect(json.Unmarshal(line, &s)).To(Succeed())
		if j.lives[s.Run] == nil {
			j.lives[s.Run] = &life{sign: s}
		}
		j.lives[s.Run].last, j.lives[s.Run].writes = s.At, s.Writes
	}
	return j.lives
}

// atWork reports whether the replica has live runs of each of the custom resources,
// which write.
func (j *journal) atWork(replica string, crs ...string) bool {
	GinkgoHelper()
	lives := j.update()
	for _, cr := range crs {
		found := false
		for _, l := range lives {
			found = found || l.Replica == replica && l.CR == cr && l.writes > 0
		}
		if !found {
			return false
		}
	}
	return true
}

// overlaps lists the runs of one custom resource that lived at the same time. woke
// tells for replicas all of whose processes were stopped when they went on: what
// runs do that had begun before is told apart, in the moment until they are killed.
func (j *journal) overlaps(woke map[string]time.Time) (overlaps []string, afterWaking time.Duration) {
	GinkgoHelper()
	lives := map[string][]life{}
	for _, l := range j.update() {
		if at, stopped := woke[l.Replica]; stopped && l.last.After(at) {
			afterWaking = max(afterWaking, l.last.Sub(at))
			if l.At.After(at) && l.Begun.Before(at) {
				continue // Stopped before its first sign of life.
			}
			l.last = l.At
		}
		lives[l.CR] = append(lives[l.CR], *l)
	}
	for _, of := range lives {
		slices.SortFunc(of, func(a, b life) int { return a.At.Compare(b.At) })
		for i, next := range of[1:] {
			if before := of[i]; !next.At.After(before.last) {
				overlaps = append(overlaps, fmt.Sprintf("%s: run %s of %s lived until %s, run %s of %s from %s",
					next.CR, before.Run, before.Replica, before.last.Format(time.StampMicro), next.Run, next.Replica, next.At.Format(time.StampMicro)))
			}
		}
	}
	return overlaps, afterWaking
}

// request is one line of the audit log.
type request struct {
	Verb string `json:"verb"`
	As   struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object   object `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	UserAgent string    `json:"userAgent"`
}

type object struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

func (r request) String() string {
	return fmt.Sprintf("%s by %s of %s (%s): %d at %s", r.Verb, r.As.Username, r.Object, r.UserAgent, r.Response.Code, r.Received.Format(time.StampMicro))
}

func (r request) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// reign is a replica's time as the leader, from its acquisition of the lease.
type reign struct {
	replica string
	begun   time.Time
	writes  map[string]int // accepted ones, by resource and subresource
}

// readAudit returns the leaders in their order, and the requests that would write and
// came of one when another one had acquired the lease. A former leader may ask for
// the lease, as all candidates do, but not get it.
func readAudit(namespace string) (reigns []reign, late []string) {
	GinkgoHelper()
	var requests []request
	file, err := os.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	lines := audit.Lines(file)
	for lines.Scan() {
		var r request
		Expect(json.Unmarshal(lines.Bytes(), &r)).To(Succeed())
		if strings.HasPrefix(r.As.Username, namespace+"-") && r.writes() {
			requests = append(requests, r)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	slices.SortFunc(requests, func(a, b request) int { return a.Received.Compare(b.Received) })
	known := map[string]int{}
	for _, r := range requests {
		aboutLease, accepted := r.Object.Resource == "leases", r.Response.Code < 300
		at, leads := known[r.As.Username]
		if !leads && aboutLease && accepted {
			at = len(reigns)
			known[r.As.Username] = at
			reigns = append(reigns, reign{replica: r.As.Username, begun: r.Received, writes: map[string]int{}})
		}
		_, leads = known[r.As.Username]
		switch {
		case aboutLease && !accepted:
		case !leads || at < len(reigns)-1:
			late = append(late, r.String())
		case accepted:
			reigns[at].writes[strings.Trim(r.Object.Resource+"/"+r.Object.Subresource, "/")]++
		}
	}
	return reigns, late
}
