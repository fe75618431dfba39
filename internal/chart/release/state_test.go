package release

import (
	"slices"
	"testing"
	"time"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

func TestDecide(t *testing.T) {
	const digest = "d1"
	sealed := func(version int, status string) Revision {
		return Revision{Version: version, Status: status, Digest: digest, Sealed: true, Mine: true}
	}
	with := func(r Revision, change func(*Revision)) Revision {
		change(&r)
		return r
	}
	older := func(r *Revision) { r.Digest = "d0" }
	stranger := func(version int, status string) Revision {
		return Revision{Version: version, Status: status, Digest: digest}
	}
	for why, test := range map[string]struct {
		revisions []Revision
		mayTake   bool
		want      Decision
	}{
		"nothing was ever installed":                         {nil, false, Decision{State: Absent, Action: order.Install}},
		"what may be taken is not there":                     {nil, true, Decision{State: Absent, Action: order.Install}},
		"it was uninstalled, and its history kept":           {[]Revision{sealed(1, "uninstalled")}, false, Decision{State: Absent, Action: order.Install}},
		"it is as it should be":                              {[]Revision{sealed(1, "deployed")}, false, Decision{State: InSync}},
		"the last revision counts":                           {[]Revision{sealed(2, "deployed"), with(sealed(1, "superseded"), older)}, false, Decision{State: InSync}},
		"the values or the chart have changed":               {[]Revision{with(sealed(1, "deployed"), older)}, false, Decision{State: OutOfSync, Action: order.Upgrade}},
		"an upgrade could not supersede the revision before": {[]Revision{sealed(2, "deployed"), sealed(1, "deployed")}, false, Decision{State: OutOfSync, Action: order.Upgrade}},
		"a predecessor of the CR made it":                    {[]Revision{with(sealed(1, "deployed"), func(r *Revision) { r.Mine = false })}, false, Decision{State: OutOfSync, Action: order.Upgrade}},
		"the first installation was killed":                  {[]Revision{sealed(1, "pending-install")}, false, Decision{State: Pending, Action: order.Install, Unlock: true}},
		"an upgrade was killed":                              {[]Revision{sealed(2, "pending-upgrade"), sealed(1, "deployed")}, false, Decision{State: Pending, Action: order.Upgrade, Unlock: true}},
		"a rollback was killed":                              {[]Revision{sealed(3, "pending-rollback"), sealed(2, "failed"), sealed(1, "superseded")}, false, Decision{State: Pending, Action: order.Upgrade, Unlock: true}},
		"the first installation failed":                      {[]Revision{sealed(1, "failed")}, false, Decision{State: Failed, Action: order.Install}},
		"an upgrade failed, and the digest is that of today": {[]Revision{sealed(2, "failed"), sealed(1, "deployed")}, false, Decision{State: Failed, Action: order.Upgrade}},
		"it was being removed, and is wanted again":          {[]Revision{sealed(1, "uninstalling")}, false, Decision{State: Failed, Action: order.Reinstall}},
		"a status that is not known is no success":           {[]Revision{sealed(1, "unknown")}, false, Decision{State: Failed, Action: order.Reinstall}},
		"superseded as the last one: its successor is gone":  {[]Revision{sealed(1, "superseded")}, false, Decision{State: Failed, Action: order.Upgrade}},

		"another has the name":                               {[]Revision{stranger(1, "deployed")}, false, Decision{State: Foreign}},
		"another had the name, and its history was kept":     {[]Revision{stranger(1, "uninstalled")}, false, Decision{State: Foreign}},
		"another is being installed under the name":          {[]Revision{stranger(1, "pending-install")}, false, Decision{State: Foreign}},
		"it may be taken over, whatever its state says":      {[]Revision{stranger(1, "pending-upgrade")}, true, Decision{State: Unsealed, Action: order.Upgrade, TakeOver: true}},
		"somebody upgraded it by hand, with the same digest": {[]Revision{stranger(2, "deployed"), sealed(1, "superseded")}, false, Decision{State: Failed, Action: order.Upgrade, TakeOver: true}},
		"somebody wrote a later record":                      {[]Revision{stranger(2, "deployed"), sealed(1, "deployed")}, false, Decision{State: OutOfSync, Action: order.Upgrade, TakeOver: true}},
		"records of the operator before are history":         {[]Revision{sealed(3, "deployed"), stranger(2, "deployed"), stranger(1, "superseded")}, false, Decision{State: InSync}},
		"what others write of a status makes no upgrade":     {[]Revision{stranger(2, "deployed"), with(sealed(1, "failed"), older)}, false, Decision{State: Failed, Action: order.Install, TakeOver: true}},
	} {
		t.Run(why, func(t *testing.T) {
			h := History{Revisions: test.revisions}
			if i := slices.IndexFunc(h.Revisions, func(r Revision) bool { return r.Sealed && r.wasDeployed() }); i >= 0 {
				h.Deployed = &Release{Version: h.Revisions[i].Version}
			}
			if got := Decide(h, digest, test.mayTake); got != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestARevisionAfterFailedInstallationsIsTheFirst(t *testing.T) {
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	for why, test := range map[string]struct {
		version int
		info    helm.Info
		want    bool
	}{
		"the first try":          {1, helm.Info{FirstDeployed: first, LastDeployed: later}, true},
		"the third try":          {3, helm.Info{FirstDeployed: later, LastDeployed: later}, true},
		"an upgrade":             {3, helm.Info{FirstDeployed: first, LastDeployed: later}, false},
		"one that says not when": {3, helm.Info{}, false},
	} {
		if got := Installed(&Release{Version: test.version, Info: &test.info}); got != test.want {
			t.Errorf("%s: got %v", why, got)
		}
	}
}

func TestWhoseAReleaseIs(t *testing.T) {
	owner := order.Owner{Group: "g", Kind: "K", Namespace: "ns", Name: "a", UID: "u1"}
	link := func(group, kind, namespace, name, uid string) History {
		gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
		return History{Revisions: []Revision{{Version: 1, Links: []Link{{gvk, namespace, name, typesUID(uid)}}}}}
	}
	for why, test := range map[string]struct {
		history History
		want    bool
	}{
		"no release":             {History{}, false},
		"Helm's command":         {History{Revisions: []Revision{{Version: 1}}}, false},
		"the CR's":               {link("g", "K", "ns", "a", "u1"), true},
		"a predecessor's":        {link("g", "K", "ns", "a", "u0"), true},
		"one by annotation":      {link("g", "K", "ns", "a", ""), true},
		"another kind's":         {link("g", "L", "ns", "a", "u1"), false},
		"another group's":        {link("h", "K", "ns", "a", "u1"), false},
		"that of another name":   {link("g", "K", "ns", "b", "u2"), false},
		"from another namespace": {link("g", "K", "other", "a", ""), false},
		"somebody has upgraded it by Helm's command": {History{Revisions: []Revision{{Version: 2}, link("g", "K", "ns", "a", "u1").Revisions[0]}}, true},
		"the newest one's counts":                    {History{Revisions: []Revision{link("g", "K", "ns", "b", "u2").Revisions[0], link("g", "K", "ns", "a", "u1").Revisions[0]}}, false},
	} {
		if got := test.history.Claimed(owner); got != test.want {
			t.Errorf("%s: got %v", why, got)
		}
	}
}
