package pyenv

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// defaultLocale is part of the C library or of its base package.
const defaultLocale = "LANG=C.UTF-8"

// localeScript fails if Ansible would refuse the locale.
const localeScript = `import locale
locale.setlocale(locale.LC_ALL, "")
if locale.getlocale()[1].lower() not in ("utf-8", "utf8"):
    raise SystemExit(1)`

// WithUTF8Locale returns the environment with a locale that Ansible accepts: an installed
// one in UTF-8. That is the locale that the environment names, if it is accepted, and
// otherwise C.UTF-8. C.UTF-8 is set in LANG, so that a task can override it by any other
// variable. replaced are the names of the variables that were replaced.
//
// Without any locale, Python would choose one and pass it to child processes in a variable
// (PEP 538), so that ansible-playbook would have another environment.
func (e Env) WithUTF8Locale(ctx context.Context) (in Env, replaced []string) {
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
	if len(replaced) > 0 && e.acceptsLocale(ctx) {
		return e, nil
	}
	kept = append(kept, defaultLocale)
	e.environ = kept
	return e, replaced
}

// acceptsLocale reports whether Ansible accepts the locale of the environment.
func (e Env) acceptsLocale(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Python, "-c", localeScript)
	cmd.Dir, cmd.Env = e.Bin, append(slices.Clone(e.environ), "PYTHONCOERCECLOCALE=0")
	return cmd.Run() == nil
}

// Environ returns the environment variables for the environment's programs, as "NAME=value".
func (e Env) Environ() []string { return slices.Clone(e.environ) }
