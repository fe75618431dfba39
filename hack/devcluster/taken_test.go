package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProgramsThatAreThereAreTaken lets hack/controlplane/build.sh list what it would do
// with programs of several versions.
func TestProgramsThatAreThereAreTaken(t *testing.T) {
	assets, path := t.TempDir(), t.TempDir()
	place := func(dir, name, says string) {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "#!/bin/sh\necho '%s'\n", says), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place(assets, "etcd", "etcd Version: 99.0.1")
	place(assets, "kube-apiserver", "Kubernetes v1.2.3") // Too old.
	place(path, "kube-apiserver", "Kubernetes v1.999.0-rc.1+vendor")
	place(path, "kube-controller-manager", "Kubernetes v1.2.3")
	place(path, "kube-scheduler", "no version")
	place(path, "kubectl", "Client Version: v1.999.1")
	cmd := exec.Command("../controlplane/build.sh", "list")
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "PATH="+path+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{
		"etcd: taken, 99.0.1 at " + assets + "/etcd$",
		"kube-apiserver: taken, 1.999.0 at " + path + "/kube-apiserver$",
		"kubectl: taken, 1.999.1 at " + path + "/kubectl$",
	} {
		if !regexp.MustCompile(`(?m)` + want).Match(output) {
			t.Errorf("got %s, want %s", output, want)
		}
	}
	for line := range strings.Lines(string(output)) {
		if regexp.MustCompile(`: taken, (1\.2\.3|no)`).MatchString(line) {
			t.Errorf("too old or unknown: %s", line)
		}
	}
}
