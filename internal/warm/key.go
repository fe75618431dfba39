package warm

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// ofOneRun are the variables that differ from run to run; each fork resolves them
// anew. server/ensign_warm/environment.py has the same.
func ofOneRun() []string {
	return []string{
		"JOB_ID", "KUBECONFIG", "K8S_AUTH_KUBECONFIG", "ANSIBLE_LOCAL_TEMP", "AWX_ISOLATED_DATA_DIR",
		"ANSIBLE_CACHE_PLUGIN_CONNECTION", "ANSIBLE_ROLES_PATH", "PWD", "OLDPWD", "SHLVL", "_",
	}
}

const (
	roomVariable = "ENSIGN_WARM_ROOM"
	// room is for the environment of a run, which takes the place of the server's in
	// the memory that /proc/PID/environ shows.
	room = 64 << 10
)

// shared is what the runs of a set of servers have in common.
func shared(env []string) []string {
	never := ofOneRun()
	var common []string
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !slices.Contains(never, name) {
			common = append(common, entry)
		}
	}
	slices.Sort(common)
	return common
}

// key stands for a shared environment.
func key(common []string) string {
	sum := sha256.Sum256([]byte(strings.Join(common, "\x00")))
	return hex.EncodeToString(sum[:8])
}
