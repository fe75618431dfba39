// Package author goes the way of an author from an empty directory to an operator, with the
// commands init, create api and run-once, on a control plane of its own and with real Ansible.
package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega/gbytes"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// waitTimeout ends commands that hang. late is the flag of it for kubectl.
const (
	waitTimeout = scratch.WaitTimeout
	late        = "--timeout=10m"
)

// desk is where the author works.
type desk struct {
	t      *testing.T
	dir    string
	ensign string
	env    []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	root := scratch.Repository(t)
	cluster := controlplane.ForTest(t, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: os.Stdout})
	path := strings.Join([]string{filepath.Join(root, ".venv", "bin"), filepath.Dir(cluster.Kubectl), os.Getenv("PATH")}, ":")
	own := scratch.Short(t)
	d := &desk{t: t, dir: filepath.Join(own, "shop"), ensign: filepath.Join(root, "bin", "ensign")}
	d.env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+path, "TMPDIR="+own, "ANSIBLE_GATHERING=explicit", "ENSIGN="+d.ensign)
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.t.Context(), waitTimeout)
	d.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// run runs a command, which has to end with the exit code, and returns what it prints.
func (d *desk) run(want int, name string, args ...string) string {
	d.t.Helper()
	began := time.Now()
	out, err := d.command(name, args...).CombinedOutput()
	exit, code := (*exec.ExitError)(nil), 0
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		d.t.Fatal(err)
	}
	if code != want {
		d.t.Fatalf("%s %q ends with %d, want %d:\n%s", name, args, code, want, out)
	}
	d.t.Logf("%.1f s: %s %s", time.Since(began).Seconds(), filepath.Base(name), strings.Join(args, " "))
	return string(out)
}

// established waits until the API server serves the kinds of definitions, as make install does. kubectl cannot wait for a condition
// of an object that has none.
func (d *desk) established(definitions ...string) {
	d.t.Helper()
	for _, until := range []string{"--for=jsonpath={.status.conditions[0].type}", "--for=condition=Established"} {
		d.run(0, "kubectl", append([]string{"wait", until, late}, definitions...)...)
	}
}

func (d *desk) wants(text, part string) {
	d.t.Helper()
	if !strings.Contains(text, part) {
		d.t.Errorf("want %q in\n%s", part, text)
	}
}

func (d *desk) newProject() {
	d.t.Helper()
	d.run(0, d.ensign, "init", "--domain", "myorg.tld")
	d.run(0, d.ensign, "create", "api", "--group", "shop", "--version", "v1", "--kind", "Store", "--generate-role", "--finalizer")
	if out := d.run(0, d.ensign, "rbac", "--diff", "config/rbac"); out != "" {
		d.t.Errorf("the rights that are written are not those that are needed:\n%s", out)
	}
}

const threeTasks = `---
- name: Keep the ConfigMap
  kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: "{{ ansible_operator_meta.name }}"
        namespace: "{{ ansible_operator_meta.namespace }}"
      data:
        text: "{{ message }} to all"

- name: Read it again
  kubernetes.core.k8s_info:
    kind: ConfigMap
    name: "{{ ansible_operator_meta.name }}"
    namespace: "{{ ansible_operator_meta.namespace }}"
  register: store_config

- name: Require the text
  ansible.builtin.assert:
    that: store_config.resources[0].data.text == message ~ ' to all'
`

const sample = "config/samples/shop_v1_store.yaml"

func TestFromNothingToAnOperator(t *testing.T) {
	d := newDesk(t)
	d.newProject()
	role := filepath.Join("roles", "store", "tasks", "main.yml")
	scratch.Write(t, d.dir, map[string]string{role: threeTasks})

	d.wants(d.run(0, d.ensign, "run-once", "-f", sample, "--vars"), "does not serve shop.myorg.tld/v1")
	d.run(0, "make", "install")
	scratch.Write(t, d.dir, map[string]string{"bare.yaml": "apiVersion: shop.myorg.tld/v1\nkind: Store\nmetadata: {name: bare}\n"})
	d.wants(d.run(0, d.ensign, "run-once", "-f", "bare.yaml", "--vars"), "message: Hello") // The schema's default.

	// The path of the image means the project's directory, as many projects write it.
	d.run(0, "sed", "-i", "s,role: store$,role: /opt/ansible/roles/store,", "watches.yaml")
	out := d.run(0, d.ensign, "run-once", "-f", sample)
	d.run(0, "sed", "-i", "s,/opt/ansible/roles/,,", "watches.yaml")
	d.wants(out, "get no owner reference")
	d.wants(out, "store : Require the text")
	d.wants(out, "4 ok, 1 changed")
	scratch.Write(t, d.dir, map[string]string{role: strings.ReplaceAll(threeTasks, "to all", "to each")})
	out = d.run(1, d.ensign, "run-once", "-f", sample, "--check") // The last task reads what a real run would have written.
	d.wants(out, "-  text: Hello to all\n")
	d.wants(out, "+  text: Hello to each\n")
	if text := d.run(0, "kubectl", "get", "configmap", "store-sample", "-o", "jsonpath={.data.text}"); text != "Hello to all" {
		t.Errorf("--check wrote %q", text)
	}
	scratch.Write(t, d.dir, map[string]string{role: threeTasks + "\n- name: Fail\n  ansible.builtin.fail:\n    msg: no such luck\n"})
	d.wants(d.run(1, d.ensign, "run-once", "-f", sample), "no such luck")
	d.wants(d.run(0, d.ensign, "run-once", "-f", sample, "--finalize"), "is being deleted")
	d.wants(d.run(2, d.ensign, "run-once", "store/nobody"), "not found; -n names another namespace, and -f takes one from a file")
	d.wants(d.run(2, d.ensign, "run-once", "-f", "none.yaml"), "no such file")
	d.run(0, "kubectl", "delete", "configmap", "store-sample")

	scratch.Write(t, d.dir, map[string]string{role: threeTasks})
	operator, log := d.start("make", "run")
	d.run(0, "kubectl", "apply", "-k", "config/samples")
	d.run(0, "kubectl", "wait", "--for=condition=Successful", "store/store-sample", late)
	if owner := d.run(0, "kubectl", "get", "configmap", "store-sample", "-o", "jsonpath={.metadata.ownerReferences[0].kind}"); owner != "Store" {
		t.Errorf("the ConfigMap's owner is %q", owner)
	}
	d.wants(d.run(0, d.ensign, "run-once", "store/store-sample"), "4 ok, 0 changed")
	d.run(0, "kubectl", "delete", "-k", "config/samples", late) // By the finalizer.
	if err := syscall.Kill(-operator.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := operator.Wait(); err != nil && !strings.Contains(string(log.Contents()), "stopping") {
		t.Errorf("the operator ends by %v:\n%s", err, log.Contents())
	}
}

// start starts a program that goes on until it is interrupted, or the test ends.
func (d *desk) start(name string, args ...string) (*exec.Cmd, *gbytes.Buffer) {
	d.t.Helper()
	cmd, log := d.command(name, args...), gbytes.NewBuffer()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // It may have ended.
		if d.t.Failed() {
			fmt.Fprintf(os.Stdout, "%s %q printed\n%s\n", name, args, log.Contents())
		}
	})
	return cmd, log
}

