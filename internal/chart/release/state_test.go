package release_test

import (
	"slices"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
)

func TestDecide(t *testing.T) {
	const chart, digest = "hello", "d1"
	revision := func(version int, status string) release.Revision {
		return release.Revision{Version: version, Status: status, Chart: chart, Digest: digest}
	}
	other := func(r release.Revision, chart, digest string) release.Revision {
		r.Chart, r.Digest = chart, digest
		return r
	}
	for why, test := range map[string]struct {
		history []release.Revision
		state   release.State
		action  order.Action
		unlock  bool
	}{
		"nothing was ever installed":                          {nil, release.Absent, order.Install, false},
		"it was uninstalled, and its history kept":            {[]release.Revision{revision(1, "uninstalled")}, release.Absent, order.Install, false},
		"also that of another chart":                          {[]release.Revision{other(revision(1, "uninstalled"), "other", "")}, release.Absent, order.Install, false},
		"it is as it should be":                               {[]release.Revision{revision(1, "deployed")}, release.InSync, "", false},
		"the last revision counts, wherever it stands":        {[]release.Revision{revision(2, "deployed"), other(revision(1, "superseded"), chart, "d0")}, release.InSync, "", false},
		"the values or the chart have changed":                {[]release.Revision{other(revision(1, "deployed"), chart, "d0")}, release.OutOfSync, order.Upgrade, false},
		"an upgrade could not supersede the revision before":  {[]release.Revision{revision(1, "deployed"), revision(2, "deployed")}, release.OutOfSync, order.Upgrade, false},
		"another program made it from the same chart":         {[]release.Revision{other(revision(4, "deployed"), chart, "")}, release.OutOfSync, order.Upgrade, false},
		"another chart has the name":                          {[]release.Revision{other(revision(1, "deployed"), "other", digest)}, release.Foreign, "", false},
		"another chart is being installed under the name":     {[]release.Revision{other(revision(1, "pending-install"), "other", digest)}, release.Foreign, "", false},
		"the first installation was killed":                   {[]release.Revision{revision(1, "pending-install")}, release.Pending, order.Reinstall, true},
		"an upgrade was killed":                               {[]release.Revision{revision(1, "deployed"), revision(2, "pending-upgrade")}, release.Pending, order.Upgrade, true},
		"a rollback was killed":                               {[]release.Revision{revision(1, "superseded"), revision(2, "failed"), revision(3, "pending-rollback")}, release.Pending, order.Upgrade, true},
		"the first installation failed":                       {[]release.Revision{revision(1, "failed")}, release.Failed, order.Reinstall, false},
		"an upgrade failed, and the digest is that of today":  {[]release.Revision{revision(1, "deployed"), revision(2, "failed")}, release.Failed, order.Upgrade, false},
		"it was being removed, and is wanted again":           {[]release.Revision{revision(1, "uninstalling")}, release.Failed, order.Reinstall, false},
		"a status that is not known is no success":            {[]release.Revision{revision(1, "unknown")}, release.Failed, order.Reinstall, false},
		"superseded as the last one: its successor went away": {[]release.Revision{revision(1, "superseded")}, release.Failed, order.Upgrade, false},
	} {
		t.Run(why, func(t *testing.T) {
			for range 2 {
				state, action, unlock := release.Decide(test.history, chart, digest)
				if state != test.state || action != test.action || unlock != test.unlock {
					t.Errorf("got %s, %q, %v", state, action, unlock)
				}
				slices.Reverse(test.history)
			}
		})
	}
}
