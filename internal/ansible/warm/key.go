package warm

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
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

// identity is the number of the run that has this environment.
func identity(env []string) string {
	for _, entry := range env {
		if number, found := strings.CutPrefix(entry, "JOB_ID="); found {
			return number
		}
	}
	return ""
}

// differing lists the names of the variables that are not the same in two environments.
func differing(one, other []string) []string {
	found := map[string]bool{}
	for _, pair := range [][2][]string{{one, other}, {other, one}} {
		for _, entry := range pair[0] {
			if name, _, _ := strings.Cut(entry, "="); !slices.Contains(pair[1], entry) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// key stands for a shared environment.
func key(common []string) string {
	sum := sha256.Sum256([]byte(strings.Join(common, "\x00")))
	return hex.EncodeToString(sum[:8])
}
