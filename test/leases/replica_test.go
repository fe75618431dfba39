package leases

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness"
)

const leaseName = "leases"

// replica is one manager process with a network, a run directory and an identity
// of its own, as a pod has them.
type replica struct {
	*harness.Manager
	*link

	name string
}

// start starts a replica of the operator.
func (o *operator) start() *replica {
	GinkgoHelper()
	o.started++
	r := &replica{name: fmt.Sprintf("%s-%d", o.namespace, o.started)}
	server, err := url.Parse(cluster.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	r.link = newLink(server.Host)
	home := filepath.Join(o.dir, r.name)
	Expect(os.MkdirAll(home, 0o700)).To(Succeed())
	r.Manager, err = harness.Start(harness.Options{
		Binary: filepath.Join(root, "bin", "manager"), Project: o.dir, Home: home, Namespace: o.namespace,
		Kubeconfig: o.kubeconfig(r, home),
		Env:        []string{"VIRTUAL_ENV=" + filepath.Join(o.dir, "venv"), journalVariable + "=" + o.journal.path, replicaVariable + "=" + r.name},
		Args: []string{
			"--leader-elect", "--leader-election-id=" + leaseName, "--leader-election-namespace=" + o.namespace,
			"--leader-elect-lease-duration=" + o.lease.String(), "--leader-elect-renew-deadline=3s",
			"--max-concurrent-reconciles=4", "--max-concurrent-runs=4",
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		log, err := r.Log()
		GinkgoWriter.Printf("--- log of %s (%v)\n%s\n", r.name, err, log)
		Expect(r.Kill()).To(Succeed())
	})
	return r
}

// kubeconfig leads over the replica's link, and acts under the replica's name, by
// which the audit log tells it from others.
func (o *operator) kubeconfig(r *replica, home string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Clusters {
		c.Server = "https://" + r.address()
	}
	config.AuthInfos["ensign"].Impersonate = r.name
	config.AuthInfos["ensign"].ImpersonateGroups = []string{"system:masters"}
	path := filepath.Join(home, "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// exited waits until the replica has ended by itself, with the code and without
// live runs: 1 after the loss of its lease, 0 after an orderly stop.
func (r *replica) exited(ctx context.Context, code int) {
	GinkgoHelper()
	Eventually(ctx, r.ExitCode).Should(Equal(code), "%s", r.name)
	Expect(harness.ProcessesOf(r.RunDir())).To(BeEmpty(), "processes of runs of %s", r.name)
}

// signal signals the manager, and then all that it has started by then.
func (r *replica) signal(s syscall.Signal) {
	GinkgoHelper()
	Expect(syscall.Kill(r.PID(), s)).To(Succeed())
	for _, pid := range descendants(r.PID()) {
		if err := syscall.Kill(pid, s); err != syscall.ESRCH {
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// descendants lists the live processes below one.
func descendants(of int) []int {
	GinkgoHelper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	Expect(err).NotTo(HaveOccurred())
	children := map[int][]int{}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // It ended meanwhile.
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		parent, err := strconv.Atoi(strings.Fields(after)[1])
		Expect(err).NotTo(HaveOccurred())
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		Expect(err).NotTo(HaveOccurred())
		children[parent] = append(children[parent], pid)
	}
	var found []int
	for level := children[of]; len(level) > 0; {
		found = append(found, level...)
		var next []int
		for _, pid := range level {
			next = append(next, children[pid]...)
		}
		level = next
	}
	return found
}

// writeEnvironment makes a Python environment in which this test binary plays
// ansible-runner.
func writeEnvironment(bin string) {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	python, err := json.Marshal(map[string]any{"python": "3.13.0", "ansible_core": "2.21.5", "ansible_runner": "2.4.3", "collections": []string{}, "installed": []string{}, "contents": []string{}})
	Expect(err).NotTo(HaveOccurred())
	canary, err := json.Marshal(map[string]any{"event": "runner_on_ok", "event_data": map[string]any{"task": "canary", "res": map[string]any{"msg": []string{pyenv.CanaryText}}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(bin, 0o700)).To(Succeed())
	for name, script := range map[string]string{
		"python3":          fmt.Sprintf("case \"$1\" in *ensign_run.py) shift; exec ansible-runner \"$@\" ;; esac\ncat <<'END'\n%s\nEND\n", python),
		"ansible-playbook": "",
		"ansible-runner":   fmt.Sprintf("case \"$*\" in *canary.json*) cat <<'END'\n%s\nEND\nexit ;; esac\nexec env %s=1 %s \"$@\"\n", canary, playVariable, self),
	} {
		Expect(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700)).To(Succeed())
	}
}
