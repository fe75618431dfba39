package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Defaults for the name of a chart's kind: operator-sdk's choice.
const (
	defaultDomain  = "my.domain"
	defaultGroup   = "charts"
	defaultVersion = "v1"
)

var versionName = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// domain returns the domain of a new project for this kind: its API group, unless group and version
// are named by themselves.
func (k *Kind) domain() string {
	group, _, _ := strings.Cut(k.APIVersion, "/")
	if k.Chart != "" {
		return cmp.Or(group, defaultDomain)
	}
	return group
}

// settle decides what the kind is called: by its API version, or by the defaults of a chart.
func (k *Kind) settle(plan *Plan) error {
	if k.Chart != "" {
		if err := k.loadChart(); err != nil {
			return err
		}
		if k.Kind == "" {
			k.Kind = kindName(k.chart.Name)
		}
		if k.APIVersion == "" && k.Version == "" {
			k.Version = defaultVersion
		}
		if k.APIVersion == "" && k.Group == "" && !k.NoGroup {
			k.Group = defaultGroup
		}
	}
	if k.APIVersion != "" {
		if err := k.splitAPIVersion(); err != nil {
			return err
		}
	}
	if name := kindName(k.Kind); name != k.Kind {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the kind is called %s: kinds begin with a capital, and have no hyphens", name))
		k.Kind = name
	}
	k.APIGroup = strings.TrimPrefix(k.Group+"."+k.Domain, ".")
	if k.chart != nil && k.Domain == defaultDomain {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the API group is %s, which cannot be changed once there are objects: --api-version example.com/v1 chooses another", k.APIGroup))
	}
	return nil
}

func (k *Kind) splitAPIVersion() error {
	if k.Group != "" || k.Version != "" || k.NoGroup {
		return fmt.Errorf("--api-version=%s gives the group and the version: leave --group and --version out", k.APIVersion)
	}
	group, version, found := strings.Cut(k.APIVersion, "/")
	if !found || group == "" {
		return fmt.Errorf("--api-version=%q: write a group and a version, such as apps.example.com/v1alpha1", k.APIVersion)
	}
	rest, isOurs := strings.CutSuffix("."+group, "."+k.Domain)
	if !isOurs {
		return fmt.Errorf("--api-version=%s: the groups of this project end with its domain, %s: write such a group, or make another project", k.APIVersion, k.Domain)
	}
	k.Version, k.Group, k.NoGroup = version, strings.TrimPrefix(rest, "."), rest == ""
	return nil
}

// kindName returns a name in the form of a kind: MysqlServer for mysql-server.
func kindName(name string) string {
	var kind strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return kind.String()
}

func (k *Kind) check() error {
	var errs []error
	switch {
	case k.Group == "" && !k.NoGroup:
		errs = append(errs, fmt.Errorf("--group is missing: with the domain it makes the API group, as in --group apps for apps.%s; --group '' makes it %s", k.Domain, k.Domain))
	case k.Group != "" && (k.Group == k.Domain || strings.HasSuffix(k.Group, "."+k.Domain)):
		errs = append(errs, fmt.Errorf("--group=%s: leave the domain out, it is added: the API group would be %s.%s", k.Group, k.Group, k.Domain))
	case len(validation.IsDNS1123Subdomain(k.APIGroup)) > 0:
		errs = append(errs, fmt.Errorf("--group=%q: write lower case letters, digits and hyphens, such as apps", k.Group))
	case !strings.Contains(k.APIGroup, "."):
		errs = append(errs, fmt.Errorf("the API group %s has no dot, and the API server takes no CRD in such a group: write %s.example.com, for example", k.APIGroup, k.APIGroup))
	}
	if !versionName.MatchString(k.Version) {
		errs = append(errs, fmt.Errorf("--version=%q: write v1, v2beta1 or v1alpha3, for example", k.Version))
	}
	if lower := strings.ToLower(k.Kind); lower == k.Kind || len(validation.IsDNS1035Label(lower)) > 0 {
		errs = append(errs, fmt.Errorf("--kind=%q: write a noun that begins with a capital and has letters and digits alone, at most 63, such as MySQLCluster", k.Kind))
	}
	if k.Plural != "" && len(validation.IsDNS1035Label(k.Plural)) > 0 {
		errs = append(errs, fmt.Errorf("--plural=%q: write lower case letters, digits and hyphens, such as menus", k.Plural))
	}
	return errors.Join(errs...)
}
