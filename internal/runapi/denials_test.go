package runapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

func TestDenialsSayWhatToDo(t *testing.T) {
	maps := access.Denial{Verb: "create", Resource: "configmaps", Namespace: "demo"}
	for why, c := range map[string]struct {
		denials []access.Denial
		want    string
	}{
		"none":                       {nil, ""},
		"one":                        {[]access.Denial{maps}, "the operator's account may not create configmaps in the namespace demo: `ensign rbac"},
		"the same again":             {[]access.Denial{maps, maps}, "may not create configmaps in the namespace demo: "},
		"several, in whatever order": {[]access.Denial{maps, {Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale"}}, "may not create configmaps in the namespace demo, patch deployments/scale of the group apps: "},
		"of another account":         {[]access.Denial{{Username: "system:serviceaccount:demo:deployer", Verb: "create", Resource: "configmaps", Namespace: "demo"}}, "the account system:serviceaccount:demo:deployer, as which this resource's runs use the API (serviceAccountName), may not create configmaps in the namespace demo: give it"},
		"the right to act as it":     {[]access.Denial{{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "demo"}}, "the operator's account may not impersonate serviceaccounts in the namespace demo: `ensign rbac"},
		"text of a client":           {[]access.Denial{{Verb: "get", Resource: "a\x1b[2J\nb", Namespace: strings.Repeat("ä", 300)}}, `may not get a\x1b[2J\nb in the namespace ää`},
	} {
		t.Run(why, func(t *testing.T) {
			var d denials
			for _, denial := range c.denials {
				d.add(denial)
			}
			if got := d.say(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestAFinalizerWithoutRightsIsToldOfItsNamespace(t *testing.T) {
	for _, deletes := range []bool{true, false} {
		d := denials{deletes: deletes}
		d.add(access.Denial{Username: "system:serviceaccount:demo:deployer", Verb: "get", Resource: "configmaps"})
		if got := d.say(); strings.Contains(got, "with the annotation abandon") != deletes {
			t.Errorf("deletes %v: got %q", deletes, got)
		}
	}
}

func TestDenialsAreBounded(t *testing.T) {
	var d denials
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() { d.add(access.Denial{Verb: "get", Resource: fmt.Sprint(i, strings.Repeat("€", 500))}) })
	}
	all.Wait()
	if got := d.say(); len(got) > 1<<10 || !strings.Contains(got, "(and 97 more)") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
