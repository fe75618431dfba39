package pyenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxShownValue is how many bytes of a variable's value an error shows.
const maxShownValue = 256

// maxBlamed is how many variables are tried: each takes as long as the try that it stops.
const maxBlamed = 64

// blame returns the part of the environment that stops try, in words that follow "did not run"; ""
// if none does. First, try has to succeed without all variables of Ansible, of Python and of the
// linker. Then each variable that alone makes it fail is named. A failure because memory was short
// for a moment names none. dir is a directory to write to.
func (e Env) blame(ctx context.Context, dir string, try func(context.Context, Env) error) string {
	noSettings := filepath.Join(dir, "empty.cfg")
	if os.WriteFile(noSettings, nil, 0o600) != nil {
		return ""
	}
	var suspects, others []string
	for _, entry := range e.environ {
		if slices.ContainsFunc([]string{"ANSIBLE_", "PYTHON", "LD_"}, func(prefix string) bool { return strings.HasPrefix(entry, prefix) }) {
			suspects = append(suspects, entry)
		} else {
			others = append(others, entry)
		}
	}
	without := e
	without.environ = append(slices.Clone(others), "ANSIBLE_CONFIG="+noSettings)
	if len(suspects) > maxBlamed || try(ctx, without) != nil {
		return ""
	}
	slices.Sort(suspects)
	var found []string
	for _, suspect := range suspects {
		with := e
		with.environ = append(slices.Clone(without.environ), suspect)
		if try(ctx, with) != nil {
			found = append(found, described(suspect))
		}
	}
	files := e
	files.environ = others
	if len(found) == 0 && try(ctx, files) != nil {
		found = []string{"an ansible.cfg in the home directory or in /etc/ansible"}
	}
	switch {
	case ctx.Err() != nil || len(found) == 0:
		return ""
	case len(found) == 1:
		return " with " + found[0] + ", and does without"
	default:
		return " with each of " + strings.Join(found, ", ") + ", and does without them"
	}
}

// described says what a variable is, with its value.
func described(variable string) string {
	name, value, _ := strings.Cut(variable, "=")
	if name == "ANSIBLE_CONFIG" {
		return fmt.Sprintf("the settings of %q", value) // The manager itself may have set the variable.
	}
	return fmt.Sprintf("the environment variable %s=%q", name, value[:min(len(value), maxShownValue)])
}
