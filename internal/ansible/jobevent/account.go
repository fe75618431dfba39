package jobevent

import (
	"fmt"

	"github.com/ensign-operator/ensign/pkg/content"
)

// How a run of Ansible is started on this machine: by a new interpreter, or forked from one that has
// imported Ansible.
const (
	StartCold = "cold"
	StartWarm = "warm"
)

// Account returns the numbers of a run for the log and the metrics. start is how the run was started.
func (s *Summary) Account(start string) content.Account {
	summary := "" // A run that was canceled reports no statistics.
	if s.StatsSeen {
		summary = fmt.Sprintf("%d ok, %d changed, %d skipped, %d failed", s.OK, s.Changed, s.Skipped, s.Failures+s.Lost)
	}
	return content.Account{
		Start: start,
		Numbers: []content.Number{
			{Name: "ok", Value: s.OK}, {Name: "changed", Value: s.Changed}, {Name: "skipped", Value: s.Skipped}, {Name: "failures", Value: s.Failures},
			{Name: "unreachable", Value: s.Unreachable}, {Name: "rescued", Value: s.Rescued}, {Name: "ignored", Value: s.Ignored},
		},
		Summary:       summary,
		AlreadyLogged: len(s.Failed)+len(s.UnreachableHosts) > 0,
	}
}
