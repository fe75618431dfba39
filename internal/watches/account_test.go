package watches

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhoRunsAre(t *testing.T) {
	path := Path{"spec", "deploy", "account"}
	for why, test := range map[string]struct {
		account  ServiceAccount
		inCR     any
		fallback string
		nowhere  bool // the CR has no namespace
		want     string
		fault    string
	}{
		"nobody is named":                        {want: ""},
		"the watch names one":                    {account: ServiceAccount{Name: "a"}, want: "system:serviceaccount:ns:a"},
		"the manager names one":                  {fallback: "f", want: "system:serviceaccount:ns:f"},
		"the watch comes before the manager":     {account: ServiceAccount{Name: "a"}, fallback: "f", want: "system:serviceaccount:ns:a"},
		"the CR comes before both":               {account: ServiceAccount{Name: "a", Path: path}, inCR: "c", fallback: "f", want: "system:serviceaccount:ns:c"},
		"a CR that names none":                   {account: ServiceAccount{Name: "a", Path: path}, want: "system:serviceaccount:ns:a"},
		"a CR that names none, but the manager":  {account: ServiceAccount{Path: path}, fallback: "f", want: "system:serviceaccount:ns:f"},
		"a CR that names none, and nobody does":  {account: ServiceAccount{Path: path}, fault: "spec.deploy.account: name the service account"},
		"an empty name in a CR":                  {account: ServiceAccount{Name: "a", Path: path}, inCR: "", want: "system:serviceaccount:ns:a"},
		"a CR names one without being asked":     {inCR: "c", want: ""},
		"a name of another namespace":            {account: ServiceAccount{Path: path}, inCR: "kube-system:admin", fault: `spec.deploy.account: "kube-system:admin" is not the name`},
		"a name that would end the header":       {account: ServiceAccount{Path: path}, inCR: "a\r\nImpersonate-Group: system:masters", fault: "spec.deploy.account"},
		"no text":                                {account: ServiceAccount{Name: "a", Path: path}, inCR: map[string]any{}, fault: "spec.deploy.account: write the name"},
		"a number":                               {account: ServiceAccount{Path: path}, inCR: int64(1), fault: "the value is not a string"},
		"a CR in no namespace":                   {account: ServiceAccount{Name: "a"}, nowhere: true, fault: "this resource is cluster-scoped"},
		"a CR in no namespace, by default":       {fallback: "f", nowhere: true, fault: "--default-service-account"},
		"a CR in no namespace, and nobody named": {nowhere: true, want: ""},
	} {
		t.Run(why, func(t *testing.T) {
			cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deploy": map[string]any{"account": test.inCR}}}}
			if test.inCR == nil {
				cr.Object = map[string]any{}
			}
			if !test.nowhere {
				cr.SetNamespace("ns")
			}
			got, err := test.account.Username(cr, test.fallback)
			if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.fault)
			}
		})
	}
	beside := &unstructured.Unstructured{Object: map[string]any{"spec": "text"}}
	beside.SetNamespace("ns")
	if got, err := (ServiceAccount{Name: "a", Path: path}).Username(beside, ""); err == nil || strings.Contains(err.Error(), "interface") {
		t.Errorf("a field on the way that is no object: want an error in words, got %q, %v", got, err)
	}
}

func TestFaultsOfServiceAccounts(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"no name of an account": {"  serviceAccountName: system:serviceaccount:a:b\n", []string{"4 serviceAccountName … is not allowed"}},
		"no path":               {"  serviceAccountNamePath: spec.\n", []string{"4 serviceAccountNamePath … not a path"}},
		"a path to several":     {"  serviceAccountNamePath: spec.accounts[*].name\n", []string{"4 serviceAccountNamePath … several"}},
		"a list":                {"  serviceAccountName: [a]\n", []string{"4 serviceAccountName"}},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := one(t, test.text)
			wantFaults(t, err, test.want...)
		})
	}
}
