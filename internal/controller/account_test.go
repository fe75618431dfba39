package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// granted is access that notes as which account runs get it.
type granted struct {
	Access

	usernames []string
}

func (g *granted) Grant(cr *unstructured.Unstructured, username string, labels map[string]string) (Grant, error) {
	g.usernames = append(g.usernames, username)
	return g.Access.Grant(cr, username, labels)
}

func TestRunsGetTheAPIInTheNameOfTheirAccount(t *testing.T) {
	watch := plainWatch()
	watch.ServiceAccount = watches.ServiceAccount{Path: watches.Path{"spec", "account"}}
	for why, test := range map[string]struct {
		account any
		want    []string
	}{
		"the account of the spec":         {"deployer", []string{"system:serviceaccount:ns:deployer"}},
		"the manager's":                   {nil, []string{"system:serviceaccount:ns:fallback"}},
		"none, and so no run with rights": {"a:b", nil},
	} {
		t.Run(why, func(t *testing.T) {
			cr := widget()
			if test.account != nil {
				if err := unstructured.SetNestedField(cr.Object, test.account, "spec", "account"); err != nil {
					t.Fatal(err)
				}
			}
			b := newBench(t, watch, cr, interceptor.Funcs{})
			b.Defaults.ServiceAccount = "fallback"
			access := &granted{Access: b.Access}
			b.Access = access
			b.mustReconcile()
			wantEqual(t, test.want, access.usernames)
			wantEqual(t, len(test.want), len(b.runner.specs))
			if test.want == nil {
				wantEqual(t, content.ReasonInvalidSpec, status.Last(b.stored()).Reason)
			}
			once, err := b.RunOnce(t.Context(), Once{CR: b.stored()})
			wantEqual(t, nil, err)
			wantEqual(t, test.want == nil, once.Reason == content.ReasonInvalidSpec)
		})
	}
}
