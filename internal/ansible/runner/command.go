package runner

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/rundir"
)

// command is a process to start: everything about it, and nothing else decides.
type command struct {
	path string
	args []string // without the program's own name
	env  []string
	dir  string
}

// newNonce returns what marks the processes of a run: a random integer that is positive
// and fits into 63 bits.
func newNonce() (int64, error) {
	var b [8]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return 0, fmt.Errorf("make a nonce: %w", err)
		}
		if n := int64(binary.LittleEndian.Uint64(b[:]) >> 1); n > 0 {
			return n, nil
		}
	}
}

// command is what runs the spec in dir, in processes that nonce marks: the
// interpreter with the program that is ansible-runner with the playbook in it.
func (r *Runner) command(spec Spec, dir *rundir.Dir, program string, nonce int64) command {
	return command{
		path: r.Python,
		args: append([]string{program}, r.argv(spec, dir)...),
		env:  r.environ(dir, nonce),
		dir:  dir.Project,
	}
}

// argv is ansible-runner's command line. Values are joined to their options with
// "=" wherever they might begin with a dash, which argparse would take for
// another option.
func (r *Runner) argv(spec Spec, dir *rundir.Dir) []string {
	args := []string{
		"run", dir.Private, "--json",
		"--ident=" + spec.ID,
		"--artifact-dir", dir.Output,
		"--inventory", dir.Inventory,
	}
	if spec.Verbosity > 0 {
		args = append(args, "-"+strings.Repeat("v", spec.Verbosity))
	}
	if r.Args != "" {
		args = append(args, argsOption+r.Args)
	}
	if spec.Playbook != "" {
		return append(args, "-p", spec.Playbook)
	}
	args = append(args, "--role="+spec.Role, "--hosts", "localhost")
	if path := r.rolesPath(spec); path != "" {
		args = append(args, "--roles-path="+path)
	}
	if r.SkipFacts {
		args = append(args, "--role-skip-facts")
	}
	return args
}

// argsOption introduces the arguments for ansible-playbook.
const argsOption = "--cmdline="

// rolesPath is where Ansible finds the role itself first, then others.
// ansible-runner makes it the run's whole roles path, so the paths that apply to
// all watches have to be repeated here.
func (r *Runner) rolesPath(spec Spec) string {
	var paths []string
	if spec.RolesPath != "" {
		paths = append(paths, spec.RolesPath)
	}
	return strings.Join(append(paths, r.RolesPath...), string(filepath.ListSeparator))
}

// dropped are the variables of the manager that no run gets: "NAME", or "NAME*"
// for all that begin so.
func dropped() []string {
	return []string{
		// They lead around the API proxy.
		"KUBERNETES_SERVICE_*", "K8S_AUTH_*", "KUBECONFIG",
		// They set limits of the manager's own process or its controllers.
		"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOTRACEBACK",
		"MAX_CONCURRENT_RECONCILES_*", "ANSIBLE_VERBOSITY_*", "ANSIBLE_DEBUG_LOGS",
		// The run has its own copy, named on the command line.
		"ANSIBLE_INVENTORY",
		// They redirect what ansible-runner and its callback do.
		"AWX_LIB_DIRECTORY", "AWX_ISOLATED_DATA_DIR", "AD_HOC_COMMAND_ID", "PROJECT_UPDATE_ID", "JOB_ID",
		// They take the data out of job events, the closing counts included.
		"RUNNER_OMIT_EVENTS", "RUNNER_ONLY_FAILED_EVENTS",
	}
}

// passed is what a run gets of the manager's environment.
func (r *Runner) passed() map[string]string {
	env := map[string]string{}
	never := dropped()
	for _, entry := range r.Env {
		name, value, found := strings.Cut(entry, "=")
		if found && name != "" && !matches(name, never) && !slices.Contains(r.DropEnv, name) {
			env[name] = value
		}
	}
	return env
}

// environ is the environment of a run's processes, sorted.
func (r *Runner) environ(dir *rundir.Dir, nonce int64) []string {
	env := r.passed()
	path := env["PATH"]
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	env["PATH"] = filepath.Dir(r.Binary) + string(filepath.ListSeparator) + path
	env["JOB_ID"] = strconv.FormatInt(nonce, 10)
	env["KUBECONFIG"] = dir.Kubeconfig
	env["K8S_AUTH_KUBECONFIG"] = dir.Kubeconfig
	env["ANSIBLE_LOCAL_TEMP"] = dir.Temp
	if dir.SharedTemp != "" {
		env["TMPDIR"] = dir.SharedTemp
	}
	if r.RolesPath != nil {
		env["ANSIBLE_ROLES_PATH"] = strings.Join(r.RolesPath, string(filepath.ListSeparator))
	}
	if r.CollectionsPath != nil {
		env["ANSIBLE_COLLECTIONS_PATH"] = strings.Join(r.CollectionsPath, string(filepath.ListSeparator))
	}
	for _, mark := range r.owner().Environ() {
		name, value, _ := strings.Cut(mark, "=")
		env[name] = value
	}
	plain(env)
	whole(env)
	direct(env)
	return sorted(env)
}

// plain keeps Ansible from colouring its output, which it does because
// ansible-runner gives it a terminal, unless the operator's owner asked for it.
func plain(env map[string]string) {
	if env["ANSIBLE_FORCE_COLOR"] == "" && env["ANSIBLE_NOCOLOR"] == "" {
		env["ANSIBLE_NOCOLOR"] = "true"
	}
}

// whole lets results of any size come: ansible-runner would drop the large ones, and say
// nothing of why the task failed. The program of runs cuts them.
func whole(env map[string]string) {
	env["MAX_EVENT_RES"] = strconv.Itoa(math.MaxInt)
}

// direct makes sure that requests to the API proxy on 127.0.0.1 do not go
// through an HTTP proxy that the manager's environment names.
func direct(env map[string]string) {
	proxied := slices.ContainsFunc([]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}, func(name string) bool {
		return env[name] != "" || env[strings.ToLower(name)] != ""
	})
	if !proxied {
		return
	}
	exceptions := cmp.Or(env["NO_PROXY"], env["no_proxy"])
	exceptions = strings.TrimPrefix(exceptions+",127.0.0.1,localhost", ",")
	env["NO_PROXY"], env["no_proxy"] = exceptions, exceptions
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

func sorted(env map[string]string) []string {
	entries := make([]string, 0, len(env))
	for name, value := range env {
		entries = append(entries, name+"="+value)
	}
	slices.Sort(entries)
	return entries
}
