package engine

import "github.com/ensign-operator/ensign/internal/ansible/jobevent"

// completionFormat is the base image's: microseconds without trailing zeros, UTC.
const completionFormat = "2006-01-02T15:04:05.999999+00:00"

// Counts returns the ansibleResult of a run; nil if Ansible did not report its statistics.
func Counts(s jobevent.Summary) map[string]any {
	if !s.StatsSeen {
		return nil
	}
	return map[string]any{
		"ok":         int64(s.OK),
		"changed":    int64(s.Changed),
		"skipped":    int64(s.Skipped),
		"failures":   int64(s.Failures),
		"completion": s.Completion.UTC().Format(completionFormat),
	}
}
