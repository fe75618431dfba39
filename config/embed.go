// Package config has the manifests that watch the operator of this repository and guard it. `ensign
// init` writes them for operators of others, with their names.
package config

import "embed"

// Files are the directories prometheus, grafana and network-policy.
//
//go:embed prometheus grafana network-policy
var Files embed.FS
