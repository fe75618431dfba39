package safevars

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
	"github.com/ensign-operator/ensign/test/harness/cores"
)

// limit is the time that one run may take on a busy machine.
const limit = 20 * time.Minute

// setup is what a run is made of.
type setup struct {
	// object is the custom resource, given the directory for markers.
	object func(markers string) map[string]any
	// prepare adds to the content, a copy of testdata.
	prepare func(project string)
	// plain leaves the marks of untrusted texts out.
	plain bool
	// environ adds to the environment.
	environ []string
}

// run is one run of the real Ansible in a directory of its own.
type run struct {
	dir     string
	markers string // where executed payloads leave their files
	scratch string // where the content leaves its own
	environ []string
	output  string
	err     error
}

// start runs content by ansible-runner with the variables of the object. The
// arguments choose the role or the playbook.
func (s setup) start(t *testing.T, c cores.Core, args ...string) run {
	t.Helper()
	return s.lay(t, c).byRunner(t, c, args...)
}

// theProgram is the path of the program that runs execute.
func theProgram(t *testing.T) string {
	t.Helper()
	path, err := program.Provide(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// byRunner runs what was laid.
func (r run) byRunner(t *testing.T, c cores.Core, args ...string) run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	all := r.command(t, slices.Concat(environ(c, r.scratch), r.environ), args)
	cmd := exec.CommandContext(ctx, c.Python, all.Args[1:]...)
	cmd.Env = all.Env
	output, err := cmd.CombinedOutput()
	r.output, r.err = string(output), err
	return r
}

// command is what runs it, but for the interpreter.
func (r run) command(t *testing.T, env, args []string) *exec.Cmd {
	t.Helper()
	roles := filepath.Join(r.dir, "project", "roles")
	cmd := exec.Command("python", append([]string{theProgram(t), "run", r.dir, "--json"}, args...)...)
	if slices.Contains(args, "--role") {
		cmd.Args = append(cmd.Args, "--roles-path", roles, "--hosts", "localhost", "--role-skip-facts")
	}
	cmd.Env = append(slices.Clone(env), "ANSIBLE_ROLES_PATH="+roles)
	return cmd
}

func environ(c cores.Core, home string) []string {
	return []string{"PATH=" + c.Bin + ":/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8"}
}

// lay writes everything that a run needs.
func (s setup) lay(t *testing.T, c cores.Core) run {
	t.Helper()
	dir := t.TempDir()
	r := run{dir: dir, environ: s.environ, markers: filepath.Join(dir, "markers"), scratch: filepath.Join(dir, "scratch")}
	for _, path := range []string{r.markers, r.scratch} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(dir, "project")
	if err := os.CopyFS(project, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	if s.prepare != nil {
		s.prepare(project)
	}
	o := thing(!s.plain)
	o.Vars = map[string]any{"scratch": r.scratch, "ansible_python_interpreter": c.Python}
	object := map[string]any{}
	if s.object != nil {
		object = s.object(r.markers)
	}
	write(t, filepath.Join(dir, "env", "extravars"), encode(t, object, o))
	write(t, filepath.Join(dir, "env", "settings"), []byte(`{"pexpect_timeout": 0.2, "suppress_output_file": true}`))
	write(t, filepath.Join(dir, "inventory", "hosts"), []byte("localhost ansible_connection=local\n"))
	return r
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// executed are the payloads that ran.
func (r run) executed(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir(r.markers)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

// finished fails the test unless the content reached its last task.
func (r run) finished(t *testing.T, last string) {
	t.Helper()
	if r.err == nil && exists(filepath.Join(r.scratch, last)) {
		return
	}
	t.Fatalf("the run did not reach its end (%v), so it shows nothing:\n%s", r.err, r.tail())
}

// tail is the end of what the run printed.
func (r run) tail() string {
	const most = 6000
	return r.output[max(0, len(r.output)-most):]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
