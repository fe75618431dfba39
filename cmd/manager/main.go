// Command manager is the Ensign operator. Package managercmd has its commands.
package main

import (
	"os"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/managercmd"
)

// Set by the linker.
var (
	version = "dev"
	commit  = "unknown"
)

func main() { os.Exit(cli.Main(managercmd.New(cli.Build{Version: version, Commit: commit}))) }
