// Package config has the manifests that watch the operator of this repository and guard it. `ensign
// init` writes them for operators of others, with their names.
package config

import "embed"

// Files are the directories prometheus, grafana, network-policy and overlays/jobs.
//
//go:embed prometheus grafana network-policy overlays/jobs
var Files embed.FS
