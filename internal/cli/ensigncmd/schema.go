package ensigncmd

import (
	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/watches"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of watches.yaml, for editors",
		Long: `schema prints the JSON Schema (draft 7) of watches.yaml. Editors complete and check
the file by it. "init" writes it beside the watches.yaml of a new project, whose
first line names it.`,
		Example: `  ensign schema > watches.schema.json

  # The first line of watches.yaml, for the YAML language server:
  # yaml-language-server: $schema=watches.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(watches.Schema())
			return err
		},
	}
}
