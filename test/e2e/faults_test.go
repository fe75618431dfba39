package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fakeEnvironment returns options for a manager that finds a Python environment
// which cannot be had for real: none at all, one with an old ansible-core, or one
// whose canary comes back evaluated.
func fakeEnvironment(core, evaluated string) managerOptions {
	GinkgoHelper()
	dir := projectWith("- {group: test.ensign.io, version: v1, kind: Note, playbook: note.yml}\n", map[string]string{"note.yml": readProject("playbooks/note.yml")})
	// A copy of the manager, so that no .venv stands beside it.
	manager := filepath.Join(dir, "alone", "bin", "manager")
	Expect(os.MkdirAll(filepath.Dir(manager), 0o700)).To(Succeed())
	Expect(os.Link(filepath.Join(root, "bin", "manager"), manager)).To(Succeed())
	options := managerOptions{dir: dir, binary: manager, env: []string{"VIRTUAL_ENV=", "PATH=/usr/bin:/bin"}}
	if core == "" {
		return options
	}
	python, err := json.Marshal(map[string]any{"python": "3.13.0", "ansible_core": core, "ansible_runner": "2.4.3", "collections": []string{}, "installed": []string{}, "contents": []string{}})
	Expect(err).NotTo(HaveOccurred())
	event, err := json.Marshal(map[string]any{"event": "runner_on_ok", "event_data": map[string]any{"task": "canary", "res": map[string]any{"msg": []string{evaluated}}}})
	Expect(err).NotTo(HaveOccurred())
	bin := filepath.Join(dir, "venv", "bin")
	Expect(os.MkdirAll(bin, 0o700)).To(Succeed())
	for name, says := range map[string]string{"python3": string(python), "ansible-runner": string(event), "ansible-playbook": ""} {
		script := fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%s\nEND\n", says)
		Expect(os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700)).To(Succeed())
	}
	options.env[0] = "VIRTUAL_ENV=" + filepath.Join(dir, "venv")
	return options
}
