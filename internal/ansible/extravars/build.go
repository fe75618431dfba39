package extravars

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options says how one watch wants the variables of its objects.
type Options struct {
	// GVK is the watched kind; group and kind name the variables that hold the
	// whole object.
	GVK schema.GroupVersionKind
	// SnakeCase converts every key of the spec, at every depth.
	SnakeCase bool
	// MarkUnsafe makes Encode mark the object's strings as untrusted. Without
	// it, whoever may write the object can run code in the operator.
	MarkUnsafe bool
	// Vars and FinalizerVars are the operator's own: trusted, and stronger than
	// what the object says. FinalizerVars count only when Finalizing is set.
	Vars, FinalizerVars map[string]any
	// Finalizing builds the variables of a finalizer's run, which is never
	// refused: what offends is left out and listed in Variables.Dropped.
	Finalizing bool
	// RefuseSops refuses sops_* names, which community.sops reads.
	RefuseSops bool
}

// Variables are the extra vars of one run, ready to be encoded.
type Variables struct {
	// Dropped lists, sorted, the paths of what the object says and the run does
	// not get as a variable: names that Ansible would override anyway and, when
	// finalizing, everything that would otherwise have been refused. A long list
	// ends with a line that tells how many more there are.
	Dropped []string

	untrusted  map[string]any // from the object
	trusted    map[string]any // from watches.yaml
	markUnsafe bool
}

// Build makes the variables of a run for the object, as the API server gave
// it. The object is not changed. The error is always an *InvalidSpecError; with
// Finalizing set there is none.
//
// Later wins: the spec, ansible_operator_meta, the whole object, the spec as
// written, the watch's vars, the finalizer's vars.
func Build(object map[string]any, o Options) (Variables, error) {
	var faults, dropped report
	clean := cleanObject(object, &faults)
	spec, ok := clean["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
	}
	untrusted := specVariables(spec, o, &faults, &dropped)
	if faults.count > 0 && !o.Finalizing {
		return Variables{}, &InvalidSpecError{Problems: faults.problems()}
	}
	dropped.merge(faults)

	whole := objectVariable(o.GVK)
	untrusted["ansible_operator_meta"] = identity(clean)
	untrusted[whole] = clean
	untrusted[whole+"_spec"] = spec
	return Variables{
		Dropped:    dropped.places(),
		untrusted:  untrusted,
		trusted:    trustedVariables(o),
		markUnsafe: o.MarkUnsafe,
	}, nil
}

// identity is what a role calls its object by; a cluster-scoped one has an
// empty namespace.
func identity(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return map[string]any{"name": name, "namespace": namespace}
}

func trustedVariables(o Options) map[string]any {
	trusted := maps.Clone(o.Vars)
	if !o.Finalizing {
		return trusted
	}
	if trusted == nil {
		trusted = map[string]any{}
	}
	maps.Copy(trusted, o.FinalizerVars)
	return trusted
}

// objectVariable names the variable of the whole object: _apps_deployment.
func objectVariable(gvk schema.GroupVersionKind) string {
	word := strings.NewReplacer(".", "_", "-", "_")
	return "_" + word.Replace(strings.ToLower(gvk.Group)) + "_" + word.Replace(strings.ToLower(gvk.Kind))
}

// treatment is what becomes of a field at the top of the spec, by the name of
// its variable.
type treatment int

const (
	pass treatment = iota
	// refuse: extra vars are stronger than everything else, so these names
	// would choose the programs that Ansible starts, or change what a role's
	// own expressions mean.
	refuse
	// drop: Ansible's own value wins anyway, and it warns.
	drop
)

func treat(name string, o Options) treatment {
	switch name {
	case "inventory_hostname", "inventory_hostname_short", "inventory_dir", "inventory_file", "group_names", "omit":
		return refuse
	case "groups", "hostvars", "vars", "environment", "playbook_dir", "play_hosts",
		"role_name", "role_names", "role_path", "role_uuid":
		return drop
	}
	switch {
	case strings.HasPrefix(name, "ansible_"), strings.HasPrefix(name, "_ansible_"), strings.HasPrefix(name, reserved):
		return refuse
	case o.RefuseSops && strings.HasPrefix(name, "sops_"):
		return refuse
	default:
		return pass
	}
}

// specVariables makes variables of the fields of a cleaned spec.
func specVariables(spec map[string]any, o Options, faults, dropped *report) map[string]any {
	n := namer{snakeCase: o.SnakeCase, faults: faults}
	root := (*path)(nil).field("spec")
	names := n.names(spec, root)
	variables := make(map[string]any, len(names))
	for _, key := range slices.Sorted(maps.Keys(names)) {
		name, at := names[key], root.field(key)
		switch treat(name, o) {
		case refuse:
			faults.add(at, "is the variable %s, which steers Ansible itself; rename the field", quote(name))
		case drop:
			dropped.add(at, "is the variable %s, which Ansible sets itself", quote(name))
		case pass:
			variables[name] = n.value(spec[key], at)
		}
	}
	return variables
}
