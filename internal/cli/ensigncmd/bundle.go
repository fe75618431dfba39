package ensigncmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/bundle"
	"github.com/ensign-operator/ensign/internal/author/removal"
	"github.com/ensign-operator/ensign/internal/author/tree"
)

// Where the texts of a bundle are.
const bundleWords, bundleIcon = "config/manifests/clusterserviceversion.yaml", "config/manifests/icon.svg"

// bundleFlags are the flags of "bundle".
type bundleFlags struct {
	bundle.Bundle

	file, samples, output string
}

func newBundleCommand() *cobra.Command {
	f := &bundleFlags{}
	cmd := &cobra.Command{
		Use:   "bundle -f FILE",
		Short: "Write the operator's bundle for the Operator Lifecycle Manager",
		Long: `bundle writes the bundle of this project's operator for the Operator Lifecycle Manager:
a ClusterServiceVersion, the other manifests, the metadata, and a Dockerfile for the
bundle's image. The ClusterServiceVersion has the texts of
` + bundleWords + `, the picture
` + bundleIcon + ` if it is there, and what the deployed objects
say. It replaces an older bundle, and contacts nothing. "operator-sdk bundle validate"
checks the result.`,
		Example: `  # What make bundle does:
  kubectl kustomize config/default | ensign bundle -f - --samples <(kubectl kustomize config/samples) --version 1.2.3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.execute(cmd) },
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&f.file, "filename", "f", "", "`file` with the objects of the deployment, as YAML; - is standard input")
	set.StringVar(&f.samples, "samples", "", "`file` with samples of the kinds, which consoles show")
	set.StringVar(&f.Version, "version", "", "`version` of the bundle, such as 1.2.3; default that in "+bundleWords)
	set.StringVar(&f.Channel, "channel", "candidate", "`channel` that the bundle belongs to")
	set.StringVar(&f.output, "output", filepath.Join("dist", "bundle"), "`directory` of the bundle")
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

func (f *bundleFlags) execute(cmd *cobra.Command) (err error) {
	text, err := os.ReadFile(bundleWords)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the texts of the bundle are missing: init writes %s; take it from init in an empty directory", bundleWords)
	}
	f.Words = &unstructured.Unstructured{}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &f.Words.Object)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", bundleWords, err)
	}
	if f.Icon, err = os.ReadFile(bundleIcon); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.Objects, err = readObjects(cmd, f.file); err != nil {
		return err
	}
	if f.samples != "" {
		if f.Samples, err = readObjects(cmd, f.samples); err != nil {
			return fmt.Errorf("--samples, which make bundle takes from config/samples: %w", err)
		}
	}
	made, err := f.Files()
	if err != nil {
		return err
	}
	// The directory may have files that are not made any more.
	for _, part := range []string{"manifests", "metadata", "Dockerfile"} {
		if err := os.RemoveAll(filepath.Join(f.output, part)); err != nil {
			return err
		}
	}
	for path, content := range made {
		if err := tree.Create(f.output, path, content); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "wrote", f.output)
	return nil
}

// readObjects returns the objects of a file, or of standard input.
func readObjects(cmd *cobra.Command, file string) ([]*unstructured.Unstructured, error) {
	in, err := openInput(cmd, file)
	if err != nil {
		return nil, fmt.Errorf("read the objects: %w", err)
	}
	defer func() { _ = in.Close() }() // It was only read.
	objects, err := removal.Read(in)
	if err != nil {
		return nil, fmt.Errorf("read the objects of %s: %w", file, err)
	}
	return objects, nil
}
