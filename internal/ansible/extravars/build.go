package extravars

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the settings of one watch for the variables of its runs.
type Options struct {
	// GVK is the watched kind. Its group and kind are part of the names of the
	// variables that hold the whole object.
	GVK schema.GroupVersionKind
	// SnakeCase converts every key of the spec, at every depth.
	SnakeCase bool
	// MarkUnsafe makes Encode tag the object's strings as untrusted. Without it, a user who may
	// write the object can run code in the operator.
	MarkUnsafe bool
	// Values take the place of the spec's fields as variables; nil: the spec's own.
	Values map[string]any
	// Vars and FinalizerVars are the variables of watches.yaml. They are trusted, and
	// override variables of the object. FinalizerVars are used only if Finalizing is set.
	Vars, FinalizerVars map[string]any
	// Overrides are trusted too, and override all others.
	Overrides map[string]any
	// Finalizing builds the variables of a finalizer's run. Build never refuses such a
	// run: it leaves fields with problems out and lists them in Variables.Dropped.
	Finalizing bool
	// RefuseSops refuses sops_* names, which the collection community.sops reads.
	RefuseSops bool
}

// Variables are the extra vars of one run, ready to be encoded.
type Variables struct {
	// Dropped is the sorted list of the paths of fields that the run does not get as
	// variables: names that Ansible would override anyway and, in a finalizer's run,
	// fields for which Build would otherwise fail. A long list ends with a line that
	// says how many more there are.
	Dropped []string

	untrusted  map[string]any // from the object
	trusted    map[string]any // from watches.yaml
	markUnsafe bool
}

// Build returns the variables of a run for the object, as the API server returned
// it. Build does not change the object. The error is always an *InvalidSpecError; if
// Finalizing is set, the error is nil.
//
// If two sources have the same name, the later one in this list wins: the fields of
// the spec or the values, ansible_operator_meta, the whole object, the spec as written, the
// watch's vars, the finalizer's vars, the overrides.
func Build(object map[string]any, o Options) (Variables, error) {
	var problems, dropped problemList
	clean := cleanObject(object, &problems)
	spec, ok := clean["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
	}
	values := spec
	if o.Values != nil {
		values, _ = cleanObject(map[string]any{"spec": o.Values}, &problems)["spec"].(map[string]any)
	}
	untrusted := specVariables(values, o, &problems, &dropped)
	if problems.count > 0 && !o.Finalizing {
		return Variables{}, &InvalidSpecError{Problems: problems.lines()}
	}
	dropped.merge(problems)

	variable := ObjectVariableName(o.GVK)
	untrusted["ansible_operator_meta"] = operatorMeta(clean)
	untrusted[variable] = clean
	untrusted[variable+"_spec"] = spec
	return Variables{
		Dropped:    dropped.paths(),
		untrusted:  untrusted,
		trusted:    trustedVariables(o),
		markUnsafe: o.MarkUnsafe,
	}, nil
}

// operatorMeta returns the variable ansible_operator_meta. The namespace of a
// cluster-scoped object is "".
func operatorMeta(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return map[string]any{"name": name, "namespace": namespace}
}

func trustedVariables(o Options) map[string]any {
	trusted := map[string]any{}
	maps.Copy(trusted, o.Vars)
	if o.Finalizing {
		maps.Copy(trusted, o.FinalizerVars)
	}
	maps.Copy(trusted, o.Overrides)
	return trusted
}

// ObjectVariableName returns the name of the variable that holds the whole object,
// such as _apps_deployment.
func ObjectVariableName(gvk schema.GroupVersionKind) string {
	word := strings.NewReplacer(".", "_", "-", "_")
	return "_" + word.Replace(strings.ToLower(gvk.Group)) + "_" + word.Replace(strings.ToLower(gvk.Kind))
}

// fieldAction is the way in which Build treats a top-level field of the spec.
type fieldAction int

const (
	allow fieldAction = iota
	// refuse is for names by which a CR could choose the programs that Ansible
	// starts, or change the meaning of a role's expressions: extra vars override all
	// other variables.
	refuse
	// drop is for names whose values Ansible overrides anyway, with a warning.
	drop
)

// actionFor returns the action for a field by the name of its variable.
func actionFor(name string, o Options) fieldAction {
	switch name {
	case "inventory_hostname", "inventory_hostname_short", "inventory_dir", "inventory_file", "group_names", "omit":
		return refuse
	case "groups", "hostvars", "vars", "environment", "playbook_dir", "play_hosts",
		"role_name", "role_names", "role_path", "role_uuid":
		return drop
	}
	switch {
	case strings.HasPrefix(name, "ansible_"), strings.HasPrefix(name, "_ansible_"), strings.HasPrefix(name, reservedPrefix):
		return refuse
	case o.RefuseSops && strings.HasPrefix(name, "sops_"):
		return refuse
	default:
		return allow
	}
}

// specVariables returns the variables for the fields of a cleaned spec.
func specVariables(spec map[string]any, o Options, problems, dropped *problemList) map[string]any {
	n := namer{snakeCase: o.SnakeCase, problems: problems}
	root := (*path)(nil).field("spec")
	names := n.names(spec, root)
	variables := make(map[string]any, len(names))
	for _, key := range slices.Sorted(maps.Keys(names)) {
		name, at := names[key], root.field(key)
		switch actionFor(name, o) {
		case refuse:
			problems.add(at, "is the variable %s, which controls Ansible itself; rename the field", quote(name))
		case drop:
			dropped.add(at, "is the variable %s, which Ansible sets itself", quote(name))
		case allow:
			variables[name] = n.value(spec[key], at)
		}
	}
	return variables
}
