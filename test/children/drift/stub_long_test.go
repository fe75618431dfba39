//go:build long

package drift

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestMain(m *testing.M) {
	if played := stub(os.Args); played {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stub plays the programs of a Python environment that is none, whose runs do
// nothing, and tells whether it did.
func stub(args []string) (played bool) {
	switch filepath.Base(args[0]) {
	case "python3":
		fmt.Println(`{"python":"3.13.0","ansible_core":"2.21.5","ansible_runner":"2.4.3","collections":[],"installed":[],"contents":[]}`)
	case "ansible-playbook":
	case "ansible-runner":
		stubRun(args[2])
	default:
		return false
	}
	return true
}

func stubRun(dir string) {
	var vars struct {
		Canary *struct {
			Unsafe string `json:"__ansible_unsafe"`
		} `json:"c"`
	}
	content, err := os.ReadFile(filepath.Join(dir, "env", "extravars"))
	if err != nil || json.Unmarshal(content, &vars) != nil {
		return // Without stats it has failed.
	}
	if vars.Canary != nil {
		event("runner_on_ok", `{"task":"canary","res":{"msg":["`+vars.Canary.Unsafe+`"]}}`)
	}
	event("playbook_on_stats", `{"ok":{"localhost":1},"processed":{"localhost":1}}`)
}

func event(kind, data string) {
	job := os.Getenv("JOB_ID")
	if job == "" {
		job = "null"
	}
	fmt.Printf(`{"uuid":"u","created":"2026-01-02T03:04:05.678901+00:00","job_id":%s,"event":%q,"event_data":%s}`+"\n", job, kind, data)
}

// stubbed gives a Python environment whose programs are this test.
func stubbed() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "stub")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Join(dir, "bin"), 0o700)).To(Succeed())
	for _, name := range []string{"python3", "ansible-runner", "ansible-playbook"} {
		Expect(os.Symlink(self, filepath.Join(dir, "bin", name))).To(Succeed())
	}
	return dir
}
