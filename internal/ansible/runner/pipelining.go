package runner

import (
	"os"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
)

// usePipelining reports whether modules on localhost get their code by the standard input,
// which saves Ansible some shells and a temporary directory per module. Pipelining is used
// for runs that may be warm, unless the operator's author has set it, by the variable or in
// the ansible.cfg of a run with this environment. For a cold run it would not pay: a new
// interpreter needs more time to read a long line from its standard input than that saves.
func usePipelining(env map[string]string) bool {
	if _, chosen := env["ANSIBLE_PIPELINING"]; chosen {
		return false
	}
	// The setting of SSH connections does not count.
	_, chosen := cfgfile.Find(env, os.ReadFile).Value("pipelining", "defaults", "connection")
	return !chosen
}
