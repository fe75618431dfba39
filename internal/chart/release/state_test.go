package release

import (
	"slices"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

func TestDecide(t *testing.T) {
	const digest = "d1"
	// known are states of the ledger, the first revision first.
	for why, test := range map[string]struct {
		known   []common.Status
		made    string // the digest of the last one
		lost    []int  // the revisions without a record
		others  []int  // revisions of which somebody else has written a record
		mayTake bool
		want    Decision
	}{
		"nothing was ever installed":                         {nil, digest, nil, nil, false, Decision{State: Absent, Action: order.Install}},
		"what may be taken is not there":                     {nil, digest, nil, nil, true, Decision{State: Absent, Action: order.Install}},
		"it was uninstalled, and its history kept":           {[]common.Status{"uninstalled"}, digest, nil, nil, false, Decision{State: Absent, Action: order.Install}},
		"it is as it should be":                              {[]common.Status{"deployed"}, digest, nil, nil, false, Decision{State: InSync}},
		"the last revision counts":                           {[]common.Status{"superseded", "deployed"}, digest, nil, nil, false, Decision{State: InSync}},
		"the values or the chart have changed":               {[]common.Status{"deployed"}, "d0", nil, nil, false, Decision{State: OutOfSync, Action: order.Upgrade}},
		"the first installation was killed":                  {[]common.Status{"pending-install"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Install}},
		"an upgrade was killed":                              {[]common.Status{"deployed", "pending-upgrade"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Upgrade}},
		"the first installation failed":                      {[]common.Status{"failed"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Install}},
		"an upgrade failed, and the digest is that of today": {[]common.Status{"deployed", "failed"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Upgrade}},
		"more attempts failed than are opened":               {append([]common.Status{"deployed"}, slices.Repeat([]common.Status{"failed"}, 30)...), digest, nil, nil, false, Decision{State: Failed, Action: order.Upgrade}},
		"it was being removed, and is wanted again":          {[]common.Status{"uninstalling"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Reinstall}},
		"superseded as the last one: its successor is gone":  {[]common.Status{"superseded"}, digest, nil, nil, false, Decision{State: Failed, Action: order.Upgrade}},

		"the record of what is deployed is lost":         {[]common.Status{"superseded", "deployed"}, digest, []int{2}, nil, false, Decision{State: Lost, Action: order.Upgrade, TakeOver: true}},
		"that of a failed upgrade is lost":               {[]common.Status{"deployed", "failed"}, digest, []int{2}, nil, false, Decision{State: Failed, Action: order.Upgrade}},
		"that of a failed installation is lost":          {[]common.Status{"failed"}, digest, []int{1}, nil, false, Decision{State: Lost, Action: order.Install, TakeOver: true}},
		"somebody has overwritten it":                    {[]common.Status{"deployed"}, digest, []int{1}, []int{1}, false, Decision{State: Lost, Action: order.Upgrade, TakeOver: true}},
		"another has the name":                           {nil, digest, nil, []int{1}, false, Decision{State: Foreign}},
		"it may be taken over":                           {nil, digest, nil, []int{1}, true, Decision{State: Unsealed, Action: order.Upgrade, TakeOver: true}},
		"somebody wrote a later record":                  {[]common.Status{"deployed"}, digest, nil, []int{2}, false, Decision{State: OutOfSync, Action: order.Upgrade, TakeOver: true}},
		"one of an earlier life lies below":              {[]common.Status{"deployed", "deployed"}, digest, []int{1}, []int{1}, false, Decision{State: InSync}},
		"what others write of a status makes no upgrade": {[]common.Status{"failed"}, digest, nil, []int{2}, false, Decision{State: Failed, Action: order.Install, TakeOver: true}},
	} {
		t.Run(why, func(t *testing.T) {
			h := History{Known: revisions(test.known...)}
			record := func(r *order.Revision) *Release {
				if r == nil || slices.Contains(test.lost, r.Version) {
					return nil
				}
				return &Release{Version: r.Version, Labels: map[string]string{order.DigestLabel: test.made}}
			}
			if n := len(h.Known); n > 0 {
				h.Last, h.Deployed = record(&h.Known[n-1]), record(order.Deployed(h.Known))
			}
			for _, version := range test.others {
				h.Revisions = append(h.Revisions, Revision{Version: version, Status: "deployed"})
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
