package pyenv

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// defaultLocale needs no package: the C library has it, or its base package does.
const defaultLocale = "LANG=C.UTF-8"

// localeScript fails where Ansible would refuse the locale.
const localeScript = `import locale
locale.setlocale(locale.LC_ALL, "")
if locale.getlocale()[1].lower() not in ("utf-8", "utf8"):
    raise SystemExit(1)`

// InUTF8 returns the environment with a locale that Ansible takes, which is one in UTF-8
// that is installed: the one that the environment names, or C.UTF-8 in its place. It is
// in LANG, over which a task may set any other variable. replaced are the names of the
// variables that named another.
//
// Without a locale at all, Python would choose one itself, and tell the processes that
// it starts by a variable (PEP 538): ansible-playbook would have an environment that
// nobody has given it.
func (e Env) InUTF8(ctx context.Context) (in Env, replaced []string) {
	var kept []string
	for _, entry := range e.environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name != "LANG" && name != "LANGUAGE" && !strings.HasPrefix(name, "LC_"):
			kept = append(kept, entry)
		case value != "":
			replaced = append(replaced, name)
		}
	}
	if len(replaced) > 0 && e.takesLocale(ctx) {
		return e, nil
	}
	kept = append(kept, defaultLocale)
	e.environ = kept
	return e, replaced
}

func (e Env) takesLocale(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Python, "-c", localeScript)
	cmd.Dir, cmd.Env = e.Bin, append(slices.Clone(e.environ), "PYTHONCOERCECLOCALE=0")
	return cmd.Run() == nil
}

// Environ is what the programs of the environment are run with, as "NAME=value".
func (e Env) Environ() []string { return slices.Clone(e.environ) }
