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
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/ensign-operator/ensign/test/faults/audit"
)

// life is what the journal tells of one run: the time between its first sign of
// life and its last one.
type life struct {
	sign // the first

	signs  []time.Time
	last   time.Time
	writes int64
}

// since counts the signs of life after a time. They come every 20 ms of a run that has a
// processor; unlike seconds they are as few as the rest of the machine is slow.
func (l *life) since(at time.Time) (count int) {
	for _, sign := range l.signs {
		if sign.After(at) {
			count++
		}
	}
	return count
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
		of := j.lives[s.Run]
		of.signs, of.last, of.writes = append(of.signs, s.At), s.At, s.Writes
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
// runs do that had begun before is told apart, in the moment until they are killed: the most
// signs of life that one of them gave.
func (j *journal) overlaps(woke map[string]time.Time) (overlaps []string, afterWaking int) {
	GinkgoHelper()
	lives := map[string][]life{}
	for _, l := range j.update() {
		if at, stopped := woke[l.Replica]; stopped && l.last.After(at) {
			afterWaking = max(afterWaking, l.since(at))
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
			// A process that is slow to start is a run too. Its start is known to a tick.
			if before := of[i]; !next.Begun.Add(tick).After(before.last) {
				overlaps = append(overlaps, fmt.Sprintf("%s: run %s of %s lived until %s, run %s of %s from %s",
					next.CR, before.Run, before.Replica, before.last.Format(time.StampMicro), next.Run, next.Replica, next.Begun.Format(time.StampMicro)))
			}
		}
	}
	return overlaps, afterWaking
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
	requests, err := audit.Log{Path: auditLog}.Events(namespace + "-")
	Expect(err).NotTo(HaveOccurred())
	requests = slices.DeleteFunc(requests, func(r auditv1.Event) bool {
		return r.ImpersonatedUser == nil || !strings.HasPrefix(r.ImpersonatedUser.Username, namespace+"-") ||
			!slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) ||
			r.ObjectRef.APIGroup == "authorization.k8s.io" // A review stores nothing.
	})
	slices.SortFunc(requests, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	known := map[string]int{}
	for _, r := range requests {
		as, resource := r.ImpersonatedUser.Username, strings.Trim(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
		aboutLease, accepted := resource == "leases", r.ResponseStatus.Code < 300
		if _, leads := known[as]; !leads && aboutLease && accepted {
			known[as] = len(reigns)
			reigns = append(reigns, reign{replica: as, begun: r.RequestReceivedTimestamp.Time, writes: map[string]int{}})
		}
		at, leads := known[as]
		switch {
		case aboutLease && !accepted:
		case !leads || at < len(reigns)-1:
			late = append(late, fmt.Sprintf("%s by %s of %s/%s (%s): %d at %s",
				r.Verb, as, resource, r.ObjectRef.Name, r.UserAgent, r.ResponseStatus.Code, r.RequestReceivedTimestamp.Format(time.StampMicro)))
		case accepted:
			reigns[at].writes[resource]++
		}
	}
	return reigns, late
}
