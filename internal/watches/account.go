package watches

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// ServiceAccount says as which account the runs of a watch use the API. With neither field it is the
// manager's default. With one of them no run has the manager's own rights.
type ServiceAccount struct {
	// Name is that of an account in the namespace of each CR.
	Name string `json:",omitempty"`
	// Path leads to the name in the CR. A name at that path takes precedence over Name.
	Path Path `json:",omitempty"`
}

// IsSet reports whether the watch says as which account runs use the API.
func (s ServiceAccount) IsSet() bool { return s.Name != "" || len(s.Path) > 0 }

// Username returns the user name by which the API server knows the account of the CR's runs:
// system:serviceaccount:NAMESPACE:NAME. It is "" where runs use the manager's own rights: then
// neither the watch nor fallback names an account. An error says which field of the CR is wrong.
func (s ServiceAccount) Username(cr *unstructured.Unstructured, fallback string) (string, error) {
	inCR, err := s.inCR(cr)
	if err != nil {
		return "", err
	}
	name := cmp.Or(inCR, s.Name, fallback)
	switch {
	case name == "" && len(s.Path) > 0:
		return "", fmt.Errorf("%s: name the service account of the resource's namespace as which its runs use the API", s.Path)
	case name == "":
		return "", nil
	}
	if cr.GetNamespace() == "" {
		return "", fmt.Errorf("runs must use the service account %q in the resource's namespace, but this resource is cluster-scoped; watch this kind in a manager of its own, without --default-service-account or serviceAccountName", name)
	}
	return serviceaccount.MakeUsername(cr.GetNamespace(), name), nil
}

// inCR returns the name that the CR gives; "" if it gives none.
func (s ServiceAccount) inCR(cr *unstructured.Unstructured) (string, error) {
	if len(s.Path) == 0 {
		return "", nil
	}
	value, found, err := unstructured.NestedFieldNoCopy(cr.Object, s.Path...)
	if err != nil {
		return "", fmt.Errorf("%s: write the name of a service account; a field on the way to it is not an object", s.Path)
	}
	if !found || value == nil {
		return "", nil
	}
	name, isText := value.(string)
	if !isText {
		return "", fmt.Errorf("%s: write the name of a service account; the value is not a string", s.Path)
	}
	if faults := serviceAccountFaults(name); name != "" && len(faults) > 0 {
		return "", fmt.Errorf("%s: %q is not the name of a service account: %s", s.Path, name, strings.Join(faults, "; "))
	}
	return name, nil
}

// serviceAccountFaults says what keeps the API server from taking the text for the name of an account.
func serviceAccountFaults(name string) []string { return validation.IsDNS1123Subdomain(name) }

// completeServiceAccount sets the account of a watch from its fields.
func (p *parser) completeServiceAccount(d *rawWatch) {
	p.validName("serviceAccountName", d.account, serviceAccountFaults(d.account.text), "the name of a service account in the namespace of each resource, such as deployer")
	d.ServiceAccount = ServiceAccount{Name: d.account.text, Path: p.parsePathField("serviceAccountNamePath", d.accountPath)}
	for _, field := range d.ServiceAccount.Path {
		if field == EachElement {
			p.addFault(d.accountPath.line, "serviceAccountNamePath: %q leads to several names; write a path to one, such as spec.serviceAccountName", d.accountPath.text)
		}
	}
}
