package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// shape returns the revisions as "1 deployed 2", where the last number is that of the names of objects.
func shape(e *Entry) string {
	var all []string
	for _, r := range e.Revisions {
		all = append(all, fmt.Sprintf("%d %s %d", r.Version, r.Status, len(r.Objects)))
	}
	return strings.Join(all, ", ")
}

// entry returns one whose revisions an earlier attempt has left in these states.
func entry(statuses ...string) *Entry {
	e := &Entry{Owner: order.Owner{Kind: "K", UID: "u1"}, Name: "a"}
	for i, status := range statuses {
		e.Revisions = append(e.Revisions, order.Revision{Version: i + 1, Attempt: "before", Status: status, Names: order.Names{Objects: []order.Object{{Name: "o"}}}})
	}
	return e
}

func TestWhatAnAttemptLeaves(t *testing.T) {
	for why, test := range map[string]struct {
		before []string
		action order.Action
		adds   []int
		sealed map[int]string
		gone   []int // the records that are not there
		want   string
	}{
		"an installation":                                  {nil, order.Install, []int{1}, map[int]string{1: "deployed"}, nil, "1 deployed 1"},
		"an installation that was killed":                  {nil, order.Install, []int{1}, nil, nil, "1 pending-install 1"},
		"one that was killed before it wrote":              {nil, order.Install, nil, nil, nil, ""},
		"an upgrade":                                       {[]string{"deployed"}, order.Upgrade, []int{2}, map[int]string{2: "deployed"}, nil, "1 superseded 0, 2 deployed 1"},
		"an upgrade that was killed":                       {[]string{"deployed"}, order.Upgrade, []int{2}, nil, nil, "1 deployed 1, 2 pending-upgrade 1"},
		"an upgrade that was rolled back":                  {[]string{"deployed"}, order.Upgrade, []int{2, 3}, map[int]string{2: "failed", 3: "deployed"}, nil, "1 superseded 0, 2 failed 0, 3 deployed 1"},
		"what others say of an earlier one does not count": {[]string{"deployed"}, order.Upgrade, []int{2}, map[int]string{1: "pending-install", 2: "deployed"}, nil, "1 superseded 0, 2 deployed 1"},
		"one after an attempt that was killed":             {[]string{"deployed", "pending-upgrade"}, order.Upgrade, []int{3}, map[int]string{3: "deployed"}, nil, "1 superseded 0, 2 failed 0, 3 deployed 1"},
		"Helm has pruned the history":                      {[]string{"superseded", "deployed"}, order.Upgrade, []int{3}, map[int]string{3: "deployed"}, []int{1}, "2 superseded 0, 3 deployed 1"},
		"somebody has deleted the record":                  {[]string{"superseded", "deployed"}, order.Upgrade, nil, nil, []int{2}, "1 superseded 0, 2 deployed 1"},
		"an uninstallation":                                {[]string{"deployed"}, order.Uninstall, nil, map[int]string{1: "uninstalled"}, nil, "1 uninstalled 1"},
		"one that was killed":                              {[]string{"deployed"}, order.Uninstall, nil, map[int]string{1: "uninstalling"}, nil, "1 uninstalling 1"},
		"others say so during an upgrade":                  {[]string{"deployed"}, order.Upgrade, nil, map[int]string{1: "uninstalled"}, nil, "1 deployed 1"},
		"a reinstallation begins at 1":                     {[]string{"superseded", "uninstalling"}, order.Reinstall, []int{1}, map[int]string{1: "deployed"}, nil, "1 deployed 1"},
	} {
		t.Run(why, func(t *testing.T) {
			e := entry(test.before...)
			e.Begin(test.action)
			for _, version := range test.adds {
				if err := e.Add(order.Revision{Version: version, Attempt: e.Attempt, Status: "deployed", Names: order.Names{Objects: []order.Object{{Name: "o"}}}}); err != nil {
					t.Fatal(err)
				}
			}
			e.Conclude(test.sealed, func(version int) bool { return !slices.Contains(test.gone, version) })
			if got := shape(e); got != test.want || e.Attempt != "" {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestOnlyTheAttemptThatHasBegunAddsRevisions(t *testing.T) {
	e := entry("deployed")
	if err := e.Add(order.Revision{Version: 2}); err == nil {
		t.Error("none has begun")
	}
	e.Begin(order.Upgrade)
	first := e.Attempt
	e.Begin(order.Upgrade)
	if err := e.Add(order.Revision{Version: 2, Attempt: first}); err == nil || e.Attempt == first {
		t.Errorf("another has begun since: %v", err)
	}
}
