package runner

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/rundir"
)

// command holds everything that decides about a process to start.
type command struct {
	path string
	args []string // without the program's own name
	env  []string
	dir  string
}

// command returns the command for the spec: the Python interpreter with ensign_run.py and
// the arguments of ansible-runner. Its processes are marked by nonce.
func (r *Runner) command(spec Spec, dir *rundir.Dir, executed string, nonce int64) command {
	return command{
		path: r.Python,
		args: append([]string{executed}, r.argv(spec, dir)...),
		env:  r.environ(dir, nonce),
		dir:  dir.Project,
	}
}

// argv returns the arguments of ansible-runner. Values that may begin with a dash are
// joined to their options with "=", because argparse would take them for options.
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

// argsOption is the option with the arguments for ansible-playbook.
const argsOption = "--cmdline="

// rolesPath returns the directory of the spec's role, followed by those for all watches.
// The latter have to be repeated, because ansible-runner replaces the run's roles path.
func (r *Runner) rolesPath(spec Spec) string {
	var paths []string
	if spec.RolesPath != "" {
		paths = append(paths, spec.RolesPath)
	}
	return strings.Join(append(paths, r.RolesPath...), string(filepath.ListSeparator))
}

// droppedVariables returns the variables of the manager that no run gets: "NAME", or
// "NAME*" for all names with that prefix.
func droppedVariables() []string {
	return []string{
		// These would bypass the API proxy.
		"KUBERNETES_SERVICE_*", "K8S_AUTH_*", "KUBECONFIG",
		// These set limits of the manager's own process or its controllers.
		"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOTRACEBACK",
		"MAX_CONCURRENT_RECONCILES_*", "ANSIBLE_VERBOSITY_*", "ANSIBLE_DEBUG_LOGS",
		// The run has a copy, which is named on the command line.
		"ANSIBLE_INVENTORY",
		// These change the behavior of ansible-runner and its callback.
		"AWX_LIB_DIRECTORY", "AWX_ISOLATED_DATA_DIR", "AD_HOC_COMMAND_ID", "PROJECT_UPDATE_ID", "JOB_ID",
		// These remove the data of job events, the closing statistics included.
		"RUNNER_OMIT_EVENTS", "RUNNER_ONLY_FAILED_EVENTS",
	}
}

// inheritedEnv returns the variables that a run gets from the manager's environment.
func (r *Runner) inheritedEnv() map[string]string {
	return process.InheritedEnv(r.Env, droppedVariables(), r.DropEnv)
}

// environ returns the environment of a run's processes, sorted.
func (r *Runner) environ(dir *rundir.Dir, nonce int64) []string {
	env := r.inheritedEnv()
	path := env["PATH"]
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	env["PATH"] = filepath.Dir(r.Binary) + string(filepath.ListSeparator) + path
	env["PYTHONPATH"] = program.PythonPath(r.programDir(), env["PYTHONPATH"])
	env["JOB_ID"] = strconv.FormatInt(nonce, 10)
	env["KUBECONFIG"] = dir.Kubeconfig
	env["K8S_AUTH_KUBECONFIG"] = dir.Kubeconfig
	env["ANSIBLE_LOCAL_TEMP"] = dir.Temp
	env["TMPDIR"] = dir.SharedTemp
	if r.RolesPath != nil {
		env["ANSIBLE_ROLES_PATH"] = strings.Join(r.RolesPath, string(filepath.ListSeparator))
	}
	if r.CollectionsPath != nil {
		env["ANSIBLE_COLLECTIONS_PATH"] = strings.Join(r.CollectionsPath, string(filepath.ListSeparator))
	}
	for _, entry := range r.reaper().Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	// Ansible colours its output, because it runs in a terminal, unless told otherwise.
	if env["ANSIBLE_FORCE_COLOR"] == "" && env["ANSIBLE_NOCOLOR"] == "" {
		env["ANSIBLE_NOCOLOR"] = "true"
	}
	// Without this, ansible-runner drops large results, and the reason of a failure with
	// them. ensign_run.py truncates them instead.
	env["MAX_EVENT_RES"] = strconv.Itoa(math.MaxInt)
	process.BypassHTTPProxy(env)
	return process.Entries(env)
}
