package fleet

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const group = "fleet.ensign.io"

var (
	ground   *site.Ground
	greeting = schema.GroupKind{Group: group, Kind: "Greeting"}
	note     = schema.GroupKind{Group: group, Kind: "Note"}
)

func TestFleet(t *testing.T) { site.Run(t, "fleet", harness.WaitTimeout, 100*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	ground.Define(ctx, harness.Definition(greeting), harness.Definition(note))
})

const (
	watchesFile = `
- {group: fleet.ensign.io, version: v1, kind: Greeting, role: greeting, reconcilePeriod: 2h}
- {group: fleet.ensign.io, version: v1, kind: Absent, role: greeting}
- {group: fleet.ensign.io, version: v1, kind: Note, chart: charts/note}
`
	// A word may have an escape, which is untrusted text that reaches the status.
	tasks = `
- name: Require a friendly word
  ansible.builtin.assert:
    that: word is not match('boo')
    fail_msg: "nobody says {{ word }}"
- name: Wait for what never comes
  ansible.builtin.command: sleep 600
  when: word == 'hang'
  changed_when: false
`
	template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-note'}\ndata: {text: '{{ .Values.text }}'}\n"
)

// desk is where somebody looks after the resources of a site.
type desk struct {
	*site.Site

	dir        string
	kubeconfig string
}

func newDesk(ctx context.Context) *desk {
	GinkgoHelper()
	s := ground.Site(ctx, map[string]string{
		"watches.yaml": watchesFile, "roles/greeting/tasks/main.yml": tasks,
		"charts/note/Chart.yaml": "apiVersion: v2\nname: note\nversion: 0.1.0\n", "charts/note/templates/note.yaml": template,
	})
	s.Options.Env = append(s.Options.Env, "ANSIBLE_GATHERING=explicit", "OPERATOR_VERSION=1.4.0")
	return &desk{Site: s, dir: s.Options.Project, kubeconfig: ground.Cluster.Kubeconfig}
}

func (d *desk) greeting(name, word string) *unstructured.Unstructured {
	return harness.Custom(greeting, d.Namespace, name, map[string]any{"word": word})
}

func (d *desk) command(args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(ground.Root, "bin", "ensign"), args...)
	command.Dir, command.Env = d.dir, []string{"KUBECONFIG=" + d.kubeconfig, "HOME=" + d.Dir}
	return command
}

// run runs a command, which has to end with the exit code, and returns what it printed.
func (d *desk) run(code int, args ...string) (out, said string) {
	GinkgoHelper()
	command, outs, errs := d.command(args...), &bytes.Buffer{}, &bytes.Buffer{}
	command.Stdout, command.Stderr = outs, errs
	began := time.Now()
	err := command.Run()
	GinkgoWriter.Printf("--- %.2f s: %s: %v\n%s%s", time.Since(began).Seconds(), strings.Join(args, " "), err, outs, errs)
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		Fail(err.Error())
	}
	Expect(command.ProcessState.ExitCode()).To(Equal(code))
	return outs.String(), errs.String()
}

// here is run for the site's namespace.
func (d *desk) here(code int, args ...string) (out, said string) {
	GinkgoHelper()
	return d.run(code, append(args, "-n", d.Namespace)...)
}

// start starts a command that goes on until the spec ends.
func (d *desk) start(args ...string) *gbytes.Buffer {
	GinkgoHelper()
	command, out := d.command(append(args, "-n", d.Namespace)...), gbytes.NewBuffer()
	command.Stdout, command.Stderr = out, GinkgoWriter
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return out
}