// TestASaveRunsAgain shows the loop of an author who edits a role.
func TestASaveRunsAgain(t *testing.T) {
	d := newDesk(t)
	d.newProject()
	role := filepath.Join("roles", "store", "tasks", "main.yml")
	d.run(0, "make", "install")
	watching, log := d.start(d.ensign, "run-once", "-f", sample, "--watch")
	waits := func(count int) {
		t.Helper()
		for deadline := time.Now().Add(waitTimeout); strings.Count(string(log.Contents()), "waiting for a change") < count; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it does not wait for the change %d:\n%s", count, log.Contents())
			}
		}
	}
	waits(1)
	for i := range 3 {
		began := time.Now()
		scratch.Write(t, d.dir, map[string]string{role: strings.ReplaceAll(threeTasks, "to all", fmt.Sprintf("to all %d", i))})
		waits(i + 2)
		t.Logf("%.2f s from the save to the end of the run", time.Since(began).Seconds())
	}
	d.wants(d.run(0, "kubectl", "get", "configmap", "store-sample", "-o", "jsonpath={.data.text}"), "Hello to all 2")
	d.wants(string(log.Contents()), "warm: 4 ok, 1 changed")
	if err := watching.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := watching.Wait(); err != nil {
		t.Errorf("it ends by %v:\n%s", err, log.Contents())
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(d.dir), "ensign-once-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// account returns the path of a kubeconfig of a ServiceAccount.
func (d *desk) account(namespace, name string) string {
	d.t.Helper()
	path := filepath.Join(filepath.Dir(d.dir), "account")
	if err := os.WriteFile(path, []byte(d.run(0, "kubectl", "config", "view", "--raw", "--minify")), 0o600); err != nil {
		d.t.Fatal(err)
	}
	token := strings.TrimSpace(d.run(0, "kubectl", "create", "token", name, "--namespace="+namespace))
	if err := d.command("kubectl", "config", "set-credentials", "account", "--token="+token, "--kubeconfig="+path).Run(); err != nil {
		d.t.Fatal(err) // Without d.run, which logs the arguments.
	}
	d.run(0, "kubectl", "config", "set-context", "--current", "--user=account", "--kubeconfig="+path)
	return path
}

// checksTheCluster compares the project with the cluster that it is deployed to.
func (d *desk) checksTheCluster() {
	d.t.Helper()
	d.run(0, "kubectl", "wait", "--for=create", "serviceaccount/default", "--namespace=shop-system", late)
	const account = "system:serviceaccount:shop-system:shop-manager"
	if out := d.run(0, d.ensign, "check", "--cluster", "--as", account); !strings.HasPrefix(out, "0 errors, 0 warnings, 0 info") {
		d.t.Errorf("want no finding, got\n%s", out)
	}
	out := d.run(1, d.ensign, "check", "--cluster", "--as", "system:serviceaccount:shop-system:default")
	d.wants(out, "system:serviceaccount:shop-system:default may not: ")
	d.wants(out, "patch hellos.demo.myorg.tld/status, ")
	d.wants(out, "create deployments.apps, ")
	manifest := filepath.Join(d.dir, "config", "manager", "manager.yaml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		d.t.Fatal(err)
	}
	for path, changed := range map[string]string{
		"config/manager/manager.yaml": strings.Replace(string(text), "      serviceAccountName: manager\n", "      serviceAccountName: manager\n      hostNetwork: true\n", 1),
		"watches.yaml":                "- {group: demo.myorg.tld, version: v2, kind: Hello, chart: charts/hello}\n",
	} {
		before, err := os.ReadFile(filepath.Join(d.dir, path))
		if err != nil {
			d.t.Fatal(err)
		}
		scratch.Write(d.t, d.dir, map[string]string{path: changed})
		out := d.run(1, d.ensign, "check", "--cluster", "--as", account)
		d.wants(out, map[string]string{
			"config/manager/manager.yaml": "the namespace shop-system refuses the operator's pod: ",
			"watches.yaml":                "the cluster serves Hello.demo.myorg.tld in v1, and not in v2",
		}[path])
		scratch.Write(d.t, d.dir, map[string]string{path: string(before)})
	}
	d.wants(d.run(2, d.ensign, "check", "--as", account), "are for --cluster: add it")
}
