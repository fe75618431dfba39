// Command ensign is for the people who write and run operators, also as "kubectl ensign". Package
// ensigncmd has its commands.
package main

import (
	"os"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/ensigncmd"
)

// Set by the linker.
var (
	version = "dev"
	commit  = "unknown"
)

func main() { os.Exit(cli.Main(ensigncmd.New(cli.Build{Version: version, Commit: commit}))) }
