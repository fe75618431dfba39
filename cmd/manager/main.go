// Command manager is the Ensign operator. Package managercmd has its commands.
package main

import (
	"os"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/ensigncmd"
	"github.com/ensign-operator/ensign/internal/cli/managercmd"
)

// Set by the linker.
var (
	version = "dev"
	commit  = "unknown"
)

func main() {
	build := cli.Build{Version: version, Commit: commit}
	root := managercmd.New(build)
	for _, command := range ensigncmd.New(build).Commands() { // Until the program ensign is everywhere.
		if found, _, err := root.Find([]string{command.Name()}); err != nil || found == root {
			root.AddCommand(command)
		}
	}
	os.Exit(cli.Main(root))
}
